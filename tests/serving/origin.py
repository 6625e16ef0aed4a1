"""origin.py PORT DIR: gives and takes files over HTTP, at all addresses."""

from __future__ import annotations

import http.server
import socket
import sys
from pathlib import Path

#: Bytes copied at once.
PIECE = 1 << 16


class Files(http.server.SimpleHTTPRequestHandler):
    """Files of the directory; PUT writes them."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        left = int(self.headers["Content-Length"])
        if self.headers.get("Expect") == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        with open(self.translate_path(self.path), "wb") as file:
            while left > 0 and (piece := self.rfile.read(min(left, PIECE))):
                file.write(piece)
                left -= len(piece)
        self.send_response(201 if left == 0 else 400)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6


def main() -> None:
    port, root = int(sys.argv[1]), Path(sys.argv[2])

    def files(*args: object) -> Files:
        return Files(*args, directory=str(root))

    Server(("::", port), files).serve_forever()


if __name__ == "__main__":
    main()
