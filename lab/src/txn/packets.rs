//! What packets do: drawn before the measurement.

use std::fmt;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_traffic::{Distribution, FlowPicker};

/// Elements of the vector (NFOS, section 5.3).
pub(super) const ELEMENTS: usize = 10_000;
/// The exponent of Zipf's law there.
const SKEW: f64 = 0.99;
/// Of so many packets of [`Workload::ReadFour`], one writes.
const WRITES: u32 = 100;
const SEED: u64 = 1;

/// What packets do with elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Reads four elements, any of them alike; one packet in a hundred writes one of the four.
    ReadFour,
    /// Reads one element, any of them alike.
    ReadUniform,
    /// Reads one element, by Zipf's law with exponent 0.99.
    ReadZipf,
    /// Reads and writes one element, any of them alike.
    WriteUniform,
    /// Reads and writes one element, by Zipf's law.
    WriteZipf,
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 5] = [
        Workload::ReadFour,
        Workload::ReadUniform,
        Workload::ReadZipf,
        Workload::WriteUniform,
        Workload::WriteZipf,
    ];

    /// The name in rows.
    pub fn name(self) -> &'static str {
        match self {
            Workload::ReadFour => "read4",
            Workload::ReadUniform => "ro-uniform",
            Workload::ReadZipf => "ro-zipf",
            Workload::WriteUniform => "rw-uniform",
            Workload::WriteZipf => "rw-zipf",
        }
    }

    fn distribution(self) -> Distribution {
        match self {
            Workload::ReadFour | Workload::ReadUniform | Workload::WriteUniform => {
                Distribution::Uniform
            }
            Workload::ReadZipf | Workload::WriteZipf => Distribution::Zipf(SKEW),
        }
    }

    /// Whether a packet reads four elements, and not one.
    pub(super) fn reads_four(self) -> bool {
        self == Workload::ReadFour
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct TxnPacket {
    /// What it reads: all of these, or the first.
    pub(super) elements: [u16; 4],
    /// Whether it writes the first of them.
    pub(super) writes: bool,
}

/// The packets of all lanes.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) workload: Workload,
    pub(super) by_lane: Vec<Vec<TxnPacket>>,
}

impl Packets {
    /// Draws `count` packets for each lane, the same for all engines. Popular elements are so on all lanes.
    pub(super) fn draw(workload: Workload, lanes: usize, count: u32) -> Packets {
        let mut rng = SmallRng::seed_from_u64(SEED);
        let drawn = count as usize * lanes * if workload.reads_four() { 4 } else { 1 };
        let mut elements = FlowPicker::new(ELEMENTS as u32, workload.distribution(), drawn, SEED);
        let mut packet = || {
            let first = elements.pick() as u16;
            let mut packet = TxnPacket { elements: [first; 4], writes: false };
            packet.writes = match workload {
                Workload::ReadFour => {
                    packet.elements[1..].fill_with(|| elements.pick() as u16);
                    rng.random_range(0..WRITES) == 0
                }
                Workload::ReadUniform | Workload::ReadZipf => false,
                Workload::WriteUniform | Workload::WriteZipf => true,
            };
            packet
        };
        let by_lane = (0..lanes).map(|_| (0..count).map(|_| packet()).collect()).collect();
        Packets { workload, by_lane }
    }

    pub(super) fn lanes(&self) -> usize {
        self.by_lane.len()
    }

    /// How many packets there are.
    pub(super) fn count(&self) -> u64 {
        self.by_lane.iter().map(|packets| packets.len() as u64).sum()
    }

    /// How many of them write.
    pub(super) fn writes(&self) -> u64 {
        self.by_lane.iter().flatten().filter(|packet| packet.writes).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_those_of_their_workload() {
        for workload in Workload::ALL {
            let packets = Packets::draw(workload, 2, 20_000);
            assert_eq!((packets.lanes(), packets.count()), (2, 40_000));
            let all = packets.by_lane.iter().flatten();
            assert!(
                all.clone()
                    .all(|packet| packet.elements.iter().all(|e| usize::from(*e) < ELEMENTS))
            );
            let writes = packets.writes();
            match workload {
                Workload::ReadFour => assert!((200..600).contains(&writes), "{writes}"),
                Workload::ReadUniform | Workload::ReadZipf => assert_eq!(writes, 0),
                Workload::WriteUniform | Workload::WriteZipf => assert_eq!(writes, 40_000),
            }
        }
    }

    /// By Zipf's law the most popular of 10,000 elements has 1 ÷ Σ k^-0.99 = 9.7 % of the packets, on every lane.
    #[test]
    fn lanes_share_what_is_popular() {
        let packets = Packets::draw(Workload::WriteZipf, 2, 20_000);
        let top = |lane: usize| {
            let mut counts = vec![0_u32; ELEMENTS];
            packets.by_lane[lane].iter().for_each(|p| counts[usize::from(p.elements[0])] += 1);
            let top = (0..ELEMENTS).max_by_key(|element| counts[*element]).unwrap();
            assert!((1_700..2_200).contains(&counts[top]), "{}", counts[top]);
            top
        };
        assert_eq!(top(0), top(1));
    }
}
