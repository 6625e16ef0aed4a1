//! Why segments are ignored.

use super::Connection;

/// Why a segment, or a part of it, was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// All of it had arrived before.
    Duplicate,
    /// A part of it had arrived before. Bytes in order stay as they are; beyond a gap, the latest count.
    Overlap,
    /// None of its numbers is in the window.
    OutsideWindow,
    /// A part of it lies beyond the window, or behind the peer's end.
    BeyondWindow,
    /// There was no memory for its data, or too many ranges are held beyond gaps.
    NoRoom,
    /// Time stamps are used, and it has none.
    NoStamp,
    /// Its time stamp is older than one that has arrived.
    OldStamp,
    /// A reset at another number than the next one.
    ResetElsewhere,
    /// A SYN where none can be.
    StraySyn,
    /// It acknowledges nothing.
    NoAcknowledgement,
    /// It acknowledges what was not sent, or was long ago.
    ImplausibleAcknowledgement,
}

impl Ignored {
    /// The reason in words.
    pub fn name(self) -> &'static str {
        match self {
            Ignored::Duplicate => "all of it had arrived before",
            Ignored::Overlap => "a part of it had arrived before",
            Ignored::OutsideWindow => "outside the window",
            Ignored::BeyondWindow => "a part of it is beyond the window",
            Ignored::NoRoom => "no room for its data",
            Ignored::NoStamp => "no time stamp",
            Ignored::OldStamp => "old time stamp",
            Ignored::ResetElsewhere => "reset at another number than the next",
            Ignored::StraySyn => "SYN in a connection",
            Ignored::NoAcknowledgement => "no acknowledgement",
            Ignored::ImplausibleAcknowledgement => "implausible acknowledgement",
        }
    }
}

impl Connection {
    /// Why the last segment, or a part of it, was ignored, if it was. Asked once for each segment.
    #[inline]
    pub fn take_ignored(&mut self) -> Option<Ignored> {
        self.ignored.take()
    }

    #[cold]
    pub(super) fn ignore(&mut self, why: Ignored) {
        self.ignored = Some(why);
    }
}
