"""Datagrams in fragments, in order and out of it."""

from __future__ import annotations

from datagram import Endpoint
from scenario import Scenario, Script, Side
from traffic.packets import HOST_A, HOST_B, REMOTE, TEXT, echo, echo_reply, udp

IN_ORDER = ((0, 1_000), (1_000, 2_000), (2_000, 9_999))
ORDERS = {
    "in order": IN_ORDER,
    "last first": (IN_ORDER[2], IN_ORDER[1], IN_ORDER[0]),
    "middle first": (IN_ORDER[1], IN_ORDER[0], IN_ORDER[2]),
    "two pieces, second first": ((1_480, 9_999), (0, 1_480)),
}
DATA = TEXT * 60


def scenarios() -> list[Scenario]:
    return [both_ways(name, cuts) for name, cuts in ORDERS.items()] + [pings(), two_at_once(), duplicate(), gap()]


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
