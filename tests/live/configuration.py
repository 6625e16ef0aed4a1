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


#: Quick, so that tests are. No page is as short as none.
_CHECK = """[function.lb.service.check]
kind = "http"
path = "/0"
interval = "2s"
timeout = "2s"
fall = 2
rise = 1

"""


def text(service: Service, control: Path) -> str:
    """The configuration for a service, with its control socket at `control`."""
    told = (FOLDER / SHIPPED[service]).read_text() if service in SHIPPED else own(service)
    if service is Service.BALANCER:
        told = told.replace("[[function.lb.service.backend]]", _CHECK + "[[function.lb.service.backend]]", 1)
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
    functions = "[]" if service is Service.WIRE else f'["{service.value}"]'
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
