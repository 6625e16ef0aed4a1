//! That external endpoints lead home, and belong to one flow or mapping each.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use proptest::prelude::*;
use rheostat_base::ShardId;
use rheostat_packet::{Family, FlowKey};
use rheostat_state::{FlowHasher, FlowTable, StateLayout, TableConfig};
use rheostat_steer::{HashKey, KeyEnd, Orientation, Steering, ports_are_even};

use super::flow::{Endpoint, Ends};
use super::*;
use rheostat_nf::{Chain, Flows, ShardInfo, ShardState, Stage};
use rheostat_state::Handle;

const PROTOCOLS: [u8; 3] = [6, 17, 1];

/// A NAT with all its shards, and the flows of each.
struct World {
    nat: Nat,
    steering: Arc<Steering>,
    shards: Vec<(NatShard, FlowTable)>,
    place: Handle<FlowState>,
}

impl World {
    fn new(config: NatConfig, key: [u8; 40], shards: usize) -> World {
        let mut layout = StateLayout::new();
        let stage = Stage::new(Nat::new(config.clone(), None).unwrap(), &mut layout).unwrap();
        let orientations = vec![Orientation::Inside, Orientation::Outside];
        let steering = Steering::new(&HashKey::new(key), 512, shards, orientations).unwrap();
        let steering = Arc::new(stage.spec().place(steering).unwrap());
        let place = layout.reserve::<FlowState>().unwrap();
        let nat = Nat::new(config, None).unwrap();
        let layout = Arc::new(layout);
        let shard = |id: usize| {
            let info = ShardInfo {
                id: ShardId(id as u16),
                shards,
                seed: id as u64,
                flows: 512,
                hasher: FlowHasher::new([1, 2, 3, 4, 5, 6, 7]),
                steering: steering.clone(),
            };
            let table = TableConfig { capacity: 512, aliases: true };
            let hasher = FlowHasher::new([1, 2, 3, 4, 5, 6, 7]);
            (
                NatShard::of(&nat, info, place),
                FlowTable::new(table, layout.clone(), hasher).unwrap(),
            )
        };
        let shards = (0..shards).map(shard).collect();
        World { nat, steering, shards, place }
    }

    /// Opens a flow from inside in its shard, as packets would. `None` when that is not possible, or it
    /// is open already.
    fn open(&mut self, protocol: u8, inner: Endpoint, remote: Endpoint) -> Option<Ends> {
        let remote = if protocol == 1 { (remote.0, inner.1) } else { remote };
        let key = FlowKey::v4(inner, remote, protocol, 0);
        let id = self.steering.shard_of_key(&key);
        let (shard, table) = &mut self.shards[id.index()];
        if table.find_now(table.hash_of(&key), &key).is_some() {
            return None;
        }
        let flows = Flows::of(table);
        let bound = self.nat.bind(shard, flows, &request(key, inner, remote));
        let Bound { ends, binding, mapping, displaced } = bound.ok()?;
        if let Some(displaced) = displaced {
            let state = table.flow(displaced).and_then(|mut flow| flow.take(self.place));
            let state = state.expect("what was seen");
            let whose = (state.translated.expect("translated"), state.stage);
            let now = rheostat_base::Time::ZERO;
            self.nat.release(shard, (protocol, 0), whose, now, false);
            table.remove(displaced);
        }
        let flow = table.insert(table.hash_of(&key), &key, rheostat_base::Time::ZERO).unwrap();
        let translated = Translated { ends, binding, is_hairpin: false, mapping };
        let state = FlowState {
            translated: Some(translated),
            closing: Default::default(),
            protocol,
            session: Session::default(),
            stage: super::flow::Stage::Waiting,
            opened_inside: true,
        };
        table.flow(flow).expect("inserted a moment ago").init(self.place, state);
        let alias = ends.external_key(protocol, 0);
        assert_eq!(self.steering.shard_of_key(&alias), id, "packets from outside lead elsewhere");
        table.alias(flow, table.hash_of(&alias), &alias).expect("a key of its own");
        Some(ends)
    }
}

fn request(key: FlowKey, inner: Endpoint, remote: Endpoint) -> Request {
    Request { key, inner, remote, opening: None, now: rheostat_base::Time::ZERO }
}

fn config(addresses: u8, mapping: Mapping) -> NatConfig {
    let external = (1..=addresses).map(|last| Ipv4Addr::new(203, 0, 113, last)).collect();
    NatConfig { mapping, ..NatConfig::new(external) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the tuples, the hash key, the number of shards and the pool.
    #[test]
    fn packets_from_outside_reach_the_flow_and_no_other(
        key: [u8; 40],
        shards in prop::sample::select(vec![1_usize, 16, 128, 512]),
        addresses in 1_u8..9,
        independent: bool,
        arbitrary: bool,
        flows in prop::collection::vec(
            (0_usize..3, 0_u32..40, any::<u16>(), 0_u32..6, 0_u16..4), 1..200),
    ) {
        let mapping = match independent {
            true => Mapping::EndpointIndependent,
            false => Mapping::AddressAndPortDependent,
        };
        let pooling = if arbitrary { Pooling::Arbitrary } else { Pooling::Paired };
        let config = NatConfig { pooling, ..config(addresses, mapping) };
        let mut world = World::new(config, key, shards);
        // The owner of each external endpoint: an inner endpoint, and for one remote alone where that counts.
        let mut owners: HashMap<(u8, Endpoint, Option<Endpoint>), Endpoint> = HashMap::new();
        let mut mapped: HashMap<(u8, Endpoint), Endpoint> = HashMap::new();
        for (protocol, host, port, remote, remote_port) in flows {
            let protocol = PROTOCOLS[protocol];
            let inner = (Ipv4Addr::from_bits(0x0a00_0000 + host), port);
            let remote = (Ipv4Addr::from_bits(0xc633_6400 + remote), remote_port);
            let Some(ends) = world.open(protocol, inner, remote) else { continue };
            let of_remote = (!independent).then_some(ends.remote);
            let owner = owners.entry((protocol, ends.external, of_remote)).or_insert(inner);
            prop_assert_eq!(*owner, inner, "two hosts share an endpoint");
            if independent {
                let external = mapped.entry((protocol, inner)).or_insert(ends.external);
                prop_assert_eq!(*external, ends.external, "one inner endpoint has two");
            }
            if port >= 1_024 {
                prop_assert!(ends.external.1 >= 1_024, "a port has become privileged");
            }
        }
    }
}

/// The fill of the pool at which the first flow finds no free port, with a mapping for each.
fn first_refusal(shards: usize) -> f64 {
    let mut key = [0; 40];
    let mut state = 88_172_645_463_325_252_u64;
    let mut world = loop {
        key.iter_mut().for_each(|byte| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        });
        let world = World::new(config(1, Mapping::EndpointIndependent), key, shards);
        if ports_are_even(&world.steering, 17, Family::V4, KeyEnd::First) {
            break world;
        }
    };
    let remote = (Ipv4Addr::new(198, 51, 100, 1), 53);
    // High ports: the last 1,023 of each class are for privileged ones.
    let mut given = 0;
    for number in 0_u32.. {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let inner = (Ipv4Addr::from_bits(0x0a00_0000 + number), 1_024 | (state >> 48) as u16);
        let key = FlowKey::v4(inner, remote, 17, 0);
        let id = world.steering.shard_of_key(&key);
        let (shard, table) = &mut world.shards[id.index()];
        let flows = Flows::of(table);
        match world.nat.bind(shard, flows, &request(key, inner, remote)) {
            // The first that gets the port of another: there are no answers here.
            Ok(_) if shard.counts.ended > 0 => break,
            Ok(_) => given += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    f64::from(given) / 64_512.0
}

/// Shards fill unevenly: what `docs/nat.md` says of it.
#[test]
fn the_first_refusal_comes_late() {
    let fills = [16, 128, 512].map(first_refusal);
    println!("first refusal at {fills:.2?} of the pool");
    for (fill, least) in fills.into_iter().zip([0.92, 0.80, 0.62]) {
        assert!((least..=1.0).contains(&fill), "{fills:?}");
    }
}

/// Flows from even ports to one endpoint: once the even external ports are gone, they get odd ones.
#[test]
fn every_port_is_given_out_before_a_flow_is_refused() {
    for shards in [1, 16] {
        for mapping in [Mapping::EndpointIndependent, Mapping::AddressAndPortDependent] {
            let config = NatConfig { ports: 2_000..=2_127, ..config(1, mapping) };
            let mut world = World::new(config, [0x5a; 40], shards);
            let remote = (Ipv4Addr::new(198, 51, 100, 1), 53);
            let mut given = std::collections::HashSet::new();
            // Many more than there are in each shard, however unevenly they spread.
            for number in 0..128 * shards as u32 {
                let inner = (Ipv4Addr::from_bits(0x0a00_0000 + number), 4_000);
                given.extend(world.open(17, inner, remote).map(|ends| ends.external.1));
            }
            assert_eq!(given.len(), 128, "{mapping:?}, {shards} shards");
        }
    }
}

/// What a shard keeps about remote endpoints goes with the flows there, even where one port or none suits.
#[test]
fn no_crowd_outlives_its_flows() {
    for shards in [1, 16] {
        let mapping = Mapping::AddressAndPortDependent;
        let config = NatConfig { ports: 2_000..=2_000, ..config(1, mapping) };
        let mut world = World::new(config, [0x5a; 40], shards);
        for remote in 0..64 {
            let remote = (Ipv4Addr::new(198, 51, 100, remote), 53);
            // The second takes the only port from the first, in the shard that has it.
            let inner = [1, 2].map(|last| (Ipv4Addr::new(10, 0, 0, last), 4_000));
            let ends: Vec<_> = inner.map(|inner| world.open(17, inner, remote)).into();
            for ends in ends.into_iter().rev().flatten() {
                let key = FlowKey::v4(ends.inner, remote, 17, 0);
                let id = world.steering.shard_of_key(&key);
                let (shard, table) = &mut world.shards[id.index()];
                let Some(flow) = table.find_now(table.hash_of(&key), &key) else { continue };
                let state = table.flow(flow).and_then(|mut flow| flow.take(world.place)).unwrap();
                let whose = (state.translated.unwrap(), state.stage);
                let now = rheostat_base::Time::ZERO;
                world.nat.release(shard, (17, 0), whose, now, false);
                table.remove(flow);
            }
        }
        let crowds: usize = world.shards.iter().map(|(shard, _)| shard.crowds.len()).sum();
        assert_eq!(crowds, 0, "{shards} shards");
    }
}
