//! What left, in order, looked at without the lanes' word.

use std::collections::HashMap;

use rheostat_io::Collected;
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};

/// Follows what leaves a run whose functions change no packet and send none of their own.
#[derive(Debug, Default)]
pub(crate) struct SentLog {
    /// The youngest packet of each flow and direction that has left.
    youngest: HashMap<FlowKey, u32>,
    /// Which packets have left, a bit per stamp.
    left: Vec<u64>,
    /// Packets that left.
    pub(crate) packets: u64,
    /// Those of them that had left before.
    pub(crate) doubled: u64,
    /// Those that left after a younger packet of their flow and direction. Fragments and ICMP errors,
    /// whose way through their home shard may let others pass, do not count.
    pub(crate) overtaken: u64,
}

impl SentLog {
    /// Notes packets in the order they left.
    pub(crate) fn note(&mut self, packets: &[Collected]) {
        for packet in packets {
            self.packets += 1;
            self.doubled += u64::from(self.has_left(packet.stamp));
            let bytes = &packet.bytes;
            let headers = Headers::parse_bytes(bytes, bytes.len(), LinkType::Ethernet);
            let Ok(headers) = headers else { continue };
            let Tuple::Flow(key) = Tuple::of_bytes(bytes, &headers) else { continue };
            let youngest = self.youngest.entry(key).or_insert(packet.stamp);
            self.overtaken += u64::from(packet.stamp < *youngest);
            *youngest = packet.stamp.max(*youngest);
        }
    }

    /// Whether the packet has left before; from now on, it has.
    fn has_left(&mut self, stamp: u32) -> bool {
        let (word, bit) = (stamp as usize / 64, 1 << (stamp % 64));
        if self.left.len() <= word {
            self.left.resize(word + 1, 0);
        }
        let before = self.left[word] & bit != 0;
        self.left[word] |= bit;
        before
    }
}

#[test]
fn what_leaves_twice_or_after_a_younger_packet_is_noted() {
    use rheostat_base::{QueueId, Time};
    use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
    let packet = |stamp, port| {
        let link = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };
        let udp = Transport::Udp { ports: (port, 53) };
        let (from, to) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let frame = FrameBuilder::new(from, to, udp, Payload::Pattern(8)).with_ethernet(link);
        Collected { queue: QueueId(0), stamp, time: Time::ZERO, bytes: frame.to_vec() }
    };
    let mut sent_log = SentLog::default();
    sent_log.note(&[packet(1, 7), packet(3, 7), packet(2, 8), packet(70, 8)]);
    assert_eq!((sent_log.packets, sent_log.doubled, sent_log.overtaken), (4, 0, 0));
    sent_log.note(&[packet(2, 7)]);
    assert_eq!((sent_log.packets, sent_log.doubled, sent_log.overtaken), (5, 1, 1));
}
