"""TCP flows of a size, many at once: `flows.py serve FIRST_PORT PORTS` or `flows.py send ADDRESS PORT BYTES FLOWS`.

A flow is a connection, its bytes, the end of them, and the other side's end, which comes once all bytes have arrived. `send` prints
a line of JSON: of each flow, milliseconds from before `connect` to after `close`. One thread each, so that 128 flows do not cost
128 threads; the time that Python takes for a flow is in the figures.
"""

from __future__ import annotations

import json
import selectors
import signal
import socket
import sys
import time

#: By socket, since namespaces may set only what the machine allows everybody.
CONGESTION_CONTROL = b"cubic"
#: Bytes that a call sends or takes at most.
CHUNK = 1 << 18
#: Connections that wait to be accepted.
BACKLOG = 1024
#: Without any event for so long, nothing will come. Seconds.
TIMEOUT = 30.0


def serve(ports: range) -> None:
    """Takes what comes until it is killed."""
    buffer = bytearray(CHUNK)
    with selectors.DefaultSelector() as selector:
        for port in ports:
            listener = socket.create_server(("", port), backlog=BACKLOG)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION_CONTROL)
            listener.setblocking(False)
            selector.register(listener, selectors.EVENT_READ, "listener")
        print("listening", flush=True)
        while True:
            for key, _ in selector.select():
                if key.data == "listener":
                    connection, _ = key.fileobj.accept()
                    connection.setblocking(False)
                    selector.register(connection, selectors.EVENT_READ)
                elif ended(key.fileobj, buffer):
                    selector.unregister(key.fileobj)
                    key.fileobj.close()


def ended(connection: socket.socket, buffer: bytearray) -> bool:
    """Takes what has come, and returns whether it was the end."""
    try:
        return connection.recv_into(buffer) == 0
    except BlockingIOError:
        return False
    except ConnectionError:
        # The sender finds out.
        return True


class Flow:
    """A connection that sends so many bytes."""

    def __init__(self, address: str, port: int, size: int, source: memoryview) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION_CONTROL)
        self.socket.setblocking(False)
        self._target = (address, port)
        self._left = size
        self._source = source
        self._start = 0.0

    def connect(self) -> None:
        self._start = time.monotonic()
        self.socket.connect_ex(self._target)

    def send(self) -> bool:
        """Sends what there is room for. Returns whether that was all; then the end was sent, too."""
        # Not connected, if so: the reason is raised.
        self._left -= self.socket.send(self._source[: min(self._left, len(self._source))])
        if self._left == 0:
            self.socket.shutdown(socket.SHUT_WR)
        return self._left == 0

    def close(self) -> float:
        """Milliseconds since before `connect`."""
        self.socket.close()
        return 1e3 * (time.monotonic() - self._start)


def send(address: str, port: int, size: int, count: int) -> list[float]:
    """Milliseconds of each flow; all begin as fast as one thread can."""
    source, buffer, times = memoryview(bytes(CHUNK)), bytearray(16), []
    flows = [Flow(address, port, size, source) for _ in range(count)]
    with selectors.DefaultSelector() as selector:
        for flow in flows:
            flow.connect()
            selector.register(flow.socket, selectors.EVENT_WRITE, flow)
        while len(times) < count:
            events = selector.select(TIMEOUT)
            if not events:
                raise TimeoutError(f"{count - len(times)} of {count} flows of {size} bytes do not end")
            for key, mask in events:
                flow = key.data
                if mask & selectors.EVENT_WRITE:
                    if flow.send():
                        selector.modify(flow.socket, selectors.EVENT_READ, flow)
                elif ended(flow.socket, buffer):
                    selector.unregister(flow.socket)
                    times.append(flow.close())
    return times


if __name__ == "__main__":
    # Ctrl-C ends it without a word; who started it says what there is to say.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.argv[1] == "serve":
        first, ports = map(int, sys.argv[2:4])
        serve(range(first, first + ports))
    else:
        address, port, size, count = sys.argv[2], *map(int, sys.argv[3:6])
        print(json.dumps(send(address, port, size, count)))
