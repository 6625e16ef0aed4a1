//! Evenly spaced packets.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_traffic::{Arrival, Source};

use crate::datagram;

/// How many flows take turns.
const FLOWS: u64 = 64;

/// Datagrams of 64 bytes on the wire, evenly spaced, without end.
pub(super) struct Regular {
    packets_per_second: u64,
    number: u64,
}

impl Regular {
    pub(super) fn new(packets_per_second: u64) -> Regular {
        Regular { packets_per_second, number: 0 }
    }
}

impl Source for Regular {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let nanos = u128::from(self.number) * 1_000_000_000 / u128::from(self.packets_per_second);
        datagram::write((self.number % FLOWS) as u16, frame);
        self.number += 1;
        let len = frame.len();
        let time = Time::ZERO + Duration::from_nanos(nanos as u64);
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}
