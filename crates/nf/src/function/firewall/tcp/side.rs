//! What is known of one endpoint of a connection.

use super::segment::Segment;
use super::sequence::later;
use super::window::Window;

/// Facts about one endpoint, as bits. Those about sequence numbers only ever become true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Marks(u8);

impl Marks {
    /// The endpoint sent a SYN: its sequence numbers are known.
    pub(super) const SYN: Marks = Marks(0x01);
    /// It sent a SYN without ACK: it wanted to open the connection.
    pub(super) const OPENER: Marks = Marks(0x02);
    /// Its SYN was acknowledged.
    pub(super) const OPEN: Marks = Marks(0x04);
    /// It sent a segment without SYN when the SYNs of both endpoints were acknowledged.
    pub(super) const CONFIRMED: Marks = Marks(0x08);
    /// It sent a FIN.
    pub(super) const FIN: Marks = Marks(0x10);
    /// Its FIN was acknowledged.
    pub(super) const FIN_ACKED: Marks = Marks(0x20);
    /// It sent a valid reset.
    pub(super) const RESET: Marks = Marks(0x40);
    /// The connection was picked up in its middle: numbers and windows are guesses.
    pub(super) const PICKED_UP: Marks = Marks(0x80);

    #[inline]
    pub(super) const fn has(self, marks: Marks) -> bool {
        self.0 & marks.0 == marks.0
    }

    #[inline]
    pub(super) const fn with(self, marks: Marks) -> Marks {
        Marks(self.0 | marks.0)
    }

    #[inline]
    pub(super) const fn add(&mut self, marks: Marks) {
        self.0 |= marks.0;
    }
}

/// The shift of an endpoint's window-scale option, or that it sent none. Kept for both endpoints as
/// it came, because a shift is in force only when both sent one (RFC 7323 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scale(u8);

impl Scale {
    /// The endpoint's SYN carried no option.
    pub(super) const NONE: Scale = Scale(u8::MAX);
    /// The largest shift; a larger one in an option counts as this (RFC 7323 section 2.3).
    pub(super) const MAX: u8 = 14;
    /// For connections picked up in their middle, whose options nobody saw.
    pub(super) const LARGEST: Scale = Scale(Scale::MAX);

    pub(super) const fn of_option(option: Option<u8>) -> Scale {
        match option {
            Some(shift) if shift > Scale::MAX => Scale::LARGEST,
            Some(shift) => Scale(shift),
            None => Scale::NONE,
        }
    }
}

impl Default for Scale {
    fn default() -> Scale {
        Scale::NONE
    }
}

/// One endpoint. Sequence numbers are its own; they mean nothing before it has sent a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Side {
    /// Behind the last byte it has sent.
    pub(super) end: u32,
    /// The right edge of the window its peer has offered: the furthest it may send.
    pub(super) max_end: u32,
    /// Up to where its peer has acknowledged; its initial sequence number until then. With nothing
    /// lost on the way, its peer's RCV.NXT.
    pub(super) acked: u32,
    /// The largest window it has offered.
    pub(super) window: Window,
    pub(super) scale: Scale,
    pub(super) marks: Marks,
}

impl Side {
    /// The endpoint as its SYN or SYN-ACK shows it; `edge` is as far as its peer lets it send, if the
    /// peer has told.
    pub(super) fn opened(syn: &Segment, edge: Option<u32>, marks: Marks) -> Side {
        let end = syn.end();
        Side {
            end,
            max_end: edge.map_or(end, |edge| later(end, edge)),
            acked: syn.seq,
            // The window of a segment with SYN is never scaled (RFC 7323 section 2.2).
            window: Window::covering(syn.window.into()),
            scale: Scale::of_option(syn.window_scale),
            marks: marks.with(Marks::SYN),
        }
    }

    /// The first sequence number behind its SYN, while that is not acknowledged.
    #[inline]
    pub(super) const fn behind_syn(&self) -> u32 {
        self.acked.wrapping_add(1)
    }

    #[inline]
    pub(super) const fn has(&self, marks: Marks) -> bool {
        self.marks.has(marks)
    }

    /// The window that `segment` of this endpoint offers, in bytes.
    #[inline]
    pub(super) const fn offered(&self, peer: &Side, segment: &Segment) -> u32 {
        let scaled = !segment.has(super::segment::SYN)
            && self.scale.0 != Scale::NONE.0
            && peer.scale.0 != Scale::NONE.0;
        (segment.window as u32) << if scaled { self.scale.0 } else { 0 }
    }
}
