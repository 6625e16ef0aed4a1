//! Packets of flows that are popular by Zipf's law.

use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rand_distr::{Distribution, Exp1, Zipf};

use super::super::packet::SimPacket;

/// Packets at random times (Poisson), each of the flow of rank r with a probability of r^-s. A flow's number is its rank,
/// from 0; hashes are random.
pub(super) struct ZipfPackets {
    random: SmallRng,
    ranks: Zipf<f64>,
    /// Nanoseconds between packets on average.
    gap: f64,
    now: f64,
    bytes: u16,
    /// By flow.
    hashes: Vec<u32>,
}

impl ZipfPackets {
    pub(super) fn new(
        flows: u32,
        exponent: f64,
        bytes: u16,
        packets_per_second: u64,
        seed: u64,
    ) -> ZipfPackets {
        let mut random = SmallRng::seed_from_u64(seed);
        let hashes = (0..flows).map(|_| random.next_u32()).collect();
        let ranks = Zipf::new(f64::from(flows), exponent).expect("flows and an exponent from 0 up");
        ZipfPackets { random, ranks, gap: 1e9 / packets_per_second as f64, now: 0.0, bytes, hashes }
    }

    /// Replaces the contents of `packets` by the next ones.
    pub(super) fn fill(&mut self, packets: &mut Vec<SimPacket>, count: usize) {
        packets.clear();
        packets.extend((0..count).map(|_| self.next()));
    }

    fn next(&mut self) -> SimPacket {
        let gap: f64 = self.random.sample(Exp1);
        self.now += gap * self.gap;
        let flow = self.ranks.sample(&mut self.random) as usize - 1;
        SimPacket {
            at: self.now as u64,
            flow: flow as u32,
            hash: self.hashes[flow],
            luck: self.random.next_u32(),
            bytes: self.bytes,
            checksum: 0,
            connection: false,
        }
    }
}

/// The first of the rarest flows that together have this share of the packets.
pub(in super::super) fn first_of_tail(flows: u32, exponent: f64, share: f64) -> u32 {
    let weight = |rank: u32| f64::from(rank + 1).powf(-exponent);
    let wanted = share * (0..flows).map(weight).sum::<f64>();
    let (mut first, mut tail) = (flows, 0.0);
    while first > 0 && tail < wanted {
        first -= 1;
        tail += weight(first);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_as_popular_as_their_ranks_say() {
        let mut packets = Vec::new();
        ZipfPackets::new(1_000, 1.0, 100, 1_000_000, 1).fill(&mut packets, 100_000);
        let count = |flows: std::ops::Range<u32>| {
            packets.iter().filter(|packet| flows.contains(&packet.flow)).count() as f64 / 1e5
        };
        // The sum of 1/r up to 1000 is 7.485.
        assert!((count(0..1) - 1.0 / 7.485).abs() < 0.01);
        let first = first_of_tail(1_000, 1.0, 0.1);
        assert!((count(first..1_000) - 0.1).abs() < 0.01, "{first}");
        assert!(packets.is_sorted_by_key(|packet| packet.at));
        let last = packets[packets.len() - 1].at;
        assert!((95_000_000..105_000_000).contains(&last), "a million packets a second: {last}");
    }
}
