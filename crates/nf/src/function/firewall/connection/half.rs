//! One direction of a connection: what one end has sent, and what its peer has let it send.

use super::{ACK, FIN, Segment, at_most};

const SEEN: u8 = 1;
const FINISHED: u8 = 2;
const UNCHECKED: u8 = 4;
const CONFIRMED_PEER: u8 = 8;
const SCALES: u8 = 16;

/// One direction, 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Half {
    /// Behind the last byte sent.
    pub(super) end: u32,
    /// Behind the last byte the peer has offered to take.
    pub(super) max_end: u32,
    /// What the peer has acknowledged.
    pub(super) acked: u32,
    /// The largest window this end has offered, unscaled.
    max_window: u16,
    /// The shift of this end's windows.
    scale: u8,
    flags: u8,
}

const _: () = assert!(size_of::<Half>() == 16);

/// The one of two sequence numbers that lies further on. A choice between two values and not a jump:
/// which it is changes from packet to packet, and cannot be predicted.
#[inline]
fn later(a: u32, b: u32) -> u32 {
    if at_most(b, a) { a } else { b }
}

impl Half {
    pub(super) const UNSEEN: Half =
        Half { end: 0, max_end: 0, acked: 0, max_window: 1, scale: 0, flags: 0 };

    /// An end that opens with this SYN. RFC 7323, 2.3, limits the shift to 14.
    pub(super) fn from_syn(syn: &Segment) -> Half {
        let scales = if syn.scale.is_some() { SCALES } else { 0 };
        Half {
            end: syn.end(),
            max_end: syn.end(),
            acked: syn.seq,
            max_window: syn.window.max(1),
            scale: syn.scale.map_or(0, |shift| shift.min(14)),
            flags: SEEN | scales,
        }
    }

    /// An end whose connection is entered with this segment.
    pub(super) fn from_middle(segment: &Segment) -> Half {
        let end = segment.end();
        let finished = if segment.flags & FIN != 0 { FINISHED } else { 0 };
        let flags = SEEN | UNCHECKED | finished;
        Half { end, max_end: end, acked: segment.seq, max_window: u16::MAX, scale: 0, flags }
    }

    /// The peer of an end whose connection is entered with this segment.
    pub(super) fn acknowledged_by(segment: &Segment) -> Half {
        let end = if segment.flags & ACK != 0 { segment.ack } else { 0 };
        let flags = SEEN | UNCHECKED;
        Half { end, max_end: end, acked: end, max_window: u16::MAX, scale: 0, flags }
    }

    /// The number of the SYN, until something is acknowledged.
    pub(super) fn first(&self) -> u32 {
        self.acked
    }

    /// The end opens once more, with another number.
    pub(super) fn restart(&mut self, syn: &Segment) {
        let reach = self.max_end.wrapping_sub(self.end);
        self.end = syn.end();
        self.acked = syn.seq;
        self.max_end = self.end.wrapping_add(reach);
    }

    /// The window of the end's SYN in bytes: it is never scaled (RFC 7323, 2.2).
    pub(super) fn offered(&self) -> u32 {
        self.max_window.into()
    }

    /// The largest window this end has offered, in bytes.
    #[inline]
    pub(super) fn window(&self) -> u32 {
        self.scaled(self.max_window)
    }

    #[inline]
    pub(super) fn scaled(&self, window: u16) -> u32 {
        u32::from(window) << self.scale
    }

    pub(super) fn scales(&self) -> bool {
        self.flags & SCALES != 0
    }

    /// Both SYNs have been seen: scaling holds when both offer it. What the SYN offered is kept in the
    /// unit of the windows to come.
    pub(super) fn settle_scale(&mut self, both: bool) {
        if !both {
            self.scale = 0;
            self.flags &= !SCALES;
        }
        self.max_window = self.max_window.div_ceil(1 << self.scale);
    }

    #[inline]
    pub(super) fn sent_to(&mut self, end: u32) {
        self.end = later(self.end, end);
    }

    #[inline]
    pub(super) fn offer(&mut self, window: u16) {
        self.max_window = self.max_window.max(window);
    }

    /// The peer acknowledges up to `ack` and offers `window` bytes more. A closed window still lets a
    /// byte through as a probe (RFC 9293, 3.8.6.1).
    #[inline]
    pub(super) fn acknowledge(&mut self, ack: u32, window: u32) {
        let acked = later(self.acked, ack);
        self.acked = if at_most(ack, self.end) { acked } else { self.acked };
        self.max_end = later(self.max_end, ack.wrapping_add(window.max(1)));
    }

    pub(super) fn finish(&mut self) {
        self.flags |= FINISHED;
    }

    pub(super) fn has_finished(&self) -> bool {
        self.flags & FINISHED != 0
    }

    pub(super) fn is_acknowledged(&self) -> bool {
        self.acked == self.end
    }

    #[inline]
    pub(super) fn is_unchecked(&self) -> bool {
        self.flags & UNCHECKED != 0
    }

    pub(super) fn confirm_peer(&mut self) {
        self.flags |= CONFIRMED_PEER;
    }

    pub(super) fn has_confirmed_peer(&self) -> bool {
        self.flags & CONFIRMED_PEER != 0
    }
}
