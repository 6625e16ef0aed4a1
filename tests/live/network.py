"""The wires: hosts inside, the middle, a host outside.

    inside[0..n] eth ── (a switch, if there are several) ── lan  middle  wan ── eth outside
"""

from __future__ import annotations

import itertools
import os
import subprocess

from host import INTERFACE, Host
from namespaces import run

PREFIX = "rlive"
#: The middle's addresses, by interface; those of the configurations that are tested.
MIDDLE = {"lan": ("192.168.77.1", "fd77::1"), "wan": ("203.0.113.1", "2001:db8:113::1")}
#: A client, or backends; those of the configurations, too.
CLIENT = ("192.168.77.10", "fd77::10")
BACKENDS = [(f"192.168.77.{11 + n}", f"fd77::{11 + n}") for n in range(3)]
OUTSIDE = ("203.0.113.10", "2001:db8:113::10")
#: The host outside as a neighbour of those inside, where the middle is but a wire.
NEIGHBOUR = ("192.168.77.100", "fd77::100")
#: A host at the third port of a bridge, and the middle's interface there.
BYSTANDER, THIRD = ("192.168.77.20", "fd77::20"), "third"
#: The routers that the configurations name as the next hop to the world, and an address behind them.
GATEWAYS = ("203.0.113.254", "2001:db8:113::fe")
WORLD = ("198.51.100.7", "2001:db8:ffff::7")
#: Likewise the router to a network behind the one inside.
INNER_GATEWAY, INNER = "192.168.77.254", "10.1.2.3"
#: Segments must be whole and have their checksums: a socket that takes frames off the wire sees them as they are.
OFFLOADS = ("tx", "off", "tso", "off", "gso", "off", "gro", "off")

_numbers = itertools.count()


class Network:
    """Everything that one middle stands between, built anew for each and deleted when closed."""

    def __init__(self, backends: bool = False, mtu: int = 1500, third: bool = False) -> None:
        self._stem = f"{PREFIX}-{os.getpid()}-{next(_numbers)}"
        self._hosts: list[Host] = []
        self.mtu = mtu
        #: The middle's interfaces.
        self.ports = (*MIDDLE, THIRD) if third else tuple(MIDDLE)
        try:
            self.middle = self._host("middle")
            self.outside = self._host("outside")
            inside = BACKENDS if backends else [CLIENT]
            self.inside = [self._host(f"inside{n}") for n in range(len(inside))]
            self._wire("wan", self.outside, INTERFACE)
            if backends:
                self._switch()
            else:
                self._wire("lan", self.inside[0], INTERFACE)
            for host, (v4, v6) in zip(self.inside, inside, strict=True):
                configure(host, v4, v6, MIDDLE["lan"])
            configure(self.outside, *OUTSIDE, MIDDLE["wan"])
            if third:
                self.bystander = self._host("bystander")
                self._wire(THIRD, self.bystander, INTERFACE)
                configure(self.bystander, *BYSTANDER, MIDDLE["lan"])
        except BaseException:
            self.close()
            raise

    @property
    def client(self) -> Host:
        """The first host inside."""
        return self.inside[0]

    def join(self) -> None:
        """Gives the host outside addresses of the network inside as well."""
        self.outside.ip("addr", "add", f"{NEIGHBOUR[0]}/24", "dev", INTERFACE)
        self.outside.ip("-6", "addr", "add", f"{NEIGHBOUR[1]}/64", "dev", INTERFACE, "nodad")

    def extend(self) -> None:
        """Makes routers of the host outside and the first one inside, each with a network behind it."""
        for host, addresses in ((self.outside, (GATEWAYS[0], WORLD[0])), (self.client, (INNER_GATEWAY, INNER))):
            for address in addresses:
                length = 24 if address in (GATEWAYS[0], INNER_GATEWAY) else 32
                host.ip("addr", "add", f"{address}/{length}", "dev", INTERFACE)
        # No connection of their own begins at these.
        for address in (f"{GATEWAYS[1]}/64", f"{WORLD[1]}/128"):
            self.outside.ip("-6", "addr", "add", address, "dev", INTERFACE, "nodad", "preferred_lft", "0")
    def rewire_outside(self) -> None:
        """Makes the wire between the middle and the host outside anew, with new link addresses."""
        self._wire("wan", self.outside, INTERFACE)
        configure(self.outside, *OUTSIDE, MIDDLE["wan"])

    def close(self) -> None:
        for host in self._hosts:
            host.close()

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _host(self, role: str) -> Host:
        host = Host(f"{self._stem}-{role}")
        self._hosts.append(host)
        host.ip("link", "set", "lo", "up")
        # Nothing but what a scenario asks for: no router advertisements, no duplicate address detection.
        host.sysctl([("net.ipv6.conf.default.accept_ra", 0), ("net.ipv6.conf.default.accept_dad", 0)])
        return host

    def _wire(self, name: str, host: Host, far: str) -> None:
        """A veth pair from the middle's interface `name` to `far` on a host."""
        self.middle.ip(
            "link", "add", name, "mtu", str(self.mtu), "type", "veth",
            "peer", "name", far, "mtu", str(self.mtu), "netns", host.name,
        )  # fmt: skip
        for end, interface in ((self.middle, name), (host, far)):
            offloads_off(end, interface)
            end.ip("link", "set", interface, "up")

    def _switch(self) -> None:
        switch = self._host("switch")
        switch.ip("link", "add", "switch", "mtu", str(self.mtu), "type", "bridge")
        switch.ip("link", "set", "switch", "up")
        self._wire("lan", switch, "uplink")
        ports = ["uplink"]
        for n, host in enumerate(self.inside):
            port = f"port{n}"
            ends = ("type", "veth", "peer", "name", INTERFACE, "mtu", str(self.mtu), "netns", host.name)
            switch.ip("link", "add", port, "mtu", str(self.mtu), *ends)
            offloads_off(switch, port)
            offloads_off(host, INTERFACE)
            host.ip("link", "set", INTERFACE, "up")
            ports.append(port)
        for port in ports:
            switch.ip("link", "set", port, "master", "switch", "up")


def configure(host: Host, v4: str, v6: str, gateway: tuple[str, str]) -> None:
    """Addresses and default routes of a host at the edge."""
    host.ip("addr", "add", f"{v4}/24", "dev", INTERFACE)
    host.ip("-6", "addr", "add", f"{v6}/64", "dev", INTERFACE, "nodad")
    host.ip("route", "add", "default", "via", gateway[0])
    host.ip("-6", "route", "add", "default", "via", gateway[1])


def offloads_off(host: Host, interface: str) -> None:
    run("ip", "netns", "exec", host.name, "ethtool", "-K", interface, *OFFLOADS)


def left_behind() -> list[str]:
    """Namespaces of this process that are still there."""
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in listed.stdout.splitlines() if line.startswith(f"{PREFIX}-{os.getpid()}-")]
