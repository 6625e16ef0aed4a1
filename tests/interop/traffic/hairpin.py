"""Inside hosts that reach one another by way of the external address."""

from __future__ import annotations

from datagram import TCP, UDP, Endpoint
from scenario import EXTERNAL, Forward, Scenario, Script
from traffic.packets import HOST_A, REMOTE, ROUTER_OUT, SERVED, TEXT, icmp_error, tcp, udp

WEB, DNS = Endpoint(SERVED, 80), Endpoint(SERVED, 53)
FORWARDS = (Forward(TCP, 8_080, WEB), Forward(UDP, 5_300, DNS))


def scenarios() -> list[Scenario]:
    return [forwarded(), hairpin()]


def forwarded() -> Scenario:
    script = Script("static forwards, from outside", FORWARDS)
    visitor = Endpoint(REMOTE, 60_000)
    script.wan(tcp(visitor, WEB, "S", seq=1), "SYN")
    script.lan(tcp(WEB, visitor, "SA", seq=7, ack=2), "SYN and ACK")
    script.wan(tcp(visitor, WEB, "PA", TEXT, seq=2, ack=8), "question")
    script.lan(tcp(WEB, visitor, "PA", TEXT, seq=8, ack=2 + len(TEXT)), "answer")
    script.wan(udp(visitor, DNS), "UDP question")
    script.lan(udp(DNS, visitor), "UDP answer")
    # The server behind the forward refuses, quoting what it got.
    script.wan(udp(visitor, DNS, b"again"), "UDP question again")
    script.lan(icmp_error(SERVED, 3, 3, udp(visitor, DNS, b"again")), "port unreachable, from inside")
    for quoted in (8, None):
        error = icmp_error(ROUTER_OUT, 3, 1, udp(DNS, visitor), quoted)
        script.wan(error, "host unreachable, about the answer of the forwarded host")
    return script.done()


def hairpin() -> Scenario:
    script = Script("hairpin: inside hosts by way of the external address", FORWARDS)
    client = Endpoint(HOST_A, 45_000)
    script.lan(tcp(client, WEB, "S", seq=1), "SYN")
    script.lan(tcp(WEB, client, "SA", seq=7, ack=2), "SYN and ACK")
    script.lan(tcp(client, WEB, "PA", TEXT, seq=2, ack=8), "question")
    script.lan(tcp(WEB, client, "PA", TEXT * 2, seq=8, ack=2 + len(TEXT)), "answer")
    script.lan(udp(client, DNS), "UDP question")
    script.lan(udp(DNS, client), "UDP answer")
    for quoted in (8, None):
        error = icmp_error(SERVED, 3, 3, udp(client, DNS), quoted)
        script.lan(error, "port unreachable, to the host that asked (RFC 5508, REQ-7)")
    script.lan(tcp(client, Endpoint(EXTERNAL, 9_999), "S", seq=1), "SYN to a port that leads nowhere")
    return script.done()
