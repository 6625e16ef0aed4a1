"""Which scenarios run on which ground, and which fault each must notice."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import faults
from faults import Fault
from middle import Ground, Service
from place import Place
from scenarios import balancing, beyond, fetch, flood, health, hops, jumbo, learning, links, mtu, order, ping, reload, restart
from scenarios import rewrites, scrapes, short, throughput, transfer, vlan


@dataclass(frozen=True)
class Scenario:
    """One thing to try."""

    name: str
    services: tuple[Service, ...]
    run: Callable[[Place], None]
    #: What makes it fail.
    fault: Fault | None
    #: Has a middle to itself: what it does to it would disturb others, or its summary is looked at.
    alone: bool = False
    #: Looks at the summary of a middle that is stopped afterwards.
    check: Callable[[Place, dict], None] | None = None
    #: Stops the middle itself.
    ends_middle: bool = False
    #: Only for a middle that is a process.
    process: bool = False
    #: Takes long, so on few grounds only.
    long: bool = False


NAT, BALANCER, ROUTER = Service.NAT, Service.BALANCER, Service.ROUTER
WIRE, BRIDGE = Service.WIRE, Service.BRIDGE

SCENARIOS = (
    Scenario("ping", (NAT, BALANCER, ROUTER, WIRE, BRIDGE), ping.small_and_large, faults.LOST_ECHOES),
    Scenario("ping, fragments", (NAT, ROUTER), ping.fragmented, faults.LOST_FRAGMENTS),
    Scenario("ping the middle", (NAT, BALANCER, ROUTER), ping.to_the_middle, faults.LOST_ECHOES),
    Scenario("ping, IPv6", (ROUTER, NAT, WIRE, BRIDGE), ping.version6, faults.LOST_ECHOES6),
    Scenario("traceroute", (NAT, ROUTER), hops.version4, faults.SILENT_HOP),
    Scenario("traceroute, IPv6", (ROUTER,), hops.version6, faults.SILENT_HOP6),
    Scenario("curl", (NAT, BALANCER, ROUTER), fetch.version4, faults.WRONG_DATA),
    Scenario("curl, IPv6", (ROUTER, NAT, WIRE, BRIDGE, BALANCER), fetch.version6, faults.WRONG_TCP),
    Scenario("the default routes", (ROUTER, NAT), beyond.the_world, faults.LOST_ECHOES),
    Scenario("a network inside", (ROUTER,), beyond.a_network_inside, faults.NO_ECHOES),
    Scenario("a bridge learns", (BRIDGE,), learning.frames_go_where_their_station_is, faults.FLOODED),
    Scenario("a bridge floods", (BRIDGE,), learning.broadcasts_and_unknown_stations_reach_all, faults.NO_BROADCASTS),
    Scenario("the external address", (NAT,), fetch.translated, faults.WRONG_TCP),
    Scenario("three backends", (BALANCER,), balancing.all_backends_serve, faults.WRONG_TCP),
    Scenario("backends see clients", (BALANCER,), balancing.backends_see_clients, faults.NO_TCP),
    Scenario("a backend fails", (BALANCER,), health.found_out, None, alone=True, process=True),
    Scenario("iperf3, TCP", (NAT, ROUTER), throughput.tcp, faults.CUT_OFF),
    Scenario("iperf3, UDP", (NAT, ROUTER), throughput.udp, faults.LOST_DATAGRAMS),
    Scenario("numbered datagrams", (NAT, ROUTER, WIRE, BRIDGE), order.version4, faults.LOST_DATAGRAMS),
    Scenario("numbered datagrams, IPv6", (NAT, ROUTER, WIRE, BRIDGE), order.version6, faults.LOST_DATAGRAMS),
    Scenario("tagged frames", (WIRE, BRIDGE), vlan.tagged, faults.NO_VLANS),
    Scenario("frames of 9,000 bytes", (WIRE, BRIDGE), jumbo.whole, faults.SHORT),
    Scenario("another MTU", (NAT, ROUTER), mtu.version4, faults.NOT_TOLD),
    Scenario("another MTU, IPv6", (NAT, ROUTER), mtu.version6, faults.NOT_TOLD6),
    Scenario("another MTU on a wire", (WIRE, BRIDGE), mtu.without_addresses, faults.SHORT),
    Scenario("short connections", (NAT,), short.many, faults.CUT_OFF),
    Scenario("flood from inside", (NAT,), flood.from_inside, faults.FEW),
    Scenario("flood from outside", (NAT,), flood.from_outside, faults.FEW),
    Scenario("down and up", (NAT,), links.down_and_up, faults.CUT_OFF, alone=True),
    Scenario("stopped and started", (NAT,), restart.twice, faults.CUT_OFF, alone=True),
    Scenario("a rule changes", (NAT,), reload.rule_changes, None, alone=True, process=True),
    Scenario("killed and started", (NAT,), restart.after_a_crash, faults.CUT_OFF, alone=True),
    Scenario("an interface vanishes", (NAT,), links.vanished, None, alone=True, process=True, ends_middle=True),
    Scenario("an interface returns", (NAT,), links.returned, None, alone=True, process=True),
    Scenario("Prometheus scrapes", (NAT,), scrapes.by_prometheus, None, alone=True, process=True),
    Scenario("1,000 rewrites", (NAT,), rewrites.thousand, faults.CUT_OFF, alone=True, check=rewrites.check, long=True),
    Scenario("a gigabyte", (NAT, BALANCER), transfer.checksums_equal, faults.WRONG_DATA_LATE, long=True),
)

XDP, PACKET = "af_xdp", "af_packet"
#: Where the long ones run, too.
MAIN = (Ground(NAT, (XDP, XDP), 2), Ground(BALANCER, (XDP, XDP), 2))
GROUNDS = (
    *(Ground(service, (XDP, XDP), lanes) for service, lanes in itertools.product((NAT, BALANCER), (1, 2))),
    *(Ground(service, (PACKET, PACKET), 2) for service in (NAT, BALANCER)),
    Ground(NAT, (XDP, PACKET), 1),
    *(Ground(service, (XDP, XDP), 2) for service in (ROUTER, WIRE, BRIDGE)),
    *(Ground(service, (PACKET, PACKET), 1) for service in (ROUTER, WIRE, BRIDGE)),
    *(Ground(ROUTER, (XDP, XDP), 2, sharing=2, ordered=ordered) for ordered in (False, True)),
    *(Ground(service, (XDP, XDP), 2, sharing=2, ordered=True) for service in (WIRE, BRIDGE)),
)


def scenarios_on(ground: Ground) -> list[Scenario]:
    """What is tried on a ground: alone ones where the first device is AF_XDP on two lanes or AF_PACKET."""
    whole = ground.devices is None or ground in MAIN
    chosen = [scenario for scenario in SCENARIOS if ground.service in scenario.services]
    return [scenario for scenario in chosen if whole or not (scenario.alone or scenario.long)]
