//! Datagrams at random times: what a queue of Poisson arrivals gets.

use std::net::Ipv4Addr;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_traffic::{Arrival, Source};

/// Flows, all equally popular.
const FLOWS: u16 = 1_024;

/// Datagrams of 64 bytes on the wire from clients in 10.0.0.0/8, exponentially spaced, without end.
pub(super) struct Datagrams {
    /// Frames of all flows, one behind the other.
    frames: Vec<u8>,
    frame: usize,
    /// Nanoseconds between two on average; none arrive where it is infinite.
    gap: f64,
    at: f64,
    random: SmallRng,
}

impl Datagrams {
    /// `packets_per_second` on average, which may be 0.
    pub(super) fn new(packets_per_second: f64, seed: u64) -> Datagrams {
        let mut frames = Vec::new();
        let mut length = 0;
        for flow in 0..FLOWS {
            let from = Ipv4Addr::from_bits(0x0a00_0001 + u32::from(flow) * 257);
            let udp = Transport::Udp { ports: (1_024 + flow, 53) };
            let to = Ipv4Addr::new(198, 18, 0, 1);
            let link = Ethernet {
                source: [2, 0, 0, 0, 0, 1],
                destination: [2, 0, 0, 0, 0, 2],
                vlan: None,
            };
            let packet = FrameBuilder::new(from.into(), to.into(), udp, Payload::Pattern(18));
            let packet = packet.with_ethernet(link);
            length = packet.len();
            frames.resize(frames.len() + length, 0);
            let start = frames.len() - length;
            packet.write(&mut frames[start..]);
        }
        let gap = 1e9 / packets_per_second;
        Datagrams { frames, frame: length, gap, at: 0.0, random: SmallRng::seed_from_u64(seed) }
    }
}

impl Source for Datagrams {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if !self.gap.is_finite() {
            return None;
        }
        let flow = usize::from(self.random.random_range(0..FLOWS));
        // Of (0, 1]: the logarithm is finite.
        let share = 1.0 - self.random.random::<f64>();
        self.at -= self.gap * share.ln();
        frame.clear();
        frame.extend_from_slice(&self.frames[flow * self.frame..(flow + 1) * self.frame]);
        let (time, len) = (Time::from_nanos(self.at as u64), self.frame);
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_as_many_as_asked_for_and_as_irregular_as_poisson() {
        let mut source = Datagrams::new(1e6, 7);
        let mut frame = Vec::new();
        let times: Vec<_> =
            (0..20_000).map(|_| source.next(&mut frame).unwrap().time.as_nanos() as f64).collect();
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((950.0..1_050.0).contains(&mean), "{mean}");
        // An exponential gap deviates by its mean.
        assert!((0.9..1.1).contains(&(square.sqrt() / mean)), "{square}");
        assert_eq!(frame.len(), 60);
    }

    #[test]
    fn without_a_rate_nothing_arrives() {
        assert!(Datagrams::new(0.0, 1).next(&mut Vec::new()).is_none());
    }
}
