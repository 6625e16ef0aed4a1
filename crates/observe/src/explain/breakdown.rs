//! Which buckets and flows packets belong to.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use rheostat_base::{DeviceId, ShardId};
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};
use rheostat_steer::Steering;

/// Flows that are counted separately. A flow that matters comes among the first.
const MOST_FLOWS: usize = 1 << 20;

/// Counts packets by bucket and by flow.
#[derive(Clone, Debug)]
pub struct Breakdown {
    steering: Arc<Steering>,
    packets: u64,
    buckets: Vec<u64>,
    flows: HashMap<FlowKey, FlowCount>,
}

#[derive(Clone, Copy, Debug)]
struct FlowCount {
    shard: ShardId,
    packets: u64,
}

impl Breakdown {
    /// Counts packets as `steering` places them.
    pub fn new(steering: Arc<Steering>) -> Breakdown {
        let buckets = vec![0; steering.buckets()];
        Breakdown { steering, packets: 0, buckets, flows: HashMap::new() }
    }

    /// Counts a packet that `device` received, of `wire_len` bytes, of which these are the first. Fragments
    /// count as a flow between their addresses, ICMP errors for the flow they are about, and what belongs to no
    /// flow in bucket 0, where devices put it.
    pub fn count(&mut self, device: DeviceId, link: LinkType, wire_len: usize, bytes: &[u8]) {
        self.packets += 1;
        let headers = Headers::parse_bytes(bytes, wire_len, link);
        let tuple =
            headers.map_or(Tuple::None, |headers| self.steering.tuple(bytes, &headers, link));
        let (Tuple::Flow(key) | Tuple::IcmpError(key) | Tuple::Fragment(key, _)) = tuple else {
            self.buckets[0] += 1;
            return;
        };
        let key = self.steering.orient(device, key).key;
        let bucket = self.steering.bucket_of_key(&key);
        self.buckets[bucket] += 1;
        let room = self.flows.len() < MOST_FLOWS;
        match self.flows.entry(key) {
            Entry::Occupied(mut flow) => flow.get_mut().packets += 1,
            Entry::Vacant(place) if room => {
                let shard = self.steering.shard_of_hash(bucket as u32);
                place.insert(FlowCount { shard, packets: 1 });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// How packets are placed.
    pub fn steering(&self) -> &Steering {
        &self.steering
    }

    /// Packets counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets of each bucket.
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// Packets of each shard.
    pub fn shards(&self) -> Vec<u64> {
        let mut shards = vec![0; self.steering.shards()];
        for (bucket, packets) in self.buckets.iter().enumerate() {
            shards[self.steering.shard_of_hash(bucket as u32).index()] += packets;
        }
        shards
    }

    /// The flows with the most packets, `most` of them at most: key, shard, packets. Of equals the one whose name
    /// comes first.
    pub fn heaviest(&self, most: usize) -> Vec<(FlowKey, ShardId, u64)> {
        let mut flows: Vec<_> =
            self.flows.iter().map(|(key, flow)| (*key, flow.shard, flow.packets)).collect();
        flows.sort_unstable_by_key(|(.., packets)| Reverse(*packets));
        // Names are compared of those only that may be among the most.
        let least = flows.get(most.saturating_sub(1)).map_or(0, |(.., packets)| *packets);
        flows.retain(|(.., packets)| *packets >= least);
        flows.sort_by_cached_key(|(key, _, packets)| (Reverse(*packets), key.to_string()));
        flows.truncate(most);
        flows
    }

    /// The flow of a shard with the most packets, with their number.
    pub fn heaviest_of(&self, shard: ShardId) -> Option<(FlowKey, u64)> {
        let own = self.flows.iter().filter(|(_, flow)| flow.shard == shard);
        own.map(|(key, flow)| (*key, flow.packets))
            .max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.to_string().cmp(&a.0.to_string())))
    }

    /// How many flows of each shard were seen.
    pub fn flows_by_shard(&self) -> Vec<usize> {
        let mut flows = vec![0; self.steering.shards()];
        self.flows.values().for_each(|flow| flows[flow.shard.index()] += 1);
        flows
    }
}
