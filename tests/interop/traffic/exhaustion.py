"""More flows than there are ports for."""

from __future__ import annotations

from datagram import Endpoint
from scenario import Scenario, Script
from traffic.packets import REMOTE, tcp, udp

PORTS = (5_000, 5_003)


def scenarios() -> list[Scenario]:
    return [udp_ports(), tcp_ports()]


def udp_ports() -> Scenario:
    script = Script("four ports for six UDP flows to one remote", ports=PORTS)
    server = Endpoint(REMOTE, 53)
    clients = [Endpoint(f"10.0.1.{host}", 6_000 + host % 2) for host in range(1, 7)]
    # Answered first: rheo gives a port that nobody has answered to another host.
    for client in clients[:4]:
        script.lan(udp(client, server), "question")
        script.wan(udp(server, client), "answer")
    for client in clients[4:]:
        script.lan(udp(client, server), "question")
    script.lan(udp(clients[0], server), "one that has a port goes on")
    return script.done()


def tcp_ports() -> Scenario:
    script = Script("four ports for six TCP connections to one remote", ports=PORTS)
    server = Endpoint(REMOTE, 80)
    clients = [Endpoint(f"10.0.1.{host}", 6_000 + host) for host in range(1, 7)]
    for client in clients[:4]:
        script.lan(tcp(client, server, "S", seq=1), "SYN")
        script.wan(tcp(server, client, "SA", seq=7, ack=2), "SYN and ACK")
    for client in clients[4:]:
        script.lan(tcp(client, server, "S", seq=1), "SYN")
    return script.done()
