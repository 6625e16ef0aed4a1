"""Hosts that talk as most do: TCP connections, questions and answers, pings."""

from __future__ import annotations

from datagram import Endpoint
from scenario import Scenario, Script
from traffic.packets import HOST_A, HOST_B, HOST_C, REMOTE, REMOTE_2, TEXT, echo, echo_reply, tcp, udp

SYN_OPTIONS = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1000, 0)), ("NOP", None), ("WScale", 7)]


def scenarios() -> list[Scenario]:
    return [
        tcp_life(),
        tcp_reset_by_remote(),
        tcp_simultaneous_open(),
        udp_questions(),
        pings(),
        equal_ports(),
        one_port_many_remotes(),
        uninvited(),
    ]


def handshake(script: Script, client: Endpoint, server: Endpoint) -> None:
    """A connection from inside, open."""
    script.lan(tcp(client, server, "S", seq=100, options=SYN_OPTIONS), "SYN")
    script.wan(tcp(server, client, "SA", seq=900, ack=101, options=SYN_OPTIONS), "SYN and ACK")
    script.lan(tcp(client, server, "A", seq=101, ack=901), "ACK")


def tcp_life() -> Scenario:
    script = Script("TCP: open, data both ways, close")
    client, server = Endpoint(HOST_A, 40_000), Endpoint(REMOTE, 80)
    handshake(script, client, server)
    script.lan(tcp(client, server, "PA", TEXT, seq=101, ack=901), "question")
    script.wan(tcp(server, client, "A", seq=901, ack=101 + len(TEXT)), "ACK")
    # An odd length, so that the checksum ends in half a word.
    script.wan(tcp(server, client, "PA", TEXT + b"!", seq=901, ack=101 + len(TEXT)), "answer")
    script.lan(tcp(client, server, "A", seq=101 + len(TEXT), ack=901 + len(TEXT) + 1), "ACK")
    script.lan(tcp(client, server, "FA", seq=101 + len(TEXT), ack=902 + len(TEXT)), "FIN")
    script.wan(tcp(server, client, "FA", seq=902 + len(TEXT), ack=102 + len(TEXT)), "FIN back")
    script.lan(tcp(client, server, "A", seq=102 + len(TEXT), ack=903 + len(TEXT)), "last ACK")
    script.wan(tcp(server, client, "FA", seq=902 + len(TEXT), ack=102 + len(TEXT)), "FIN again")
    script.lan(tcp(client, server, "A", seq=102 + len(TEXT), ack=903 + len(TEXT)), "last ACK again")
    return script.done()


def tcp_reset_by_remote() -> Scenario:
    script = Script("TCP: refused, and reset while open")
    client, server = Endpoint(HOST_A, 40_001), Endpoint(REMOTE, 81)
    script.lan(tcp(client, server, "S", seq=100), "SYN")
    script.wan(tcp(server, client, "RA", seq=0, ack=101), "refusal")
    client = Endpoint(HOST_A, 40_002)
    handshake(script, client, server)
    script.wan(tcp(server, client, "R", seq=901), "reset")
    client = Endpoint(HOST_A, 40_003)
    handshake(script, client, server)
    script.lan(tcp(client, server, "R", seq=101), "reset from inside")
    return script.done()


def tcp_simultaneous_open() -> Scenario:
    script = Script("TCP: simultaneous open")
    client, server = Endpoint(HOST_A, 40_010), Endpoint(REMOTE, 50_010)
    script.lan(tcp(client, server, "S", seq=100), "SYN")
    script.wan(tcp(server, client, "S", seq=900), "SYN the other way")
    script.lan(tcp(client, server, "SA", seq=100, ack=901), "SYN and ACK")
    script.wan(tcp(server, client, "SA", seq=900, ack=101), "SYN and ACK the other way")
    script.lan(tcp(client, server, "PA", TEXT, seq=101, ack=901), "data")
    return script.done()


def udp_questions() -> Scenario:
    script = Script("UDP: question and answer")
    client, server = Endpoint(HOST_A, 5_353), Endpoint(REMOTE, 53)
    for number in range(3):
        script.lan(udp(client, server, TEXT * number + b"?"), "question")
        script.wan(udp(server, client, TEXT * number + b"!!"), "answer")
    script.lan(udp(client, server, b""), "question without data")
    script.wan(udp(server, client, b""), "answer without data")
    # A length that fills the link's largest packet.
    script.lan(udp(client, server, b"x" * 1472), "1,500 bytes")
    script.wan(udp(server, client, b"y" * 1472), "1,500 bytes back")
    return script.done()


def pings() -> Scenario:
    script = Script("ICMP: echo")
    for host in (HOST_A, HOST_B):
        for seq in (1, 2):
            script.lan(echo(host, REMOTE, 77, seq), "echo")
            script.wan(echo_reply(REMOTE, host, 77, seq), "reply")
    script.lan(echo(HOST_A, REMOTE, 0, data=b""), "echo, identifier zero")
    script.wan(echo_reply(REMOTE, HOST_A, 0, data=b""), "reply, identifier zero")
    return script.done()


def equal_ports() -> Scenario:
    script = Script("equal source ports of several hosts to one remote")
    server, dns = Endpoint(REMOTE, 443), Endpoint(REMOTE, 53)
    hosts = [HOST_A, HOST_B, HOST_C]
    for host in hosts:
        script.lan(tcp(Endpoint(host, 50_000), server, "S", seq=1), "SYN")
        script.lan(udp(Endpoint(host, 50_000), dns), "question")
    # Answers in another order than the questions.
    for host in reversed(hosts):
        script.wan(tcp(server, Endpoint(host, 50_000), "SA", seq=7, ack=2), "SYN and ACK")
        script.wan(udp(dns, Endpoint(host, 50_000)), "answer")
    for host in hosts:
        script.lan(tcp(Endpoint(host, 50_000), server, "A", seq=2, ack=8), "ACK")
        script.lan(udp(Endpoint(host, 50_000), dns), "second question")
    return script.done()


def one_port_many_remotes() -> Scenario:
    script = Script("one source port to several remotes and ports")
    client = Endpoint(HOST_A, 51_000)
    remotes = [Endpoint(REMOTE, 53), Endpoint(REMOTE, 5_353), Endpoint(REMOTE_2, 53)]
    for remote in remotes:
        script.lan(udp(client, remote), "question")
    for remote in remotes:
        script.wan(udp(remote, client), "answer")
    return script.done()


def uninvited() -> Scenario:
    script = Script("packets from outside that nobody asked for")
    external = Endpoint("203.0.113.1", 40_000)
    script.wan(tcp(Endpoint(REMOTE, 50_000), external, "A", seq=5, ack=5), "ACK to a port without a flow")
    script.wan(tcp(Endpoint(REMOTE, 50_001), external, "R", seq=5), "reset to a port without a flow")
    script.wan(udp(Endpoint(REMOTE, 50_000), external), "UDP to a port without a flow")
    script.wan(echo(REMOTE, external.address, 9), "echo to the external address")
    script.wan(echo_reply(REMOTE, external.address, 9), "reply that nobody asked for")
    # To an inside address, straight: no remote can know it, and a translator does not let it in.
    script.wan(udp(Endpoint(REMOTE, 50_000), Endpoint(HOST_A, 53)), "UDP to an inside address", literal=True)
    script.lan(udp(Endpoint(HOST_A, 6_000), Endpoint(REMOTE, 6_000)), "question")
    script.wan(udp(Endpoint(REMOTE, 6_000), Endpoint(HOST_A, 6_000)), "answer")
    straight = udp(Endpoint(REMOTE, 6_000), Endpoint(HOST_A, 6_000))
    script.wan(straight, "answer straight to the inside address", literal=True)
    client, server = Endpoint(HOST_A, 6_001), Endpoint(REMOTE, 80)
    script.lan(tcp(client, server, "S", seq=100), "SYN")
    script.wan(tcp(server, client, "SA", seq=7, ack=101), "SYN and ACK straight to the inside address", literal=True)
    script.wan(tcp(server, client, "SA", seq=7, ack=101), "SYN and ACK")
    return script.done()
