//! A source of small datagrams that all arrive at once.

use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_traffic::{Arrival, Source};

/// UDP datagrams from 10.0.0.1 to 192.0.2.1:53, all at time 0; their source ports make a number of flows, in turn.
#[derive(Clone, Debug)]
pub struct Datagrams {
    flows: u16,
    sent: u64,
    limit: u64,
}

impl Datagrams {
    /// `limit` datagrams of `flows` flows.
    ///
    /// # Panics
    /// When `flows` is 0, or exceeds the ports from 1,000 up.
    pub fn new(flows: u16, limit: u64) -> Datagrams {
        assert!((1..=64_535).contains(&flows), "{flows} flows");
        Datagrams { flows, sent: 0, limit }
    }

    /// Datagrams of `flows` flows without end.
    ///
    /// # Panics
    /// As [`Datagrams::new`].
    pub fn endless(flows: u16) -> Datagrams {
        Datagrams::new(flows, u64::MAX)
    }

    /// The datagram of flow `number`.
    pub fn frame(number: u16) -> Vec<u8> {
        let (from, to) = ([10, 0, 0, 1].into(), [192, 0, 2, 1].into());
        let udp = Transport::Udp { ports: (1_000 + number, 53) };
        FrameBuilder::new(from, to, udp, Payload::Pattern(8)).to_vec()
    }
}

impl Source for Datagrams {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.sent == self.limit {
            return None;
        }
        *frame = Datagrams::frame((self.sent % u64::from(self.flows)) as u16);
        self.sent += 1;
        let len = frame.len();
        Some(Arrival { time: Time::ZERO, len, wire_len: len as u32, link: LinkType::Raw })
    }
}
