//! The heaviest flows of a lane, out of packets that it samples.

use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::time::Duration;

use rheostat_base::{ShardId, Time};
use rheostat_packet::FlowKey;
use rheostat_state::{FlowHash, SpaceSaving};
use rheostat_steer::policy::Load;

/// A flow by the first of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowName {
    /// Its shard.
    pub shard: ShardId,
    /// The hash of the key.
    pub hash: FlowHash,
    /// The first of its keys.
    pub key: FlowKey,
}

impl Hash for FlowName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash.0);
    }
}

/// Uses the hash that a flow has already, of which senders know nothing.
#[derive(Clone, Copy, Debug, Default)]
struct NameHasher(u64);

impl Hasher for NameHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        // The upper bits of a hash are the good ones; a map goes by the lower ones first.
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed.rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A flow that may leave its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeavyShare {
    /// Its shard.
    pub shard: ShardId,
    /// Its part of the shard's work, where [`Load::FULL`] stands for all of it: a lower bound, as far as packets were sampled.
    pub part: Load,
}

/// Bytes by flow, of one packet of one batch in [`HeavyFlows::SAMPLE`], times the packets of the batch: Space-Saving with
/// [`HeavyFlows::COUNTERS`] counters, halved every [`HeavyFlows::EPOCH`]. A flow with more than one part in so many of a lane's
/// bytes is known. 128 kilobytes.
#[derive(Debug)]
pub struct HeavyFlows {
    counts: SpaceSaving<FlowName, BuildHasherDefault<NameHasher>>,
    /// By shard, bytes of all its packets that were sampled.
    totals: Vec<u64>,
    due: Time,
    place: usize,
    batches: u32,
}

impl HeavyFlows {
    /// One batch in so many has a packet looked at.
    pub const SAMPLE: u32 = 8;
    /// Flows that are counted at a time.
    pub const COUNTERS: usize = 256;
    /// Counts are halved so often.
    pub const EPOCH: Duration = Duration::from_millis(100);

    /// For a run of so many shards.
    pub fn new(shards: usize) -> HeavyFlows {
        let counts = SpaceSaving::with_hasher(HeavyFlows::COUNTERS, BuildHasherDefault::default());
        HeavyFlows { counts, totals: vec![0; shards], due: Time::ZERO, place: 0, batches: 0 }
    }

    /// Whether the batch at hand has a packet looked at; to be called for each.
    pub fn takes_batch(&mut self) -> bool {
        self.batches = self.batches.wrapping_add(1);
        self.batches.is_multiple_of(HeavyFlows::SAMPLE)
    }

    /// Which of `count` packets to look at: each place of a batch in turn.
    pub fn next_place(&mut self, count: usize) -> usize {
        // Odd, so that no period of the traffic keeps it at the same packets for long.
        self.place = self.place.wrapping_add(13);
        self.place % count.max(1)
    }

    /// Counts a packet of a shard; `name` is its flow, if that may leave.
    pub fn note(&mut self, shard: ShardId, name: Option<FlowName>, bytes: u64) {
        self.totals[shard.index()] += bytes;
        if let Some(name) = name {
            self.counts.add(name, bytes);
        }
    }

    /// Whether an epoch has ended by `now`: then [`HeavyFlows::age`] follows.
    pub fn is_due(&self, now: Time) -> bool {
        now >= self.due
    }

    /// The flows that were noted more than once, each with its part of its shard's work. One that was noted once is known by
    /// chance.
    pub fn parts(&self) -> Vec<(FlowName, Load)> {
        let part = |(name, count): (FlowName, rheostat_state::Estimate)| {
            let part = Load::FULL.part(count.least(), self.totals[name.shard.index()]);
            (part > Load::ZERO).then_some((name, part.min(Load::FULL)))
        };
        self.counts.iter_repeated().filter_map(part).collect()
    }

    /// Begins another epoch.
    pub fn age(&mut self, now: Time) {
        self.counts.age();
        // Rounded up, as counts are at most: no flow has more than its shard.
        self.totals.iter_mut().for_each(|total| *total = total.div_ceil(2));
        self.due = now + HeavyFlows::EPOCH;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn name(shard: u16, number: u64) -> FlowName {
        FlowName { shard: ShardId(shard), hash: FlowHash(number), key: FlowKey::NONE }
    }

    #[test]
    fn a_heavy_flow_has_its_part_of_its_shard_and_loses_it_when_it_is_idle() {
        let mut flows = HeavyFlows::new(2);
        let of = |flows: &HeavyFlows, name: FlowName| {
            let parts = flows.parts();
            parts.iter().find(|(flow, _)| *flow == name).map_or(0.0, |(_, part)| part.share())
        };
        let heavy = name(1, 7);
        for packet in 0..10_000 {
            let light = name(1, 100 + packet % 5_000);
            flows.note(ShardId(1), Some(if packet % 4 == 0 { heavy } else { light }), 100);
            flows.note(ShardId(0), None, 1_000);
        }
        let share = of(&flows, heavy);
        assert!((0.22..=0.25).contains(&share), "a lower bound of a quarter: {share}");
        assert!(flows.parts().len() < 30, "light flows are met once: {}", flows.parts().len());
        assert!(flows.is_due(Time::ZERO));
        for epoch in 0..10 {
            flows.age(Time::from_millis(100 * epoch));
            (0..1_000).for_each(|packet| flows.note(ShardId(1), Some(name(1, 100 + packet)), 100));
        }
        assert!(of(&flows, heavy) < 0.01, "{}", of(&flows, heavy));
        assert!(!flows.is_due(Time::from_millis(999)) && flows.is_due(Time::from_secs(1)));
    }
}
