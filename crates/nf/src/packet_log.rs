//! What packets were before functions changed them.

use rheostat_packet::Mbuf;

/// Keeps the bytes of packets that are about to be changed, in the order in which that happens.
#[derive(Debug, Default)]
pub(crate) struct PacketLog {
    bytes: Vec<u8>,
    changes: Vec<Change>,
    packet: usize,
}

/// How much has been kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogMark(usize);

/// A change of one packet.
#[derive(Clone, Copy, Debug)]
struct Change {
    /// Which packet.
    packet: usize,
    /// Where its first bytes are kept.
    start: usize,
    /// How long it was.
    len: usize,
}

impl PacketLog {
    /// What is kept from now on belongs to the packet with this number.
    #[inline]
    pub(crate) fn turn_to(&mut self, packet: usize) {
        self.packet = packet;
    }

    /// Keeps the first `count` bytes of the packet, as far as they lie in its first segment, and its
    /// length.
    pub(crate) fn keep(&mut self, packet: &Mbuf, count: usize) {
        let change = Change { packet: self.packet, start: self.bytes.len(), len: packet.len() };
        self.changes.push(change);
        let data = packet.data();
        self.bytes.extend_from_slice(&data[..count.min(data.len())]);
    }

    /// What has been kept so far.
    pub(crate) fn mark(&self) -> LogMark {
        LogMark(self.changes.len())
    }

    /// Makes the packets what they were, and forgets that. A packet may have grown at its front.
    pub(crate) fn undo(&mut self, packets: &mut [Mbuf]) {
        self.undo_to(LogMark::default(), packets);
    }

    /// Makes the packets what they were when this much had been kept, and forgets the rest.
    pub(crate) fn undo_to(&mut self, LogMark(mark): LogMark, packets: &mut [Mbuf]) {
        for Change { packet, start, len } in self.changes.drain(mark..).rev() {
            let packet = &mut packets[packet];
            let shortened = packet.advance(packet.len() - len);
            debug_assert!(shortened, "packets grow by what lies in their first segment");
            let kept = &self.bytes[start..];
            packet.data_mut()[..kept.len()].copy_from_slice(kept);
            self.bytes.truncate(start);
        }
    }

    /// Lets the packets stay as they are now.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.changes.clear();
    }
}

#[cfg(test)]
mod tests {
    use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

    use super::*;

    #[test]
    fn packets_become_what_they_were_whatever_was_done_to_them() {
        let config = MempoolConfig { buffers: 8, ..MempoolConfig::default() };
        let mut pool = PoolCache::new(Mempool::new(&config).unwrap());
        let original: Vec<u8> = (0..100).collect();
        let mut packets = [(); 2].map(|()| pool.alloc_from(&original).unwrap());
        let mut log = PacketLog::default();
        log.turn_to(1);
        log.keep(&packets[1], 40);
        packets[1].data_mut()[..40].fill(7);
        log.turn_to(0);
        log.keep(&packets[0], usize::MAX);
        packets[0].data_mut().fill(8);
        // A packet that was changed gets a header in front, and is changed again.
        log.turn_to(1);
        log.keep(&packets[1], 14);
        packets[1].prepend(20).unwrap();
        packets[1].data_mut()[..34].fill(9);
        log.keep(&packets[1], 50);
        packets[1].data_mut()[..50].fill(10);
        log.undo(&mut packets);
        assert!(packets.iter().all(|packet| packet.data() == original), "{packets:?}");
        assert!(log.bytes.is_empty() && log.changes.is_empty());
        for packet in packets {
            pool.free(packet);
        }
    }
}
