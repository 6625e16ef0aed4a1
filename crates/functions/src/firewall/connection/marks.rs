//! What is known of a flow beside numbers, in two bytes: how far it has come, which ends have finished, and
//! the shifts of their windows.

use super::Phase;

/// The shift of an end whose SYN offered no scaling, until both SYNs have been seen.
const NOT_OFFERED: u8 = 15;

/// The largest shift of windows (RFC 7323, 2.3).
const LARGEST_SHIFT: u8 = 14;

const PHASE: u8 = 0x0f;
const FINISHED: [u8; 2] = [0x10, 0x20];
const UNCHECKED: u8 = 0x40;
const FORWARD: u8 = 0x80;

/// Phase and marks of a flow. Ends are 0, the initiator, and 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// The phase, and a bit for each mark.
    standing: u8,
    /// Four bits for the shift of each end's windows.
    shifts: u8,
}

impl Marks {
    /// Those of a flow in this phase whose first packet has this direction.
    pub(super) fn new(phase: Phase, forward: bool) -> Marks {
        Marks { standing: phase as u8 | if forward { FORWARD } else { 0 }, shifts: 0 }
    }

    #[inline(always)]
    pub(super) fn phase(self) -> Phase {
        match self.standing & PHASE {
            0 => Phase::Asked,
            1 => Phase::Answered,
            2 => Phase::SynSent,
            3 => Phase::SynCrossed,
            4 => Phase::SynReceived,
            5 => Phase::Established,
            6 => Phase::Closing,
            7 => Phase::LastAck,
            8 => Phase::TimeWait,
            _ => Phase::Closed,
        }
    }

    #[inline(always)]
    pub(super) fn set_phase(&mut self, phase: Phase) {
        self.standing = self.standing & !PHASE | phase as u8;
    }

    /// Whether the flow's first packet went forward.
    #[inline(always)]
    pub(super) fn forward(self) -> bool {
        self.standing & FORWARD != 0
    }

    /// Whether an end has sent its FIN.
    #[inline(always)]
    pub(super) fn has_finished(self, end: usize) -> bool {
        self.standing & FINISHED[end] != 0
    }

    pub(super) fn finish(&mut self, end: usize) {
        self.standing |= FINISHED[end];
    }

    /// How many ends have sent their FIN.
    pub(super) fn finished(self) -> u32 {
        (self.standing & (FINISHED[0] | FINISHED[1])).count_ones()
    }

    /// Whether windows are not checked.
    #[inline(always)]
    pub(super) fn is_unchecked(self) -> bool {
        self.standing & UNCHECKED != 0
    }

    pub(super) fn leave_unchecked(&mut self) {
        self.standing |= UNCHECKED;
    }

    /// The shift of an end's windows, once both SYNs have been seen.
    #[inline(always)]
    pub(super) fn shift(self, end: usize) -> u8 {
        self.shifts >> (4 * end) & 0x0f
    }

    /// Notes what the initiator's SYN offers.
    pub(super) fn offer_shift(&mut self, offered: Option<u8>) {
        self.shifts = offered.map_or(NOT_OFFERED, |shift| shift.min(LARGEST_SHIFT));
    }

    /// Nothing more is expected of the responder: an offer that is missing is no scaling.
    pub(super) fn forget_missing_offer(&mut self) {
        if self.shift(0) == NOT_OFFERED {
            self.shifts = 0;
        }
    }

    /// Notes what the responder's SYN offers: scaling holds only when both SYNs offer it (RFC 7323, 2.2).
    pub(super) fn settle_shifts(&mut self, offered: Option<u8>) {
        self.shifts = match (self.shift(0), offered) {
            (NOT_OFFERED, _) | (_, None) => 0,
            (initiator, Some(responder)) => initiator | responder.min(LARGEST_SHIFT) << 4,
        };
    }
}
