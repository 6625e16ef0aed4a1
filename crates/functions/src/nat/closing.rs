//! How a connection ends, and what shows that a later one between the same endpoints is new.
//!
//! An end that has closed first remembers the connection for a while (TIME-WAIT), and takes a SYN for a new
//! one only if its time stamp or its sequence number lies behind all it has seen (RFC 9293, 3.10.7.4;
//! RFC 6191). Where that end is outside, its port here can serve another connection to it only with such a
//! SYN.

use rheostat_packet::wire::tcp::TcpSegment;
use rheostat_packet::wire::tcp_option::TcpOption;

use super::{ACK, FIN, RST, SYN};
use rheostat_nf::Packet;
use rheostat_nf::UsualTcp;

const OUT: usize = 0;
const IN: usize = 1;

/// Which FINs the other end has acknowledged.
const FIN_ACKED: [u8; 2] = [1, 2];
/// Which ends have sent since the connection opened.
const SENT: [u8; 2] = [4, 8];
/// Which ends have sent a FIN.
const FINISHED: [u8; 2] = [16, 32];
/// One end has reset the connection with the number that the other waits for.
const RESET: u8 = 64;
/// The second number is a time stamp.
const STAMPED: u8 = 128;

/// How far a connection is from its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, packed(2))]
pub(super) struct Closing {
    /// Behind the last byte that inside has sent, and behind the last that outside has sent. Once the FIN
    /// from outside is acknowledged, the latter is known to be the end and gives way to the last time stamp
    /// from inside.
    numbers: [u32; 2],
    flags: u8,
}

/// What counts of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    /// Bytes of data.
    pub(super) len: u32,
}

impl Segment {
    /// What counts of the segment of a packet.
    #[inline]
    pub(super) fn of(packet: &Packet<'_>, segment: &TcpSegment<'_>) -> Segment {
        let len = packet.payload_len(segment.header_len()) as u32;
        Segment { seq: segment.seq(), ack: segment.ack(), flags: segment.flags().0, len }
    }

    /// The same on the fast path.
    #[inline(always)]
    pub(super) fn of_usual(tcp: UsualTcp<'_>) -> Segment {
        Segment { seq: tcp.seq(), ack: tcp.ack(), flags: tcp.flags(), len: tcp.payload_len() }
    }
}

/// What a SYN says about when it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opening {
    pub(super) seq: u32,
    pub(super) stamp: Option<u32>,
}

impl Opening {
    /// That of a segment, if it opens a connection.
    pub(super) fn of(segment: &TcpSegment<'_>) -> Option<Opening> {
        segment.flags().opens().then(|| Opening { seq: segment.seq(), stamp: stamp(segment) })
    }
}

/// The time stamp of a segment's sender (RFC 7323, 3.2).
pub(super) fn stamp(segment: &TcpSegment<'_>) -> Option<u32> {
    segment.options().find_map(|option| match option {
        TcpOption::Timestamps(stamp, _) => Some(stamp),
        _ => None,
    })
}

impl Closing {
    /// Notes a segment from inside or from outside. `stamp` is asked for when the sender's time stamp
    /// counts.
    #[inline]
    pub(super) fn note(
        &mut self,
        outbound: bool,
        segment: Segment,
        stamp: impl FnOnce() -> Option<u32>,
    ) {
        let way = if outbound { OUT } else { IN };
        if segment.flags & RST != 0 {
            self.flags |= if self.is_exact(way, segment) { RESET } else { 0 };
            return;
        }
        if segment.flags & SYN != 0 && self.is_over() {
            *self = Closing::default();
        }
        // An end that sends on has not taken the reset.
        self.flags &= !RESET;
        let extra = u32::from(segment.flags & SYN != 0) + u32::from(segment.flags & FIN != 0);
        let end = segment.seq.wrapping_add(segment.len).wrapping_add(extra);
        if way == OUT || self.flags & FIN_ACKED[IN] == 0 {
            let is_later = later(end, self.numbers[way]) || self.flags & SENT[way] == 0;
            self.numbers[way] = if is_later { end } else { self.numbers[way] };
        }
        self.flags |= SENT[way];
        if segment.flags & FIN != 0 {
            self.flags |= FINISHED[way];
        }
        if self.flags & (FINISHED[OUT] | FINISHED[IN]) != 0 {
            self.note_last(way, segment, stamp);
        }
    }

    /// Whether a segment is data or an acknowledgement of a connection that neither end has begun to end. If so,
    /// [`Closing::follow`] does what [`Closing::note`] would do.
    #[inline(always)]
    pub(super) fn is_continued_by(&self, segment: Segment) -> bool {
        let ending = FINISHED[OUT] | FINISHED[IN] | FIN_ACKED[OUT] | FIN_ACKED[IN] | RESET;
        segment.flags & (SYN | FIN | RST) == 0 && self.flags & ending == 0
    }

    /// Notes a segment that continues the connection.
    #[inline(always)]
    pub(super) fn follow(&mut self, outbound: bool, segment: Segment) {
        let way = if outbound { OUT } else { IN };
        let (end, last) = (segment.seq.wrapping_add(segment.len), self.numbers[way]);
        let is_later = later(end, last) || self.flags & SENT[way] == 0;
        self.numbers[way] = if is_later { end } else { last };
        self.flags |= SENT[way];
    }

    /// Notes a segment of a connection that one end at least has closed.
    fn note_last(&mut self, way: usize, segment: Segment, stamp: impl FnOnce() -> Option<u32>) {
        let peer = 1 - way;
        let open = self.flags & (FINISHED[peer] | FIN_ACKED[peer]) == FINISHED[peer];
        if open && segment.flags & ACK != 0 && segment.ack == self.numbers[peer] {
            self.flags |= FIN_ACKED[peer];
        }
        if way == OUT && self.flags & FIN_ACKED[IN] != 0 {
            match stamp() {
                Some(stamp) => {
                    self.numbers[IN] = stamp;
                    self.flags |= STAMPED;
                }
                None => self.flags &= !STAMPED,
            }
        }
    }

    /// Whether a reset carries the number that its receiver waits for (RFC 5961, section 3), or refuses what
    /// was never answered (RFC 9293, 3.10.7.3). Where outside has closed and inside knows it, its number is
    /// no longer kept, and every reset from there counts.
    fn is_exact(&self, way: usize, segment: Segment) -> bool {
        if self.flags & SENT[way] == 0 {
            return segment.flags & ACK != 0
                && self.flags & SENT[1 - way] != 0
                && segment.ack == self.numbers[1 - way];
        }
        segment.seq == self.numbers[way] || (way == IN && self.flags & FIN_ACKED[IN] != 0)
    }

    /// Whether the connection is properly over: both ends have acknowledged the other's FIN, or one has
    /// reset it in a way that the other takes.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        let both = FIN_ACKED[OUT] | FIN_ACKED[IN];
        self.flags & both == both || self.flags & RESET != 0
    }

    /// Whether a SYN shows to an end that remembers this connection, which is over, that it opens a new one
    /// (RFC 6191, section 2): by a later time stamp if both have one, and else, or if the two are the same,
    /// by a later number.
    pub(super) fn is_outlived_by(&self, opening: Opening) -> bool {
        let stamp = (self.flags & STAMPED != 0).then_some(self.numbers[IN]);
        match (stamp, opening.stamp) {
            (Some(old), Some(new)) if old != new => later(new, old),
            _ => later(opening.seq, self.numbers[OUT]),
        }
    }
}

/// Whether `a` lies behind `b` in the space of sequence numbers and time stamps.
#[inline]
fn later(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state after segments: outbound or not, flags, number, acknowledgement, time stamp.
    fn after(segments: &[(bool, u8, u32, u32, Option<u32>)]) -> Closing {
        let mut closing = Closing::default();
        for &(outbound, flags, seq, ack, stamp) in segments {
            closing.note(outbound, Segment { seq, ack, flags, len: 0 }, || stamp);
        }
        closing
    }

    const OPEN: [(bool, u8, u32, u32, Option<u32>); 3] = [
        (true, SYN, u32::MAX, 0, Some(5)),
        (false, SYN | ACK, 700, 0, None),
        (true, ACK, 0, 701, Some(6)),
    ];

    fn with(more: &[(bool, u8, u32, u32, Option<u32>)]) -> Closing {
        after(&[&OPEN, more].concat())
    }

    #[test]
    fn it_is_over_once_both_fins_are_acknowledged() {
        let server_first = [
            (false, FIN | ACK, 701, 0, None),
            (true, FIN | ACK, 0, 702, Some(9)),
            (false, ACK, 702, 1, None),
        ];
        let client_first = [
            (true, FIN | ACK, 0, 701, Some(8)),
            (false, FIN | ACK, 701, 1, None),
            (true, ACK, 1, 702, Some(9)),
        ];
        let both_at_once = [
            (true, FIN | ACK, 0, 701, Some(8)),
            (false, FIN | ACK, 701, 0, None),
            (true, ACK, 1, 702, Some(9)),
            (false, ACK, 702, 1, None),
        ];
        for close in [&server_first[..], &client_first, &both_at_once] {
            assert!((0..close.len()).all(|some| !with(&close[..some]).is_over()));
            let closed = with(close);
            assert!(closed.is_over());
            let by = |seq, stamp| closed.is_outlived_by(Opening { seq, stamp });
            assert!(by(0, Some(10)) && !by(5_000, Some(8)), "the time stamp counts first");
            assert!(by(2, Some(9)) && !by(1, Some(9)) && !by(u32::MAX, Some(9)));
            assert!(by(2, None) && !by(1, None), "without one, the number");
        }
    }

    #[test]
    fn the_fast_path_notes_what_the_general_way_notes() {
        let flags = [ACK, ACK, ACK, 0, FIN | ACK, RST, SYN, SYN | ACK, RST | ACK];
        let (mut random, mut followed) = (1_u32, 0);
        for _ in 0..2_000 {
            let mut closing = Closing::default();
            for _ in 0..12 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let (outbound, flags) =
                    (random >> 31 == 0, flags[(random >> 20) as usize % flags.len()]);
                let (seq, ack) = (random >> 8 & 7, random >> 11 & 7);
                let segment = Segment { seq, ack, flags, len: random >> 14 & 3 };
                let mut fast = closing;
                let continues = fast.is_continued_by(segment);
                closing.note(outbound, segment, || Some(7));
                if continues {
                    fast.follow(outbound, segment);
                    followed += 1;
                    assert_eq!(fast, closing, "{segment:?}");
                    assert!(!closing.is_over());
                }
            }
        }
        assert!(followed > 5_000, "{followed}");
    }

    #[test]
    fn without_time_stamps_the_number_counts() {
        let closed = after(&[
            (true, FIN | ACK, 10, 701, None),
            (false, FIN | ACK, 701, 11, None),
            (true, ACK, 11, 702, None),
        ]);
        assert!(closed.is_over());
        assert!(closed.is_outlived_by(Opening { seq: 12, stamp: Some(1) }));
        assert!(!closed.is_outlived_by(Opening { seq: 11, stamp: Some(1) }));
    }

    #[test]
    fn only_an_exact_reset_ends_it_and_a_host_that_sends_on_has_not_taken_it() {
        assert!(with(&[(false, RST, 701, 0, None)]).is_over());
        assert!(with(&[(true, RST | ACK, 0, 701, None)]).is_over());
        assert!(!with(&[(false, RST, 702, 0, None)]).is_over());
        assert!(!with(&[(true, RST, 1, 0, None)]).is_over());
        assert!(!with(&[(false, RST, 701, 0, None), (true, ACK, 0, 701, None)]).is_over());
        let refused = |ack| after(&[OPEN[0], (false, RST | ACK, 0, ack, None)]).is_over();
        assert!(refused(0) && !refused(1));
        let closed = [(false, FIN | ACK, 701, 0, None), (true, ACK, 0, 702, None)];
        assert!(with(&[&closed[..], &[(false, RST, 702, 0, None)]].concat()).is_over());
    }

    #[test]
    fn a_syn_opens_it_anew() {
        let over = [(false, RST, 701, 0, None), (true, SYN, 9_000, 0, Some(20))];
        assert!(!with(&over).is_over());
    }
}
