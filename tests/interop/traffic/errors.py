"""ICMP errors about translated packets, and the packets quoted in them."""

from __future__ import annotations

from scapy.packet import Packet

from datagram import Endpoint
from scenario import EXTERNAL, Scenario, Script
from traffic.packets import (
    HOST_A,
    HOST_B,
    REMOTE,
    REMOTE_2,
    ROUTER_IN,
    ROUTER_OUT,
    TEXT,
    echo,
    echo_reply,
    icmp_error,
    tcp,
    udp,
)
from traffic.sessions import handshake


def scenarios() -> list[Scenario]:
    return [about_udp(), about_tcp(), about_echo(), from_inside(), about_nothing()]


def every_length(script: Script, about: Packet, lengths: tuple[int | None, ...]) -> None:
    """Errors of each kind from a router outside about a packet from inside, quoted short and in full."""
    for kind, code, how in (
        (3, 0, {}),
        (3, 1, {}),
        (3, 3, {}),
        (3, 4, {"nexthopmtu": 1_400}),
        (3, 13, {}),
        (11, 0, {}),
        (12, 0, {"ptr": 9}),
    ):
        for quoted in lengths:
            length = "all" if quoted is None else f"{quoted} bytes"
            error = icmp_error(ROUTER_OUT, kind, code, about, quoted, **how)
            script.wan(error, f"ICMP {kind} {code}, {length} quoted")


def about_udp() -> Scenario:
    script = Script("ICMP errors about UDP, from outside")
    client, server = Endpoint(HOST_A, 33_434), Endpoint(REMOTE, 33_434)
    question = udp(client, server, TEXT * 3)
    script.lan(question, "question")
    every_length(script, question, (8, 9, 28, None))
    # Without a checksum there is none to update in the quote either.
    bare = udp(Endpoint(HOST_A, 33_435), server, TEXT, chksum=0)
    script.lan(bare, "question without a checksum")
    every_length(script, bare, (8, None))
    script.wan(udp(server, client), "the flow still answers")
    # From the remote itself, as one that has no such port.
    script.wan(icmp_error(REMOTE, 3, 3, question, 8), "port unreachable, from the remote")
    script.lan(question, "the flow still asks")
    return script.done()


def about_tcp() -> Scenario:
    script = Script("ICMP errors about TCP, from outside")
    client, server = Endpoint(HOST_A, 40_100), Endpoint(REMOTE, 80)
    handshake(script, client, server)
    data = tcp(client, server, "PA", TEXT * 20, seq=101, ack=901)
    script.lan(data, "data")
    # Up to the ports and the sequence number; up to the checksum's first byte, its last, and behind it.
    every_length(script, data, (8, 17, 18, 20, 548, None))
    script.wan(tcp(server, client, "A", seq=901, ack=101), "the connection is still there")
    return script.done()


def about_echo() -> Scenario:
    script = Script("ICMP errors about echo, from outside")
    question = echo(HOST_A, REMOTE, 1_234)
    script.lan(question, "echo")
    every_length(script, question, (8, None))
    script.wan(echo_reply(REMOTE, HOST_A, 1_234), "reply after errors")
    # A traceroute: the answer comes as an error, from somebody else each time.
    for seq in range(2, 5):
        probe = echo(HOST_B, REMOTE, 4_321, seq)
        script.lan(probe, "probe")
        script.wan(icmp_error(f"198.51.100.{100 + seq}", 11, 0, probe, 8), "time exceeded")
    return script.done()


def from_inside() -> Scenario:
    script = Script("ICMP errors from inside")
    client, server = Endpoint(HOST_A, 33_500), Endpoint(REMOTE, 53)
    question, answer = udp(client, server), udp(server, client, TEXT * 2)
    script.lan(question, "question")
    script.wan(answer, "answer")
    for quoted in (8, 30, None):
        script.lan(icmp_error(HOST_A, 3, 3, answer, quoted), "port unreachable, from the host")
        script.lan(icmp_error(ROUTER_IN, 3, 1, answer, quoted), "host unreachable, from a router inside")
    client, server = Endpoint(HOST_B, 40_200), Endpoint(REMOTE_2, 80)
    handshake(script, client, server)
    data = tcp(server, client, "PA", TEXT * 20, seq=901, ack=101)
    script.wan(data, "data")
    for quoted in (8, 20, None):
        script.lan(icmp_error(ROUTER_IN, 3, 4, data, quoted, nexthopmtu=1_300), "too big, from a router inside")
    script.wan(data, "data again")
    return script.done()


def about_nothing() -> Scenario:
    script = Script("ICMP errors about packets that never were")
    client = Endpoint(HOST_A, 33_600)
    script.lan(udp(client, Endpoint(REMOTE, 53)), "question")
    never = udp(Endpoint(EXTERNAL, 33_600), Endpoint(REMOTE_2, 54))
    script.wan(icmp_error(ROUTER_OUT, 3, 1, never), "about a flow that is not there")
    script.wan(icmp_error(ROUTER_OUT, 3, 1, echo(EXTERNAL, REMOTE, 5)), "about an echo that was not sent")
    never = udp(Endpoint(REMOTE, 53), Endpoint(HOST_A, 33_601))
    script.lan(icmp_error(HOST_A, 3, 3, never), "from inside, about a packet that did not come")
    quoted = udp(client, Endpoint(REMOTE, 53))
    nested = icmp_error(ROUTER_OUT, 3, 1, quoted)
    script.wan(icmp_error(ROUTER_OUT, 3, 1, nested), "an error about an error", literal=True)
    return script.done()
