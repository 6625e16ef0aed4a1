"""The configurations that rheo is run with: those that the project ships, as they are, and one of our own."""

from __future__ import annotations

import re
from pathlib import Path

from middle import Ground, Service
from network import MIDDLE, THIRD

SHIPPED = {
    Service.NAT: "nat-live.toml",
    Service.BALANCER: "lb-live.toml",
    Service.ROUTER: "router.toml",
    Service.BRIDGE: "bridge-live.toml",
}
FOLDER = Path(__file__).parents[2] / "configs"

#: Frames pass as they came.
_WIRE = """
[[device]]
name = "lan"
kind = "af_xdp"
interface = "lan"
side = "inside"

[[device]]
name = "wan"
kind = "af_xdp"
interface = "wan"
side = "outside"

[chain]
functions = []
"""
#: Kinds of devices that are interfaces of this machine.
LIVE = re.compile(r'^kind = "(af_xdp|af_packet|tap)"', re.MULTILINE)


def path(ground: Ground, place: Path, on_loss: str = "") -> Path:
    """The configuration for a ground's service, as shipped. One that is not shipped, whose lanes share queues, or whose devices
    get the setting `on_loss`, is written into the folder `place`."""
    service = ground.service
    if service in SHIPPED and not on_loss and ground.sharing == 1:
        return FOLDER / SHIPPED[service]
    text = (FOLDER / SHIPPED[service]).read_text() if service in SHIPPED else _WIRE
    if on_loss:
        text = text.replace("[[device]]", f'[[device]]\non_loss = "{on_loss}"')
    if ground.sharing > 1:
        text += f"\n[workers]\nqueue_sharing = {ground.sharing}\nordered = {str(ground.ordered).lower()}\n"
    own = place / "config.toml"
    own.write_text(text)
    return own


def devices(service: Service) -> dict[str, str]:
    """The interface of each device of the configuration."""
    if service is Service.BRIDGE:
        return {"left": "lan", "right": "wan", "middle": THIRD}
    return {name: name for name in MIDDLE}


def not_tried(services: set[Service]) -> list[str]:
    """Configurations in `configs/` for interfaces that no scenario of these services runs with. `tests/serving` has those for
    services over TCP."""
    texts = {file.name: file.read_text() for file in sorted(FOLDER.glob("*.toml"))}
    shipped = (name for name, text in texts.items() if LIVE.search(text) and "[serve]" not in text)
    tried = {SHIPPED[service] for service in services if service in SHIPPED}
    return [name for name in shipped if name not in tried]
