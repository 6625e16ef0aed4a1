//! The end of urgent data that the peer has told (RFC 9293, 3.8.5; RFC 6093).

use crate::sequence::SequenceNumber;

/// Where urgent data of the peer ends (RCV.UP). The data is part of the stream and is read in its place.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerUrgent {
    end: Option<SequenceNumber>,
}

impl PeerUrgent {
    /// A segment at `seq` has the pointer; the user has read up to `read`. Returns whether there is more that is urgent than
    /// before.
    pub(crate) fn on_pointer(
        &mut self,
        seq: SequenceNumber,
        pointer: u16,
        read: SequenceNumber,
    ) -> bool {
        let end = seq + u32::from(pointer);
        let is_news = end.is_after(self.end.unwrap_or(read).max(read));
        if is_news {
            self.end = Some(end);
        }
        is_news
    }

    /// The user has read up to here. What lies before is forgotten, so that it cannot be taken for what comes 2^31 bytes later.
    pub(crate) fn on_read(&mut self, read: SequenceNumber) {
        self.end = self.end.filter(|end| end.is_after(read));
    }

    /// Urgent bytes that the user has not read, received or not.
    pub(crate) fn left(&self, read: SequenceNumber) -> Option<u32> {
        self.end.filter(|end| end.is_after(read)).map(|end| end.since(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: SequenceNumber = SequenceNumber(100);

    #[test]
    fn the_mark_moves_forward_only_and_what_was_read_is_not_urgent() {
        let mut urgent = PeerUrgent::default();
        assert!(!urgent.on_pointer(READ, 0, READ) && !urgent.on_pointer(READ - 10, 10, READ));
        assert!(urgent.on_pointer(READ, 5, READ));
        assert!(!urgent.on_pointer(READ, 5, READ) && !urgent.on_pointer(READ + 2, 2, READ));
        assert!(urgent.on_pointer(READ, 6, READ));
        assert_eq!((urgent.left(READ), urgent.left(READ + 6)), (Some(6), None));
        urgent.on_read(READ + 6);
        let later = READ + (1 << 31) + 10;
        assert!(urgent.on_pointer(later, 3, later));
        assert_eq!(urgent.left(later), Some(3));
    }
}
