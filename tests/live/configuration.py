"""The configurations that rheo is run with: those that the project ships, with a control socket; and two of our own."""

from __future__ import annotations

from pathlib import Path

from middle import Service
from network import MIDDLE

SHIPPED = {Service.NAT: "nat-live.toml", Service.BALANCER: "lb-live.toml"}
FOLDER = Path(__file__).parents[2] / "configs"

_DEVICE = """
[[device]]
name = "{name}"
kind = "af_xdp"
interface = "{name}"
side = "{side}"
{addresses}
"""


def text(service: Service, control: Path) -> str:
    """The configuration for a service, with its control socket at `control`."""
    told = (FOLDER / SHIPPED[service]).read_text() if service in SHIPPED else own(service)
    return with_control(told, control)


def own(service: Service) -> str:
    """Devices with both families' addresses, or with none; and nothing done to packets."""
    devices = "".join(
        _DEVICE.format(
            name=name,
            side=side,
            addresses=f'address = ["{v4}/24", "{v6}/64"]' if service is Service.ROUTER else "",
        )
        for (name, (v4, v6)), side in zip(MIDDLE.items(), ("inside", "outside"), strict=True)
    )
    functions = '["router"]' if service is Service.ROUTER else "[]"
    return f"{devices}\n[chain]\nfunctions = {functions}\n"


def with_control(told: str, control: Path) -> str:
    """The same configuration with the path of a control socket in its section `observe`."""
    lines = [line for line in told.splitlines() if not line.lstrip("# ").startswith("control =")]
    setting = f'control = "{control}"'
    if "[observe]" in lines:
        lines.insert(lines.index("[observe]") + 1, setting)
    else:
        lines += ["", "[observe]", setting]
    return "\n".join(lines) + "\n"
