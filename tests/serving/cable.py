"""The cable between a client, which is the kernel of a namespace, and rheo.

    tap:                   rheo ── tap interface of the client's namespace
    af_packet, af_xdp:     rheo ── eth0 of another namespace ══ eth of the client's
    spoiled:               as af_packet, with a wire between that does wrong
    routed:                as af_packet, with two routers between, and a link between these that may be narrow
"""

from __future__ import annotations

import itertools
import os
import subprocess

from namespaces import Namespace, run
from routers import BEHIND, EVERYWHERE, FAR, Routers
from spoiler import Spoiler

GROUNDS = ("tap", "af_packet", "af_xdp", "spoiled", "routed")
SERVER = {4: "10.9.0.1", 6: "fd09::1"}
CLIENT = {4: "10.9.0.2", 6: "fd09::2"}
#: The client's interface.
INTERFACE = "eth"
#: Segments must be whole and have their checksums: a socket that takes frames off the wire sees them as they are.
OFFLOADS = ("tx", "off", "tso", "off", "gso", "off", "gro", "off")

_numbers = itertools.count()


class Cable:
    """Namespaces and the interfaces in them, deleted when closed."""

    def __init__(self, ground: str) -> None:
        stem = f"rserve-{os.getpid()}-{next(_numbers)}"
        self.ground = ground
        self.client = Namespace(f"{stem}-c")
        self._all = [self.client]
        #: The wire, where it does wrong.
        self.spoiler: Spoiler | None = None
        #: What is between, where there are routers.
        self.routers: Routers | None = None
        try:
            self.client.ip("link", "set", "lo", "up")
            if ground == "tap":
                self.server = self.client
            else:
                self.server = Namespace(f"{stem}-s")
                self._all.append(self.server)
                if ground == "spoiled":
                    middle = Namespace(f"{stem}-w")
                    self._all.append(middle)
                    #: Where the wire is that does wrong; `w1` is at rheo's end.
                    self.middle = middle
                    self._wire(self.client, INTERFACE, middle, "w0")
                    self._wire(self.server, "eth0", middle, "w1")
                    self.spoiler = Spoiler(middle, "w0", "w1")
                elif ground == "routed":
                    near, far = Namespace(f"{stem}-n"), Namespace(f"{stem}-f")
                    self._all += [near, far]
                    self._wire(self.client, INTERFACE, near, "out")
                    self._wire(near, "narrow", far, "narrow")
                    self._wire(self.server, "eth0", far, "out")
                    self.routers = Routers(near, far)
                else:
                    self._wire(self.client, INTERFACE, self.server, "eth0")
        except BaseException:
            self.close()
            raise

    def _wire(self, first: Namespace, one: str, second: Namespace, other: str) -> None:
        first.ip("link", "add", one, "type", "veth", "peer", "name", other, "netns", second.name)
        for namespace, interface in ((first, one), (second, other)):
            run("ip", "netns", "exec", namespace.name, "ethtool", "-K", interface, *OFFLOADS)
            if namespace is not self.client and interface != "narrow" and interface != "out":
                namespace.sysctl([(f"net.ipv6.conf.{interface}.disable_ipv6", 1)])
                namespace.ip("link", "set", interface, "up")

    @property
    def device(self) -> str:
        """The argument of --device."""
        kind = "af_packet" if self.spoiler or self.routers else self.ground
        return f"lan={kind}:{INTERFACE if kind == 'tap' else 'eth0'}"

    def address(self) -> None:
        """Gives the client its addresses. A tap interface is there once rheo has made it."""
        own = BEHIND if self.routers else CLIENT
        for address, length in ((own[4], 24), (own[6], 64)):
            words = ("nodad",) if ":" in address else ()
            self.client.ip("addr", "replace", f"{address}/{length}", "dev", INTERFACE, *words)
        self.client.ip("link", "set", INTERFACE, "up")
        if self.routers:
            self.routers.lead(self.client)

    def address_server(self) -> None:
        """Gives the service's addresses to the kernel of its namespace, too, which then knows the ways, and looks after them."""
        self.server.sysctl([("net.ipv6.conf.eth0.disable_ipv6", 0)])
        self.server.ip("link", "set", "lo", "up")
        for address, length in ((SERVER[4], 24), (SERVER[6], 64)):
            words = ("nodad",) if ":" in address else ()
            self.server.ip("addr", "add", f"{address}/{length}", "dev", "eth0", *words)
        if self.routers:
            for version in (4, 6):
                self.server.ip("route", "add", EVERYWHERE[version], "via", FAR[version])

    def set_mtu(self, mtu: int) -> None:
        """Lets the wire carry packets of so many bytes."""
        self.client.ip("link", "set", INTERFACE, "mtu", str(mtu))
        if self.server is not self.client:
            self.server.ip("link", "set", "eth0", "mtu", str(mtu))

    def command(self, *words: str, server: bool = False) -> list[str]:
        """A command in the client's namespace, or in the server's."""
        namespace = self.server if server else self.client
        return ["ip", "netns", "exec", namespace.name, *words]

    def close(self) -> None:
        if self.spoiler:
            self.spoiler.close()
        for namespace in self._all:
            namespace.close()


def output_of(command: list[str], timeout: float) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    return done.stdout
