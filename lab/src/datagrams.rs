//! The traffic of benchmarks that want nothing of packets but their times: UDP datagrams of 64 bytes on the wire.

use std::net::Ipv4Addr;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rheostat_base::Time;
use rheostat_packet::LinkType;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, Transport};
use rheostat_traffic::{Arrival, Source};

/// How packets follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// At equal distances.
    Constant,
    /// At random: a Poisson process.
    Poisson,
}

/// Datagrams from clients in 10.0.0.0/8 to one server, without end.
pub(crate) struct Datagrams {
    /// Frames of all flows, one behind the other.
    frames: Vec<u8>,
    /// Bytes of a frame.
    frame: usize,
    flows: u16,
    spacing: Spacing,
    /// Nanoseconds between two on average; none arrive where it is infinite.
    gap: f64,
    /// Gaps before the next one.
    gaps: f64,
    number: u64,
    random: SmallRng,
}

impl Datagrams {
    /// `packets_per_second` on average, which may be 0, of `flows` flows.
    ///
    /// Evenly spaced ones start at zero, and their flows take turns. Of a Poisson process, each packet's flow is drawn as well:
    /// the flows of one queue are then a Poisson process too.
    pub(crate) fn new(
        flows: u16,
        spacing: Spacing,
        packets_per_second: f64,
        seed: u64,
    ) -> Datagrams {
        let mut frames = Vec::new();
        let mut frame = 0;
        for flow in 0..flows {
            let packet = datagram(flow);
            frame = packet.len();
            let start = frames.len();
            frames.resize(start + frame, 0);
            packet.write(&mut frames[start..]);
        }
        let gap = 1e9 / packets_per_second;
        let random = SmallRng::seed_from_u64(seed);
        Datagrams { frames, frame, flows, spacing, gap, gaps: 0.0, number: 0, random }
    }

    /// When the next one arrives, in gaps since zero, and its flow.
    fn draw(&mut self) -> (f64, u16) {
        let number = self.number;
        self.number += 1;
        match self.spacing {
            Spacing::Constant => (number as f64, (number % u64::from(self.flows)) as u16),
            Spacing::Poisson => {
                let flow = self.random.random_range(0..self.flows);
                let gap: f64 = Exp1.sample(&mut self.random);
                self.gaps += gap;
                (self.gaps, flow)
            }
        }
    }
}

impl Source for Datagrams {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if !self.gap.is_finite() {
            return None;
        }
        let (gaps, flow) = self.draw();
        let start = usize::from(flow) * self.frame;
        frame.clear();
        frame.extend_from_slice(&self.frames[start..start + self.frame]);
        let (time, len) = (Time::from_nanos((gaps * self.gap) as u64), self.frame);
        Some(Arrival { time, len, wire_len: len as u32, link: LinkType::Ethernet })
    }
}

/// The datagram of a flow, which has a source address and a source port of its own.
fn datagram(flow: u16) -> FrameBuilder<'static> {
    let from = Ipv4Addr::from_bits(0x0a00_0001 + u32::from(flow) * 257);
    let to = Ipv4Addr::new(198, 18, 0, 1);
    let udp = Transport::Udp { ports: (1_024_u16.wrapping_add(flow), 53) };
    let link = Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2], vlan: None };
    FrameBuilder::new(from.into(), to.into(), udp, Payload::Pattern(18)).with_ethernet(link)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The times of the first `count`, and how many frames differ among them.
    fn take(source: &mut Datagrams, count: usize) -> (Vec<f64>, usize) {
        let mut frame = Vec::new();
        let mut frames = HashSet::new();
        let times = (0..count).map(|_| {
            let arrival = source.next(&mut frame).unwrap();
            assert_eq!((arrival.len, frame.len()), (60, 60));
            frames.insert(frame.clone());
            arrival.time.as_nanos() as f64
        });
        (times.collect(), frames.len())
    }

    #[test]
    fn random_arrivals_have_the_rate_and_the_deviation_of_a_poisson_process() {
        let (times, frames) = take(&mut Datagrams::new(1_024, Spacing::Poisson, 1e6, 7), 20_000);
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((950.0..1_050.0).contains(&mean), "{mean}");
        // An exponential gap deviates by its mean.
        assert!((0.9..1.1).contains(&(square.sqrt() / mean)), "{square}");
        assert_eq!(frames, 1_024);
    }

    #[test]
    fn even_arrivals_start_at_zero_and_do_not_drift() {
        let (times, frames) = take(&mut Datagrams::new(64, Spacing::Constant, 3e6, 1), 3_000_001);
        assert_eq!(times[..4], [0.0, 333.0, 666.0, 1_000.0]);
        assert_eq!(times[3_000_000], 1e9);
        assert_eq!(frames, 64);
    }

    #[test]
    fn without_a_rate_nothing_arrives() {
        for spacing in [Spacing::Constant, Spacing::Poisson] {
            assert!(Datagrams::new(1, spacing, 0.0, 1).next(&mut Vec::new()).is_none());
        }
    }
}
