//! Flows whose states are in use.

use rheostat_base::{DeviceId, ShardId};

use super::*;
use crate::{FragmentConfig, FragmentTracker, Shard};

/// A table of one flow with two states of which none is initialised.
fn with_two_states() -> (FlowTable, FlowId, Handle<u32>, Handle<[u64; 9]>) {
    let mut layout = StateLayout::new();
    let (small, large) = (layout.reserve().unwrap(), layout.reserve().unwrap());
    let mut table = table(4, layout);
    let id = table.insert_key(&key(0), Time::ZERO).unwrap();
    (table, id, small, large)
}

#[test]
fn a_flow_opens_when_all_its_states_are_there() {
    let (mut table, id, small, large) = with_two_states();
    assert!(table.flow(id).unwrap().open((small, large)).is_none());
    table.flow(id).unwrap().init(large, [7; 9]);
    assert!(table.flow(id).unwrap().open((small, large)).is_none(), "one is missing");
    assert!(table.flow(id).unwrap().open(large).is_some(), "and is not asked for");
    assert!(table.flow(id).unwrap().open(()).is_some());
    table.flow(id).unwrap().init(small, 1);
    let mut flow = table.flow(id).unwrap().open((small, large)).expect("both are there");
    *flow.states.0 += 1;
    assert!(!flow.note_arrival(true, DeviceId(0), 5));
    assert!(flow.note_arrival(true, DeviceId(0), 4), "a late one");
    flow.states.1[8] = u64::from(*flow.states.0);
    flow.set_deadline(Time::from_nanos(512));
    *flow.states.0 += 1;
    let mut flow = table.flow(id).unwrap();
    assert_eq!((flow.state(small).copied(), flow.deadline()), (Some(3), Time::from_nanos(512)));
    assert_eq!(flow.state(large).unwrap()[7..], [7, 2]);
    flow.take(small);
    assert!(flow.open((small, large)).is_none());
}

#[test]
fn a_probe_of_a_second_key_leads_to_the_flow() {
    let (mut table, id, small, _) = with_two_states();
    table.flow(id).unwrap().init(small, 1);
    let wide = table.insert_key(&key(2), Time::ZERO).unwrap();
    for (flow, alias) in [(id, key(1)), (wide, key(5))] {
        table.alias(flow, hash(&alias), &alias).unwrap();
        let probe = table.probe(hash(&alias), alias.family());
        assert_eq!(table.probed(&alias, probe).unwrap().id(), flow);
        assert!(table.probed(&key(3), probe).is_none(), "the key counts");
    }
    assert!(table.probed(&key(0), Probe::default()).is_none());
}

/// A run notes the arrival of a packet with its flow, leaves a late packet to others, and the timers find a deadline that it sets.
#[test]
fn open_flows_note_arrivals_and_deadlines() {
    let (mut table, id, small, large) = with_two_states();
    let mut flow = table.flow(id).unwrap();
    flow.init(small, 1);
    flow.init(large, [0; 9]);
    flow.set_deadline(Time::from_secs(100));
    let probe = table.probe(hash(&key(0)), key(0).family());
    let fragments = FragmentTracker::new(FragmentConfig::default());
    let shard: Box<Shard> = Box::new(Shard { id: ShardId(0), table, fragments, local: () });
    let (mut shards, set) = ([Some(shard)], StateBits::of(small).and(StateBits::of(large)));
    let push = |flows: &mut OpenFlows<'_>, stamp, seconds| {
        let arrival = (true, DeviceId(0), stamp);
        flows.push(ShardId(0), &key(0), probe, Time::from_secs(seconds), arrival)
    };
    let flows = &mut OpenFlows::new(&mut shards, set);
    assert!(push(flows, 5, 0));
    assert!(!push(flows, 6, 0), "a flow is open once");
    *flows.entries().states_mut(small).get_mut(0) += 1;
    flows.set_deadline(0, Time::from_secs(2));
    let flows = &mut OpenFlows::new(&mut shards, set);
    assert!(!push(flows, 4, 1), "a late packet");
    assert!(flows.entries().is_empty());
    assert!(push(flows, 5, 1), "the same packet again is not late");
    assert!(!push(&mut OpenFlows::new(&mut shards, set), 6, 2), "the flow has ended");
    let (mut ended, table) = (Vec::new(), &mut shards[0].as_mut().unwrap().table);
    let reclaimed = table.expire(Time::from_secs(3), usize::MAX, |mut flow| {
        ended.push((flow.deadline(), flow.state(small).copied()));
    });
    assert!(reclaimed.complete);
    assert_eq!(ended, [(Time::from_secs(2), Some(2))]);
}

#[test]
#[should_panic(expected = "two functions have one state")]
fn a_state_is_not_lent_twice() {
    let (mut table, id, small, _) = with_two_states();
    table.flow(id).unwrap().init(small, 1);
    let _ = table.flow(id).unwrap().open((small, small));
}

#[test]
#[should_panic(expected = "another layout")]
fn handles_of_another_layout_open_nothing() {
    let (mut table, id, ..) = with_two_states();
    let (_, _, small, _) = with_two_states();
    let _ = table.flow(id).unwrap().open(small);
}
