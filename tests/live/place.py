"""Where a scenario takes place: a network with a running middle and servers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

from expect import eventually, expect_success
from host import Host
from kernel import VIRTUAL, VIRTUAL6
from middle import Ground, Middle, Service
from network import NEIGHBOUR, OUTSIDE, Network
from servers import HTTP_PORT, IPERF_PORT, ContentServer, EchoServer

#: Until packets pass. Seconds.
PATIENCE = 120


class Place:
    """Clients are inside and servers outside, except before a load balancer, where it is the other way round."""

    def __init__(self, make: Callable[[Network, Ground], Middle], ground: Ground, damage: int | None = None) -> None:
        self.ground = ground
        #: How long any one thing that a client does may take. Seconds.
        self.patience = 120.0
        service = ground.service
        self.network = Network(
            service is Service.BALANCER,
            mtu=9000 if service.has_one_link else 1500,
            third=service is Service.BRIDGE,
        )
        self._servers: list[ContentServer | EchoServer] = []
        try:
            self.middle = make(self.network, ground)
            if service is Service.BALANCER:
                self.client, self.server = self.network.outside, self.network.inside[0]
                for n in range(len(self.network.inside)):
                    self._servers.append(self._backend(n, damage))
                self.address, self.address6, self.port = VIRTUAL, VIRTUAL6, 80
            else:
                self.client, self.server = self.network.client, self.network.outside
                self._servers.append(ContentServer(self.server, damage=damage))
                self._servers.append(EchoServer(self.server))
                quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                self.server.start("iperf3", "-s", "-p", str(IPERF_PORT), **quiet)
                self.address, self.address6 = OUTSIDE
                self.port = HTTP_PORT
                if service.has_one_link:
                    self.network.join()
                    self.address, self.address6 = NEIGHBOUR
                else:
                    self.network.extend()
            self.start_middle()
        except BaseException:
            self.close()
            raise

    def stop_backend(self, n: int) -> None:
        """From now on the host refuses connections."""
        self._servers[n].close()

    def start_backend(self, n: int) -> None:
        self._servers[n] = self._backend(n)

    def _backend(self, n: int, damage: int | None = None) -> ContentServer:
        return ContentServer(self.network.inside[n], f"backend{n}", port=80, damage=damage)

    def start_middle(self) -> None:
        """Starts the middle and waits until packets pass."""
        self.middle.start()
        self.wait_until_open()

    def wait_until_open(self) -> None:
        eventually(self.is_open, PATIENCE, f"nothing passes: {self.middle.diagnosis()}")

    def is_open(self, address: str | None = None) -> bool:
        """Whether an echo request is answered, by the server or, for its own address, by the load balancer."""
        return self.client.run("ping", "-c", "1", "-W", "1", address or self.address).returncode == 0

    def get(self, length: int, address: str | None = None) -> tuple[bytes, dict[str, str]]:
        """What curl gets from the server, and the headers of the answer."""
        address = address or self.address
        place = f"[{address}]" if ":" in address else address
        done = self.client.run(
            "curl", "-sS", "-i", "--noproxy", "*", "--max-time", str(self.patience),
            f"http://{place}:{self.port}/{length}",
            patience=self.patience + 5,
        )  # fmt: skip
        head, _, body = expect_success(done).partition(b"\r\n\r\n")
        return body, dict(re.findall(r"^([\w-]+): (.*?)\r?$", head.decode(), re.MULTILINE))

    def close(self) -> None:
        for server in self._servers:
            server.close()
        self.network.close()
