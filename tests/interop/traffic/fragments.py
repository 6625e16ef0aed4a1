"""Datagrams in fragments, in order and out of it."""

from __future__ import annotations

from datagram import UDP, Endpoint, fragment
from scenario import Forward, Scenario, Script, Side
from traffic.packets import HOST_A, HOST_B, REMOTE, ROUTER_OUT, SERVED, TEXT, echo, echo_reply, icmp_error, udp

IN_ORDER = ((0, 1_000), (1_000, 2_000), (2_000, 9_999))
ORDERS = {
    "in order": IN_ORDER,
    "last first": (IN_ORDER[2], IN_ORDER[1], IN_ORDER[0]),
    "middle first": (IN_ORDER[1], IN_ORDER[0], IN_ORDER[2]),
    "two pieces, second first": ((1_480, 9_999), (0, 1_480)),
}
DATA = TEXT * 60


def scenarios() -> list[Scenario]:
    ways = [both_ways(name, cuts) for name, cuts in ORDERS.items()]
    return [*ways, pings(), two_at_once(), duplicate(), gap(), error_about_fragments(), forwarded()]


def both_ways(name: str, cuts: tuple[tuple[int, int], ...]) -> Scenario:
    script = Script(f"fragments of UDP, {name}")
    client, server = Endpoint(HOST_A, 30_000), Endpoint(REMOTE, 2_049)
    script.fragments(Side.LAN, udp(client, server, DATA), cuts, "question")
    script.fragments(Side.WAN, udp(server, client, DATA + b"!"), cuts, "answer")
    script.lan(udp(client, server, b"thanks"), "a whole datagram behind them")
    script.wan(udp(server, client, b"welcome"), "a whole answer")
    return script.done()


def pings() -> Scenario:
    script = Script("fragments of echo")
    for order in ("in order", "last first"):
        script.fragments(Side.LAN, echo(HOST_A, REMOTE, 99, data=DATA), ORDERS[order], "echo")
        script.fragments(Side.WAN, echo_reply(REMOTE, HOST_A, 99, data=DATA), ORDERS[order], "reply")
    return script.done()


def two_at_once() -> Scenario:
    script = Script("fragments of two datagrams, in turn")
    server = Endpoint(REMOTE, 2_049)
    for start, end in IN_ORDER:
        script.fragments(Side.LAN, udp(Endpoint(HOST_A, 30_001), server, DATA), [(start, end)], "of one host")
        script.fragments(Side.LAN, udp(Endpoint(HOST_B, 30_001), server, DATA), [(start, end)], "of the other")
    return script.done()


def duplicate() -> Scenario:
    script = Script("a fragment twice")
    client, server = Endpoint(HOST_A, 30_002), Endpoint(REMOTE, 2_049)
    cuts = (IN_ORDER[0], IN_ORDER[1], IN_ORDER[1], IN_ORDER[2])
    script.fragments(Side.LAN, udp(client, server, DATA), cuts, "question")
    return script.done()


def gap() -> Scenario:
    script = Script("a datagram without its middle")
    client, server = Endpoint(HOST_A, 30_003), Endpoint(REMOTE, 2_049)
    script.fragments(Side.LAN, udp(client, server, DATA), (IN_ORDER[0], IN_ORDER[2]), "question")
    return script.done()


def error_about_fragments() -> Scenario:
    """An error quotes the first fragment, as that has the ports."""
    script = Script("an ICMP error about a fragmented datagram")
    client, server = Endpoint(HOST_A, 30_004), Endpoint(REMOTE, 2_049)
    question = udp(client, server, DATA)
    script.fragments(Side.LAN, question, IN_ORDER, "question")
    first = fragment(bytes(question), *IN_ORDER[0])
    for quoted in (8, 500, None):
        script.wan(icmp_error(ROUTER_OUT, 11, 1, first, quoted), "reassembly time exceeded")
    return script.done()


def forwarded() -> Scenario:
    web = Endpoint(SERVED, 53)
    script = Script("fragments through a forward, and hairpin", (Forward(UDP, 5_300, web),))
    for order in ("in order", "last first"):
        script.fragments(Side.WAN, udp(Endpoint(REMOTE, 60_000), web, DATA), ORDERS[order], "from outside")
        script.fragments(Side.LAN, udp(web, Endpoint(REMOTE, 60_000), DATA), ORDERS[order], "answer")
        script.fragments(Side.LAN, udp(Endpoint(HOST_A, 30_005), web, DATA), ORDERS[order], "hairpin")
        script.fragments(Side.LAN, udp(web, Endpoint(HOST_A, 30_005), DATA), ORDERS[order], "hairpin, answer")
    return script.done()
