//! The end of urgent data that is to be sent (RFC 9293, 3.8.5; RFC 6093).

use crate::sequence::SequenceNumber;

/// Where urgent data ends (SND.UP). It stays in the stream; the mark tells the peer to hurry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UrgentMark {
    end: Option<SequenceNumber>,
    must_tell: bool,
}

impl UrgentMark {
    /// What has been written ends here, and is urgent.
    pub(crate) fn set(&mut self, end: SequenceNumber) {
        self.end = Some(end);
        self.must_tell = true;
    }

    /// Everything before `una` is acknowledged.
    pub(crate) fn on_ack(&mut self, una: SequenceNumber) {
        self.end = self.end.filter(|end| end.is_after(una));
    }

    /// The pointer of a segment that begins at `seq`: to the byte behind the urgent ones, or as far as it reaches.
    pub(crate) fn pointer(&self, seq: SequenceNumber) -> Option<u16> {
        let end = self.end.filter(|end| end.is_after(seq))?;
        Some(end.since(seq).min(u16::MAX.into()) as u16)
    }

    /// Whether the peer is to be told by a segment without data, since none with data can leave: its window may be closed.
    pub(crate) fn must_tell(&self) -> bool {
        self.must_tell && self.end.is_some()
    }

    /// A segment with the mark leaves.
    pub(crate) fn on_sent(&mut self) {
        self.must_tell = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pointer_reaches_behind_the_urgent_bytes_until_they_are_acknowledged() {
        let mut mark = UrgentMark::default();
        assert_eq!(mark.pointer(SequenceNumber(0)), None);
        mark.set(SequenceNumber(5));
        assert_eq!(mark.pointer(SequenceNumber(u32::MAX)), Some(6));
        assert_eq!(mark.pointer(SequenceNumber(5)), None);
        assert_eq!(mark.pointer(SequenceNumber(5) - 100_000), Some(u16::MAX));
        mark.on_ack(SequenceNumber(4));
        assert_eq!(mark.pointer(SequenceNumber(4)), Some(1));
        mark.on_ack(SequenceNumber(5));
        assert_eq!(mark.pointer(SequenceNumber(4)), None);
    }
}
