"""Two routers between client and server. The link between them may carry less than the others.

    client ══ out [near] narrow ══ narrow [far] out ══ server
"""

from __future__ import annotations

from namespaces import Namespace

#: The client's addresses, and those of the router next to it.
BEHIND = {4: "10.8.0.2", 6: "fd08::2"}
NEAR = {4: "10.8.0.1", 6: "fd08::1"}
#: The routers' addresses on the link between them.
BETWEEN = {4: ("10.7.0.1", "10.7.0.2"), 6: ("fd07::1", "fd07::2")}
#: The address of the router next to the server.
FAR = {4: "10.9.0.254", 6: "fd09::fe"}
CLIENTS = {4: "10.8.0.0/24", 6: "fd08::/64"}
SERVERS = {4: "10.9.0.0/24", 6: "fd09::/64"}
LENGTHS = {4: 24, 6: 64}
EVERYWHERE = {4: "0.0.0.0/0", 6: "::/0"}


class Routers:
    """The routers, which pass on packets of both versions of IP."""

    def __init__(self, near: Namespace, far: Namespace) -> None:
        self._near, self._far = near, far
        for namespace in (near, far):
            settings = (("net.ipv4.ip_forward", 1), ("net.ipv6.conf.all.forwarding", 1))
            namespace.sysctl(settings)
            for interface in ("lo", "out", "narrow"):
                namespace.ip("link", "set", interface, "up")
        for version in (4, 6):
            own, others = BETWEEN[version]
            length = LENGTHS[version]
            words = ("nodad",) if version == 6 else ()
            near.ip("addr", "add", f"{NEAR[version]}/{length}", "dev", "out", *words)
            near.ip("addr", "add", f"{own}/{length}", "dev", "narrow", *words)
            far.ip("addr", "add", f"{FAR[version]}/{length}", "dev", "out", *words)
            far.ip("addr", "add", f"{others}/{length}", "dev", "narrow", *words)
            near.ip("route", "add", SERVERS[version], "via", others)
            far.ip("route", "add", CLIENTS[version], "via", own)

    def narrow(self, mtu: int) -> None:
        """Lets the link between the routers carry packets of so many bytes."""
        for namespace in (self._near, self._far):
            namespace.ip("link", "set", "narrow", "mtu", str(mtu))

    def reports(self) -> int:
        """How often the server was told that a packet was too big."""
        v4, v6 = (self._far.output("cat", f"/proc/net/{file}") for file in ("snmp", "snmp6"))
        names, values = (line.split() for line in v4.splitlines() if line.startswith("Icmp:"))
        of_v6 = dict(line.split() for line in v6.splitlines())
        return int(dict(zip(names, values))["OutDestUnreachs"]) + int(of_v6["Icmp6OutPktTooBigs"])

    def lead(self, client: Namespace) -> None:
        """Tells the client the way."""
        for version in (4, 6):
            client.ip("route", "replace", EVERYWHERE[version], "via", NEAR[version])
