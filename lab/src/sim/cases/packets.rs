//! Packets of flows that are popular by Zipf's law, in bursts, and perhaps of one heavy flow beside them.

use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use rand_distr::{Distribution, Exp1, Zipf};

use super::super::packet::SimPacket;
use super::NamedCase;

/// A flow beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heavy {
    /// There is none.
    None,
    /// It always has its share of the packets.
    Always,
    /// It has its share in every second second, and a twelfth of it in between.
    EverySecondSecond,
}

/// Nanoseconds after which the weight of a flow changes.
const CHANGE: u64 = 1_000_000_000;
/// What a packet has on the wire.
const BYTES: u16 = 1_000;

pub(in crate::sim) struct CasePackets {
    random: SmallRng,
    ranks: Zipf<f64>,
    /// Nanoseconds between packets on average.
    gap: f64,
    now: f64,
    /// By flow; the heavy one's is the last.
    hashes: Vec<u32>,
    case: NamedCase,
    /// The heavy flow's share.
    share: f64,
    /// The flow of the burst that is under way, and its packets still to come.
    burst: (usize, u32),
}

impl CasePackets {
    pub(in crate::sim) fn new(
        flows: u32,
        case: NamedCase,
        (rate, share): (f64, f64),
        seed: u64,
    ) -> CasePackets {
        let mut random = SmallRng::seed_from_u64(seed);
        let hashes = (0..=flows).map(|_| random.next_u32()).collect();
        let ranks = Zipf::new(f64::from(flows), case.zipf).expect("flows, and a positive exponent");
        let burst = (0, 0);
        CasePackets { random, ranks, gap: 1e9 / rate, now: 0.0, hashes, case, share, burst }
    }

    /// Replaces the contents of `packets` by the next ones.
    pub(in crate::sim) fn fill(&mut self, packets: &mut Vec<SimPacket>, count: usize) {
        packets.clear();
        packets.extend((0..count).map(|_| self.next()));
    }

    fn next(&mut self) -> SimPacket {
        let gap: f64 = self.random.sample(Exp1);
        self.now += gap * self.gap;
        let at = self.now as u64;
        if self.burst.1 == 0 {
            self.burst = (self.pick(at), self.case.burst);
        }
        self.burst.1 -= 1;
        let flow = self.burst.0;
        SimPacket {
            at,
            flow: flow as u32,
            hash: self.hashes[flow],
            luck: self.random.next_u32(),
            bytes: BYTES,
            checksum: 0,
            connection: false,
        }
    }

    fn pick(&mut self, at: u64) -> usize {
        let share = match self.case.heavy {
            Heavy::None => 0.0,
            Heavy::Always => self.share,
            Heavy::EverySecondSecond if (at / CHANGE).is_multiple_of(2) => self.share,
            Heavy::EverySecondSecond => self.share / 12.0,
        };
        if share > 0.0 && self.random.random_bool(share) {
            return self.hashes.len() - 1;
        }
        self.ranks.sample(&mut self.random) as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_come_in_bursts_and_the_heavy_one_changes_its_weight() {
        let case = NamedCase { heavy: Heavy::EverySecondSecond, burst: 4, ..NamedCase::ALL[0] };
        let mut packets = Vec::new();
        CasePackets::new(1_000, case, (40_000.0, 0.12), 1).fill(&mut packets, 80_000);
        assert!(packets.chunks(4).all(|burst| burst.iter().all(|one| one.flow == burst[0].flow)));
        let share = |second: u64| {
            let of: Vec<_> = packets.iter().filter(|one| one.at / CHANGE == second).collect();
            of.iter().filter(|one| one.flow == 1_000).count() as f64 / of.len() as f64
        };
        assert!((share(0) - 0.12).abs() < 0.02 && (share(1) - 0.01).abs() < 0.01);
    }
}
