//! Which packets come, and to which lane: drawn before the measurement.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;
use rheostat_packet::FlowKey;
use rheostat_state::{FlowHash, FlowHasher};
use rheostat_steer::dispatch::{Arrival, Choice, Dispatch, Spray};
use rheostat_steer::{HashKey, Orientation, Steering};
use rheostat_traffic::tuple_of;

use crate::error::BenchError;

/// Shards, and buckets of the indirection table: those of a run by default.
pub(super) const SHARDS: usize = 128;
const BUCKETS: usize = 512;
/// UDP, as in the paper.
const PROTOCOL: u8 = 17;

/// A sequence of packets, and the lanes they come to.
#[derive(Debug)]
pub(crate) struct SharingArrivals {
    pub(crate) flows: Vec<SharingFlow>,
    /// By lane, where shard `n` belongs to lane `n mod lanes`.
    pub(super) by_shard: Vec<Vec<SharingPacket>>,
    /// By lane, where any may get any packet.
    pub(super) sprayed: Vec<Vec<SharingPacket>>,
    /// The hash function of the tables.
    pub(super) hasher: FlowHasher,
    packets: u32,
}

/// A flow, from its packets' headers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharingFlow {
    pub(super) key: FlowKey,
    pub(super) hash: FlowHash,
    pub(super) shard: usize,
}

/// A packet in a lane's queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharingPacket {
    /// Its place in the sequence of all lanes' packets.
    pub(super) position: u32,
    /// Its flow's place in [`SharingArrivals::flows`].
    pub(super) flow: u32,
}

impl SharingArrivals {
    /// Draws `packets` packets, each of any of `flows` flows with the same probability.
    pub(crate) fn draw(
        flows: u32,
        packets: u32,
        lanes: usize,
    ) -> Result<SharingArrivals, BenchError> {
        let mut random = SmallRng::seed_from_u64(u64::from(flows));
        let key = HashKey::new(std::array::from_fn(|_| random.random()));
        let steering = Steering::new(&key, BUCKETS, SHARDS, vec![Orientation::Inside])?;
        let hasher = FlowHasher::new(std::array::from_fn(|_| random.random()));
        let mut rss = Vec::with_capacity(flows as usize);
        let flow = |number: u32| {
            let (client, server) = tuple_of(number.into());
            let key = FlowKey::v4(client, server, PROTOCOL, 0);
            let hash = steering.hash(&key, steering.kind_of(&key));
            rss.push(hash);
            let shard = steering.shard_of_hash(hash).index();
            SharingFlow { key, hash: hasher.hash(&key), shard }
        };
        let flows: Vec<SharingFlow> = (0..flows).map(flow).collect();
        let mut by_shard = vec![Vec::new(); lanes];
        let mut sprayed = vec![Vec::new(); lanes];
        let backlogs = vec![0; lanes];
        for position in 0..packets {
            let flow = random.random_range(0..flows.len() as u32);
            let packet = SharingPacket { position, flow };
            by_shard[flows[flow as usize].shard % lanes].push(packet);
            let (hash, checksum) = (rss[flow as usize], random.random());
            let arrival = Arrival { now: Time::ZERO, hash, checksum, connection: false };
            let Choice::Lane(lane) = Spray.dispatch(&arrival, &backlogs) else {
                unreachable!("data goes to a lane")
            };
            sprayed[lane.index()].push(packet);
        }
        Ok(SharingArrivals { flows, by_shard, sprayed, hasher, packets })
    }

    /// How many packets there are.
    pub(crate) fn packets(&self) -> u64 {
        self.packets.into()
    }

    /// How many lanes there are.
    pub(super) fn lanes(&self) -> usize {
        self.by_shard.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_comes_to_one_lane_in_order() {
        let arrivals = SharingArrivals::draw(100, 10_000, 3).unwrap();
        for queues in [&arrivals.by_shard, &arrivals.sprayed] {
            let positions = |queue: &Vec<SharingPacket>| -> Vec<u32> {
                queue.iter().map(|packet| packet.position).collect()
            };
            assert!(queues.iter().all(|queue| positions(queue).is_sorted()));
            let mut all: Vec<u32> = queues.iter().flat_map(positions).collect();
            all.sort_unstable();
            assert_eq!(all, (0..10_000).collect::<Vec<u32>>());
        }
    }

    #[test]
    fn flows_stay_on_a_lane_unless_packets_are_sprayed() {
        let arrivals = SharingArrivals::draw(100, 10_000, 3).unwrap();
        let lanes_of = |queues: &[Vec<SharingPacket>]| {
            let mut lanes = vec![std::collections::BTreeSet::new(); arrivals.flows.len()];
            for (lane, queue) in queues.iter().enumerate() {
                for packet in queue {
                    lanes[packet.flow as usize].insert(lane);
                }
            }
            lanes.iter().map(|lanes| lanes.len()).collect::<Vec<_>>()
        };
        assert_eq!(lanes_of(&arrivals.by_shard), vec![1; 100]);
        assert_eq!(lanes_of(&arrivals.sprayed), vec![3; 100]);
    }
}
