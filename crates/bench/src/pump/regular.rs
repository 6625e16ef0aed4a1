//! Evenly spaced packets.

use std::net::Ipv4Addr;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_traffic::{Arrival, Source};

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
        let port = 1_024 + (self.number % FLOWS) as u16;
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(198, 18, 0, 1));
        let udp = Transport::Udp { ports: (port, 53) };
        let link =
            Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2], vlan: None };
        let packet = FrameBuilder::new(from.into(), to.into(), udp, Payload::Pattern(18));
        let packet = packet.with_ethernet(link);
        frame.resize(packet.len(), 0);
        packet.write(frame);
        self.number += 1;
        let len = frame.len();
        let time = Time::ZERO + Duration::from_nanos(nanos as u64);
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}
