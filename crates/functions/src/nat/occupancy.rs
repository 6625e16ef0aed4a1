//! A shard of a NAT of which a set share of the ports is in use, to measure what a new flow costs then.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{ShardId, Time};
use rheostat_packet::{Family, FlowKey};
use rheostat_state::{FlowHasher, FlowId, FlowTable, StateLayout, TableConfig};
use rheostat_steer::{HashKey, KeyEnd, Orientation, Steering, ports_are_even};

use super::bind::{Bound, Request};
use super::flow::{Endpoint, FlowState, Stage as FlowStage, Translated};
use super::{Mapping, Nat, NatConfig, NatShard};
use rheostat_nf::{Chain, Flows, ShardInfo, ShardState, Stage};

const UDP: u8 = 17;
/// Where all flows go, so that with either mapping they compete for the same ports.
const REMOTE: Endpoint = (Ipv4Addr::new(198, 51, 100, 1), 53);

/// A shard with its flow table. Flows are bound as [`NetworkFunction::first`](rheostat_nf::NetworkFunction::first) binds them, and answered.
#[derive(Debug)]
pub struct Occupancy {
    nat: Nat,
    steering: Arc<Steering>,
    shard: NatShard,
    table: FlowTable,
    place: rheostat_state::Handle<FlowState>,
    ports: usize,
    open: Vec<FlowId>,
    rng: StdRng,
    hosts: u32,
}

/// A flow that is about to be opened: an endpoint inside that leads to the shard.
#[derive(Clone, Copy, Debug)]
pub struct NewFlow {
    inner: Endpoint,
    key: FlowKey,
}

impl Occupancy {
    /// The first of `shards` shards of a NAT with one external address, without flows.
    ///
    /// # Panics
    /// When there is no memory, or `shards` is not a number of shards.
    pub fn new(mapping: Mapping, shards: usize) -> Occupancy {
        let external = vec![Ipv4Addr::new(203, 0, 113, 1)];
        // Ports do not rest, so that those of flows that end are free.
        let rest = std::time::Duration::ZERO;
        let config = NatConfig { mapping, rest, ..NatConfig::new(external) };
        let mut layout = StateLayout::new();
        let nat = Nat::new(config.clone(), None).expect("no blocks");
        let place = layout.reserve::<FlowState>().expect("the state fits");
        let mut rng = StdRng::seed_from_u64(1);
        let steering = loop {
            let stage = Nat::new(config.clone(), None).expect("no blocks");
            let stage = Stage::new(stage, &mut StateLayout::new()).expect("the state fits");
            let orientations = vec![Orientation::Inside, Orientation::Outside];
            let steering = Steering::new(&HashKey::new(rng.random()), 512, shards, orientations);
            let steering = steering.expect("a number of shards");
            let steering = stage.spec().place(steering).expect("one function");
            if ports_are_even(&steering, UDP, Family::V4, KeyEnd::First) {
                break Arc::new(steering);
            }
        };
        let info = ShardInfo {
            id: ShardId(0),
            shards,
            seed: 1,
            flows: 0,
            hasher: FlowHasher::fixed(),
            steering: steering.clone(),
        };
        let shard = NatShard::of(&nat, info, place);
        // Classes are of the same size, but for the ports below 1024.
        let ports = 64_512 / shards;
        let table = TableConfig { capacity: 2 * ports + 64, aliases: true };
        let hasher = FlowHasher::new([1, 2, 3, 4, 5, 6, 7]);
        let table = FlowTable::new(table, Arc::new(layout), hasher).expect("there is memory");
        let open = Vec::new();
        Occupancy { nat, steering, shard, table, place, ports, open, rng, hosts: 0 }
    }

    /// Ports that flows from unprivileged ports can get, within one in a hundred.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// Flows that are open.
    pub fn flows(&self) -> usize {
        self.open.len()
    }

    /// A flow from an endpoint inside that has none.
    pub fn new_flow(&mut self) -> NewFlow {
        loop {
            self.hosts += 1;
            let host = Ipv4Addr::from_bits(0x0a00_0000 + self.hosts);
            let inner = (host, self.rng.random_range(1_024..=u16::MAX));
            let key = FlowKey::v4(inner, REMOTE, UDP, 0);
            if self.steering.shard_of_key(&key) == ShardId(0) {
                return NewFlow { inner, key };
            }
        }
    }

    /// Opens a flow: finds an external endpoint for it, and enters it in the table by both its keys. Returns whether
    /// it got a free port.
    pub fn open(&mut self, flow: &NewFlow) -> bool {
        let NewFlow { inner, key } = *flow;
        let taken = self.shard.counts.taken + self.shard.counts.reused;
        let now = Time::ZERO;
        let request = Request { key, inner, remote: REMOTE, opening: None, now };
        let bound = self.nat.bind(&mut self.shard, Flows::of(&self.table), &request);
        let Ok(Bound { ends, binding, mapping, .. }) = bound else { return false };
        let translated = Translated { ends, binding, is_hairpin: false, mapping };
        let state = FlowState {
            translated: Some(translated),
            protocol: UDP,
            opened_inside: true,
            ..FlowState::default()
        };
        let (hash, alias) = (self.table.hash_of(&key), ends.external_key(UDP, 0));
        let Ok(id) = self.table.insert(hash, &key, now) else { return false };
        let Some(mut entry) = self.table.flow(id) else { return false };
        entry.init(self.place, state);
        let hash = self.table.hash_of(&alias);
        let is_named = self.table.alias(id, hash, &alias).is_ok();
        self.open.push(id);
        is_named && taken == self.shard.counts.taken + self.shard.counts.reused
    }

    /// Answers the flow that was opened `back` flows ago, so that its port is not taken from it.
    pub fn answer(&mut self, back: usize) {
        let Some(id) = self.open.len().checked_sub(back + 1).map(|at| self.open[at]) else {
            return;
        };
        let Some(mut entry) = self.table.flow(id) else { return };
        if let Some(state) = entry.state(self.place) {
            self.nat.turn(&mut self.shard, 0, state, FlowStage::Firm);
        }
    }

    /// Ends a flow at random. Its port is free at once.
    pub fn end_one(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let id = self.open.swap_remove(self.rng.random_range(0..self.open.len()));
        let state = self.table.flow(id).and_then(|mut flow| flow.take(self.place));
        if let Some(FlowState { translated: Some(translated), stage, .. }) = state {
            self.nat.release(&mut self.shard, (UDP, 0), (translated, stage), Time::ZERO, false);
        }
        self.table.remove(id);
        self.table.end_burst();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_filled_to_all_but_the_last_ports_and_stays_so() {
        for mapping in [Mapping::EndpointIndependent, Mapping::AddressAndPortDependent] {
            let mut shard = Occupancy::new(mapping, 128);
            let most = shard.ports() * 98 / 100;
            for round in 0..3 * most {
                if shard.flows() == most {
                    shard.end_one();
                }
                let flow = shard.new_flow();
                assert!(shard.open(&flow), "{mapping:?}, flow {round}");
                shard.answer(0);
            }
            assert_eq!(shard.flows(), most);
        }
    }
}
