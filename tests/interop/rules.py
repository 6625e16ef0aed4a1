"""The differences there may be, each by name and with its reason. What no rule explains fails the comparison.

docs/interop.md lists the same rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import canonical
from datagram import TCP
from difference import Difference, Kind
from scenario import INSIDE, Side, ipv4, is_inside


@dataclass(frozen=True)
class Rule:
    """A difference that is meant."""

    name: str
    reason: str
    explains: Callable[[Difference], bool]
    #: Whether generated traffic shows it, so that a rule that explains nothing is out of date.
    always: bool = True


def _decremented(d: Difference) -> bool:
    if d.kind is not Kind.FIELD or d.field not in ("ip.ttl", "ip6.hop_limit"):
        return False
    arrived = d.asked.get(d.field)
    return isinstance(arrived, int) and d.values == (arrived - 1, arrived)


def _expired(d: Difference) -> bool:
    return d.asked.get("ip.ttl") in (0, 1) and d.answered_instead(11, 0)


def _held(d: Difference) -> bool:
    """rheo sent a fragment on as it came, of a datagram that it never sent the whole of."""
    if d.kind is not Kind.LEFT_RHEO or d.rheo is None:
        return False
    return any(canonical.fields(step.untranslated()) == d.rheo.fields for step in d.scenario.steps)


def _contradicted(d: Difference) -> bool:
    """Linux completed a datagram of which a fragment says otherwise of what an earlier one held."""
    if d.kind is not Kind.ONLY_LINUX or d.instead or d.number is None:
        return False
    return any(
        one.offset <= two.offset < two.end <= one.end
        and one.payload[two.offset - one.offset : two.end - one.offset] != two.payload
        for one, two in combinations(d.pieces(), 2)
    )


def _tiny(d: Difference) -> bool:
    """Linux completed a TCP segment whose first fragment has not all of TCP's fixed header."""
    if d.kind is not Kind.ONLY_LINUX or d.instead or d.asked.get("ip.protocol") != TCP:
        return False
    return any(piece.offset == 0 and len(piece.payload) < 20 for piece in d.pieces())


def _told_of_exhaustion(d: Difference) -> bool:
    if (
        d.kind is not Kind.ONLY_RHEO
        or d.rheo is None
        or d.step is None
        or d.instead
        or d.paired
        or d.scenario.ports is None
    ):
        return False
    quoted = {name.removeprefix("quote."): value for name, value in d.rheo.fields.items() if name.startswith("quote.")}
    return d.rheo.side is d.step.side and d.rheo.is_error(3, 13) and quoted == d.asked


def _quoted_tcp_checksum(d: Difference) -> bool:
    """The quote ends behind the checksum and within the header: rheo puts the checksum back as the host sent it,
    Linux leaves what the remote saw."""
    if d.kind is not Kind.FIELD or d.field != "quote.tcp.rest":
        return False
    linux, rheo = (str(value) for value in d.values)
    return rheo == d.asked.get(d.field) and len(linux) == len(rheo) in (20, 22) and linux[:16] == rheo[:16]


def _written_option(d: Difference) -> bool:
    """A route or a time that Linux has written into an option made for it."""
    if d.kind is not Kind.FIELD or d.field != "ip.options":
        return False
    linux, rheo = (str(value) for value in d.values)
    writable = rheo[:2] in (RECORD_ROUTE, TIME_STAMP)
    return writable and rheo == d.asked.get(d.field) and linux[:4] == rheo[:4] and len(linux) == len(rheo)


def _source_route(d: Difference) -> bool:
    return d.only_passed() and str(d.asked.get("ip.options"))[:2] == LOOSE_SOURCE_ROUTE


def _bad_option(d: Difference) -> bool:
    return d.answered_instead(12, 0) and bool(d.asked.get("ip.options"))


def _wrong_transport_checksum(d: Difference) -> bool:
    errors = (d.asked.get(f"{name}.checksum_error", 0) for name in ("tcp", "udp", "icmp"))
    return d.only_passed() and any(error not in (0, "none") for error in errors)


def _wrong_header_checksum(d: Difference) -> bool:
    return d.only_passed() and d.asked.get("ip.checksum_error") != 0


def _tcp_flags(d: Difference) -> bool:
    word = d.asked.get("tcp.offset_and_flags")
    return d.only_passed() and isinstance(word, int) and word & FLAGS_THAT_COUNT not in SENSIBLE_FLAGS


def _tcp_start(d: Difference) -> bool:
    """A flow from inside whose first segment is the answer to a SYN, or a FIN."""
    if not d.only_passed() or d.step is None or d.step.side is Side.WAN:
        return False
    word = d.asked.get("tcp.offset_and_flags")
    return isinstance(word, int) and opens_nothing(word)


def _answer_to_refused(d: Difference) -> bool:
    """The answer to segments of a flow that Linux refused, all of them, for their flags."""
    if d.unsent != "Linux" or d.step is None or d.number is None:
        return False
    answer = ipv4(d.step.packet)
    flow = answer and answer.flow()
    if flow is None or (d.kind is Kind.ONLY_RHEO and d.rheo is not None and d.rheo.fields != d.asked):
        return False
    earlier = [canonical.fields(raw) for raw in d.earlier(flow.reversed())]
    words = [told.get("tcp.offset_and_flags") for told in earlier]
    return bool(words) and all(isinstance(word, int) and opens_nothing(word) for word in words)


def _late_reset(d: Difference) -> bool:
    """A reset of a flow that is known, whose number Linux takes amiss."""
    word, packet = d.asked.get("tcp.offset_and_flags"), d.step and ipv4(d.step.packet)
    flow = packet and packet.flow()
    known = flow is not None and (any(d.earlier(flow)) or any(d.earlier(flow.reversed())))
    return d.only_passed() and known and isinstance(word, int) and word & FLAGS_THAT_COUNT in (RST, RST | ACK)


def _foreign_source(d: Difference) -> bool:
    source = str(d.asked.get("ip.source", INSIDE))
    return d.only_passed() and d.step is not None and d.step.side is Side.LAN and not is_inside(source)


def _to_own_side(d: Difference) -> bool:
    """From inside to an inside address: Linux sends it back where it came from, rheo on."""
    if d.step is None or not d.step.literal or not is_inside(str(d.asked.get("ip.destination"))):
        return False
    if d.step.side is Side.WAN or len(d.instead) != 1:
        return False
    back, on = (d.linux, d.instead[0]) if d.rheo is None else (d.instead[0], d.rheo)
    if back is None or on is None or back.side is not Side.LAN or on.side is not Side.WAN:
        return False
    routed = {**back.fields, "ip.ttl": d.asked["ip.ttl"]}
    return routed == on.fields == d.asked


def _directed_broadcast(d: Difference) -> bool:
    return d.only_passed() and d.asked.get("ip.destination") == "203.0.113.255"


def _extended_echo(d: Difference) -> bool:
    return d.only_passed() and d.asked.get("icmp.type") == 42


RECORD_ROUTE, TIME_STAMP, LOOSE_SOURCE_ROUTE = "07", "44", "83"
FIN, SYN, RST, ACK, URG = 1, 2, 4, 16, 32
#: What Linux looks at to tell whether flags make sense, and what does (its table of valid flags).
FLAGS_THAT_COUNT = FIN | SYN | RST | ACK | URG
SENSIBLE_FLAGS = {
    SYN,
    SYN | URG,
    SYN | ACK,
    RST,
    RST | ACK,
    FIN | ACK,
    FIN | ACK | URG,
    ACK,
    ACK | URG,
}


def opens_nothing(word: int) -> bool:
    """Whether Linux begins no connection with these TCP flags."""
    flags = word & FLAGS_THAT_COUNT
    return flags not in SENSIBLE_FLAGS or flags in (SYN | ACK, FIN | ACK)


RULES: tuple[Rule, ...] = (
    Rule("time to live", "Linux is a router and takes one off; rheo stands in the wire and leaves it", _decremented),
    Rule("last hop", "so a packet with none left ends in Linux, with ICMP time exceeded, and passes rheo", _expired),
    Rule(
        "incomplete datagram",
        "Linux puts a datagram together before it sends anything of it; rheo sends fragments on as they come",
        _held,
    ),
    Rule(
        "contradicting fragment",
        "Linux ignores a fragment within an earlier one; rheo gives the datagram up, as RFC 8200 asks for IPv6",
        _contradicted,
    ),
    Rule(
        "tiny first fragment",
        "rheo drops a first fragment without all of TCP's fixed header (RFC 1858); Linux puts the segment together",
        _tiny,
    ),
    Rule(
        "exhaustion is reported",
        "rheo reports to the host with ICMP 3 13 that there is no port (RFC 5508, REQ-8); Linux drops",
        _told_of_exhaustion,
    ),
    Rule(
        "quoted TCP checksum",
        "Linux puts a quoted checksum back only if the quote has the whole TCP header; rheo, if it has the checksum",
        _quoted_tcp_checksum,
    ),
    Rule("written options", "a router writes into record-route and time-stamp options; rheo is none", _written_option),
    Rule("source route", "Linux refuses to be led by a source route; rheo passes it and follows none", _source_route),
    Rule("bad option", "Linux answers an option that ends beyond the header; rheo looks into none", _bad_option),
    Rule(
        "wrong transport checksum",
        "Linux's tracking drops it; rheo leaves it to the receiver, wrong by as much (RFC 3022, 4.2)",
        _wrong_transport_checksum,
    ),
    Rule(
        "wrong header checksum",
        "a router drops it (RFC 1812, 5.2.2); rheo leaves it to the next router, wrong by as much",
        _wrong_header_checksum,
    ),
    Rule(
        "TCP flags", "Linux's tracking drops flags that make no sense; rheo's NAT leaves that to a firewall", _tcp_flags
    ),
    Rule(
        "TCP start",
        "Linux begins no connection with SYN and ACK, or FIN; rheo's NAT leaves that to a firewall",
        _tcp_start,
    ),
    Rule(
        "answer to it",
        "what only rheo let out only rheo can let the answer to in",
        _answer_to_refused,
        always=False,
    ),
    Rule(
        "late reset",
        "Linux's tracking drops a reset with an old number even when it is liberal; rheo's NAT tracks no numbers",
        _late_reset,
        always=False,
    ),
    Rule(
        "foreign source",
        "Linux checks where sources come from (RFC 3704); rheo has no routes to check by",
        _foreign_source,
    ),
    Rule(
        "to its own side",
        "Linux routes back what is for the side it came from; rheo has two sides and no routes",
        _to_own_side,
    ),
    Rule(
        "directed broadcast",
        "Linux knows the outer network's broadcast address; rheo knows no networks",
        _directed_broadcast,
    ),
    Rule(
        "extended echo", "Linux's tracking does not know the question of RFC 8335; rheo translates it", _extended_echo
    ),
)
