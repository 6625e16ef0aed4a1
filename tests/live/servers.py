"""Servers on hosts: threads of this process whose sockets live in the hosts' namespaces."""

from __future__ import annotations

import contextlib
import http.server
import socket
import socketserver
import threading

import content
from host import Host

HTTP_PORT, ECHO_PORT, IPERF_PORT = 8080, 7007, 5201


class ContentServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Answers GET /N with the first N bytes of the content, and says in a header who it is.

    `damage` is the number of a byte of each answer to send wrongly, to see that somebody notices."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, host: Host, name: str = "server", port: int = HTTP_PORT, damage: int | None = None) -> None:
        super().__init__(("::", port), _ContentHandler, bind_and_activate=False)
        self.socket.close()
        # One socket for both families.
        self.socket = host.socket(socket.AF_INET6, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("::", port))
        self.server_activate()
        self.name = name
        self.damage = damage
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no error of the server's."""

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _ContentHandler(http.server.BaseHTTPRequestHandler):
    server: ContentServer

    def do_GET(self) -> None:
        length = int(self.path.lstrip("/") or 0)
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.send_header("X-Server", self.server.name)
        self.send_header("X-Client", self.client_address[0].removeprefix("::ffff:"))
        self.end_headers()
        sent = 0
        for block in content.blocks(length):
            damage = self.server.damage
            if damage is not None and sent <= damage < sent + len(block):
                at = damage - sent
                block = block[:at] + bytes([block[at] ^ 1]) + block[at + 1 :]
            self.wfile.write(block)
            sent += len(block)

    def log_message(self, format: str, *args: object) -> None:
        pass


class EchoServer:
    """Sends back what it gets, over TCP."""

    def __init__(self, host: Host, port: int = ECHO_PORT) -> None:
        self._listener = host.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("", port))
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=_echo, args=(connection,), daemon=True).start()

    def close(self) -> None:
        # Closing alone does not wake who waits in accept.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def _echo(connection: socket.socket) -> None:
    with connection, contextlib.suppress(OSError):
        while data := connection.recv(1 << 16):
            connection.sendall(data)
