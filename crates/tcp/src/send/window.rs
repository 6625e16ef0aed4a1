//! The peer's window (RFC 9293, 3.10.7.4; RFC 7323, 2.3).

use crate::sequence::SequenceNumber;

/// How far the peer lets us send.
#[derive(Debug)]
pub(crate) struct PeerWindow {
    /// The window of the last segment that set it.
    current: u32,
    /// Sequence and acknowledgement number of that segment (SND.WL1, SND.WL2).
    set_by: (SequenceNumber, SequenceNumber),
    /// The largest window so far.
    largest: u32,
    shift: u8,
}

impl PeerWindow {
    /// No window: nothing is known of the peer.
    pub(crate) fn new(una: SequenceNumber) -> PeerWindow {
        PeerWindow { current: 0, set_by: (una, una), largest: 0, shift: 0 }
    }

    /// The window of a segment of the handshake, which is not scaled. Later ones are.
    pub(crate) fn on_handshake(
        &mut self,
        seq: SequenceNumber,
        ack: SequenceNumber,
        window: u16,
        shift: u8,
    ) {
        self.set(seq, ack, window.into());
        self.shift = shift;
    }

    /// The window of a segment with an acceptable acknowledgement, unless a later segment has set it.
    pub(crate) fn on_segment(&mut self, seq: SequenceNumber, ack: SequenceNumber, window: u16) {
        let (last_seq, last_ack) = self.set_by;
        if last_seq.is_before(seq) || (last_seq == seq && !ack.is_before(last_ack)) {
            self.set(seq, ack, u32::from(window) << self.shift);
        }
    }

    fn set(&mut self, seq: SequenceNumber, ack: SequenceNumber, window: u32) {
        self.current = window;
        self.largest = self.largest.max(window);
        self.set_by = (seq, ack);
    }

    /// The number after the last that may be sent.
    pub(crate) fn edge(&self) -> SequenceNumber {
        self.set_by.1 + self.current
    }

    /// What the scale counts windows in: bytes.
    pub(crate) fn unit(&self) -> u32 {
        1 << self.shift
    }

    pub(crate) fn current(&self) -> u32 {
        self.current
    }

    pub(crate) fn largest(&self) -> u32 {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEQ: SequenceNumber = SequenceNumber(500);
    const ACK: SequenceNumber = SequenceNumber(100);

    #[test]
    fn an_older_segment_does_not_set_the_window() {
        let mut window = PeerWindow::new(ACK);
        window.on_handshake(SEQ, ACK, 1_000, 0);
        window.on_segment(SEQ + 10, ACK, 2_000);
        window.on_segment(SEQ + 5, ACK, 10);
        window.on_segment(SEQ + 10, ACK - 1, 10);
        assert_eq!(window.edge(), ACK + 2_000);
    }

    #[test]
    fn windows_are_scaled_after_the_handshake() {
        let mut window = PeerWindow::new(ACK);
        window.on_handshake(SEQ, ACK, 1_000, 7);
        assert_eq!(window.edge(), ACK + 1_000);
        window.on_segment(SEQ, ACK, 1_000);
        assert_eq!((window.edge(), window.largest()), (ACK + 128_000, 128_000));
    }
}
