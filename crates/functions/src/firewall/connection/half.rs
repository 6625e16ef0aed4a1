//! One direction of a connection: what one end has sent, and what its peer has let it send.

use super::{ACK, Segment, at_most};

/// One direction, 14 bytes, without padding: a flow's state is to fit into the line of its key.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
pub(super) struct Half {
    /// Behind the last byte sent.
    pub(super) end: u32,
    /// Behind the last byte the peer has offered to take.
    pub(super) max_end: u32,
    /// What the peer has acknowledged.
    pub(super) acked: u32,
    /// The largest window this end has offered, unscaled.
    max_window: u16,
}

const _: () = assert!(size_of::<Half>() == 14);

/// The one of two sequence numbers that lies further on. A choice between two values and not a jump:
/// which it is changes from packet to packet, and cannot be predicted.
#[inline]
fn later(a: u32, b: u32) -> u32 {
    if at_most(b, a) { a } else { b }
}

impl Half {
    pub(super) const UNSEEN: Half = Half { end: 0, max_end: 0, acked: 0, max_window: 1 };

    /// An end that opens with this SYN.
    pub(super) fn from_syn(syn: &Segment) -> Half {
        let (end, max_window) = (syn.end(), syn.window.max(1));
        Half { end, max_end: end, acked: syn.seq, max_window }
    }

    /// An end whose connection is entered with this segment.
    pub(super) fn from_middle(segment: &Segment) -> Half {
        let end = segment.end();
        Half { end, max_end: end, acked: segment.seq, max_window: u16::MAX }
    }

    /// The peer of an end whose connection is entered with this segment.
    pub(super) fn acknowledged_by(segment: &Segment) -> Half {
        let end = if segment.flags & ACK != 0 { segment.ack } else { 0 };
        Half { end, max_end: end, acked: end, max_window: u16::MAX }
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

    /// The largest window this end has offered, in bytes, if its windows are shifted by so much.
    #[inline]
    pub(super) fn window(&self, shift: u8) -> u32 {
        u32::from(self.max_window) << shift
    }

    /// The windows to come are shifted by so much: what the SYN offered is kept in their unit.
    pub(super) fn settle_shift(&mut self, shift: u8) {
        self.max_window = self.max_window.div_ceil(1 << shift);
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

    pub(super) fn is_acknowledged(&self) -> bool {
        self.acked == self.end
    }
}
