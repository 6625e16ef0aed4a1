"""The kernel in the middle: the router that everybody trusts, to try the scenarios on."""

from __future__ import annotations

import contextlib
import time

from middle import Middle, Service
from network import BACKENDS, GATEWAYS, INNER_GATEWAY, MIDDLE
from namespaces import run

VIRTUAL, VIRTUAL6 = "203.0.113.100", "2001:db8:113::100"

TRANSLATION = """
table ip rlive {
  chain out { type nat hook postrouting priority srcnat; oifname "wan" masquerade; }
  chain through { type filter hook forward priority filter; policy drop;
    ct state established,related accept
    iifname "lan" accept
  }
}
"""
BALANCING = f"""
table ip rlive {{
  chain in {{ type nat hook prerouting priority dstnat;
    ip daddr {VIRTUAL} tcp dport 80 dnat to numgen inc mod 3 map {{
      {", ".join(f"{n} : {BACKENDS[n][0]}" for n in range(3))} }}
  }}
}}
table ip6 rlive {{
  chain in {{ type nat hook prerouting priority dstnat;
    ip6 daddr {VIRTUAL6} tcp dport 80 dnat to numgen inc mod 3 map {{
      {", ".join(f"{n} : {BACKENDS[n][1]}" for n in range(3))} }}
  }}
}}
"""


class KernelMiddle(Middle):
    """ip_forward with nftables, or a bridge."""

    is_process = False

    def start(self) -> None:
        middle, service = self.network.middle, self.ground.service
        if service.has_one_link:
            middle.ip("link", "add", "wire", "mtu", str(self.network.mtu), "type", "bridge")
            for interface in self.network.ports:
                middle.ip("link", "set", interface, "master", "wire")
            middle.ip("link", "set", "wire", "up")
            return
        for interface, (v4, v6) in MIDDLE.items():
            middle.ip("addr", "add", f"{v4}/24", "dev", interface)
            middle.ip("-6", "addr", "add", f"{v6}/64", "dev", interface, "nodad")
        if service in (Service.NAT, Service.ROUTER):
            middle.ip("route", "add", "default", "via", GATEWAYS[0])
            middle.ip("-6", "route", "add", "default", "via", GATEWAYS[1])
            middle.ip("route", "add", "10.0.0.0/8", "via", INNER_GATEWAY)
        middle.sysctl([("net.ipv4.ip_forward", 1), ("net.ipv6.conf.all.forwarding", 1)])
        if service is Service.NAT:
            middle.nft(TRANSLATION)
        if service is Service.BALANCER:
            middle.ip("addr", "add", f"{VIRTUAL}/32", "dev", "wan")
            middle.ip("-6", "addr", "add", f"{VIRTUAL6}/128", "dev", "wan", "nodad")
            middle.nft(BALANCING)

    def stop(self) -> dict[str, object]:
        middle = self.network.middle
        middle.sysctl([("net.ipv4.ip_forward", 0), ("net.ipv6.conf.all.forwarding", 0)])
        # This takes the connections with it, which belong to the addresses.
        middle.nft("flush ruleset")
        with contextlib.suppress(RuntimeError):
            middle.ip("link", "del", "wire")
        for interface in MIDDLE:
            with contextlib.suppress(RuntimeError):
                middle.ip("addr", "flush", "dev", interface)
        return {}

    def crash(self) -> None:
        self.stop()
        # Conntrack notices with the next packet only that the masquerading address is gone.
        time.sleep(0.2)

    def rewrite_table(self, device: str, seed: int) -> None:
        """The nearest thing that the kernel has: another processor for the packets of an interface."""
        middle = self.network.middle
        mask = 1 + seed % 2
        file = f"/sys/class/net/{device}/queues/rx-0/rps_cpus"
        run("ip", "netns", "exec", middle.name, "sh", "-c", f"echo {mask} > {file}")

    def diagnosis(self) -> str:
        return ""
