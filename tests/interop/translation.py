"""What a router translates to what, learned from what comes out of it.

Packets of the comparison are told in the *inside view*, in which nothing is translated. The table turns that
view into what a router must be sent, and what a router sends into that view; so the ports that it has chosen drop
out of the comparison, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterable

from datagram import Datagram, Endpoint, Flow
from scenario import EXTERNAL, Forward, Side, Step, ipv4, is_inside


class Translation:
    """The external endpoints of one router, by inside endpoint and remote."""

    def __init__(self, forwards: Iterable[Forward] = ()) -> None:
        self._outward: dict[Flow, Endpoint] = {}
        self._inward: dict[Flow, Endpoint] = {}
        self._static = {(f.protocol, f.internal): Endpoint(EXTERNAL, f.external_port) for f in forwards}
        self._static_inward = {(proto, external): inside for (proto, inside), external in self._static.items()}
        #: What a translator must not do: two inside endpoints behind one, or a change in mid-flow.
        self.complaints: list[str] = []

    def learn(self, step: Step, out: bytes) -> None:
        """Notes the port that was chosen, when `out` is the packet of `step` with an external source."""
        asked, leaves = ipv4(step.packet), ipv4(out)
        if step.side is Side.WAN or asked is None or leaves is None:
            return
        flow, seen = asked.flow(), leaves.flow()
        if flow is None or seen is None or seen.source.address != EXTERNAL or flow.source.address == EXTERNAL:
            return
        seen = seen._replace(destination=self._real(seen.protocol, seen.destination))
        flow = flow._replace(destination=self._real(flow.protocol, flow.destination))
        if seen.protocol != flow.protocol or seen.destination != flow.destination:
            return
        if self._external(flow.protocol, flow.source, flow.destination) == seen.source:
            return
        static = self._static.get((flow.protocol, flow.source))
        if static is not None:
            self.complaints.append(f"{flow.source} has the forward {static} and left from {seen.source}")
        # A SYN opens a connection, which may get another endpoint once the one before is over.
        if flow in self._outward and not _opens(asked):
            self.complaints.append(f"{flow.source} to {flow.destination}: {self._outward[flow]} became {seen.source}")
        if self._inward.get(seen, flow.source) != flow.source:
            self.complaints.append(f"{seen.source} for {self._inward[seen]} and {flow.source}, to {flow.destination}")
        self._outward[flow] = seen.source
        self._inward[seen] = flow.source

    def to_send(self, step: Step) -> bytes | None:
        """The packet of a step as the router must be sent it; `None` while the endpoint is not known."""
        packet = ipv4(step.packet)
        raw: bytes | None = step.packet
        if packet is not None and not step.literal:
            raw = self._outside_view(step.side, packet)
        if raw is not None and step.finish is not None:
            raw = step.finish(raw)
        return raw

    def inside_view(self, raw: bytes) -> bytes:
        """A whole datagram that left the router, as it was before translation."""
        packet = ipv4(raw)
        if packet is None:
            return raw
        quote = packet.quote()
        if quote is not None:
            self._untranslate(quote, mirrored=True)
            packet.replace_quote(quote)
        else:
            self._untranslate(packet, mirrored=False)
        return bytes(packet)

    def inside_view_of_fragments(self, pieces: list[Datagram]) -> list[bytes]:
        """Fragments of one datagram: the first, if it is there, tells whose they are."""
        first = next((piece for piece in pieces if piece.offset == 0), None)
        views = [Datagram(self.inside_view(bytes(piece))) for piece in pieces]
        if first is not None:
            source = Datagram(self.inside_view(bytes(first))).source
            for view in views:
                if view.offset > 0:
                    view.replace_source(Endpoint(source, 0))
        return [bytes(view) for view in views]

    def _outside_view(self, side: Side, packet: Datagram) -> bytes | None:
        """What is sent to an inside host from outside, or from inside through the external address."""
        quote = packet.quote()
        if quote is not None:
            if not is_inside(quote.source) or (side is Side.LAN and not is_inside(packet.destination)):
                return bytes(packet)
            flow = quote.flow()
            external = flow and self._external(flow.protocol, flow.source, flow.destination)
            if not external:
                return None
            quote.replace_source(external)
            packet.replace_quote(quote)
            packet.replace_destination(external)
            return bytes(packet)
        if not is_inside(packet.destination):
            return bytes(packet)
        flow = packet.flow()
        external = flow and self._external(flow.protocol, flow.destination, flow.source)
        if not external:
            return None
        packet.replace_destination(external)
        return bytes(packet)

    def _external(self, protocol: int, inside: Endpoint, remote: Endpoint) -> Endpoint | None:
        """Where `remote` sees `inside`."""
        learned = self._outward.get(Flow(protocol, inside, remote))
        return learned or self._static.get((protocol, inside))

    def _real(self, protocol: int, endpoint: Endpoint) -> Endpoint:
        """The host that a static forward leads to, or the endpoint itself."""
        return self._static_inward.get((protocol, endpoint), endpoint)

    def _untranslate(self, packet: Datagram, mirrored: bool) -> None:
        """Puts inside endpoints where external ones are. In a quote the packet goes the other way: what is seen by
        a host inside as sent to the external address by a remote is mirrored."""
        flow = packet.flow()
        if flow is None:
            return
        ends = [(flow.source, flow.destination, packet.replace_source)]
        if mirrored:
            ends.append((flow.destination, flow.source, packet.replace_destination))
        for end, remote, replace in ends:
            if end.address != EXTERNAL:
                continue
            remote = self._real(flow.protocol, remote)
            inside = self._inward.get(Flow(flow.protocol, end, remote))
            inside = inside or self._static_inward.get((flow.protocol, end))
            if inside is not None:
                replace(inside)


def _opens(packet: Datagram) -> bool:
    """Whether a packet is a SYN, and no answer to one."""
    segment = packet.payload
    return packet.protocol == 6 and packet.offset == 0 and len(segment) > 13 and segment[13] & 0x12 == 2
