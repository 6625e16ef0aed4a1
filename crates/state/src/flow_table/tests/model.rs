//! Random operations on the table and on maps.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::timer_wheel::tick;

/// Keys in play, and flows there is room for: keys contend for both.
const KEYS: u32 = if cfg!(miri) { 12 } else { 60 };
const CAPACITY: usize = if cfg!(miri) { 5 } else { 24 };

/// Operations in a row.
const STEPS: usize = if cfg!(miri) { 40 } else { 150 };

#[derive(Clone, Debug)]
enum Step {
    Insert(u32),
    Remove(u32),
    Alias(u32, u32),
    Deadline(u32, Duration),
    Evictable(u32, bool),
    EvictOldest,
    Expire(Duration, usize),
    EndBurst,
}

fn step() -> impl Strategy<Value = Step> {
    let span = prop_oneof![
        (0..3_000_u64).prop_map(Duration::from_millis),
        (0..700_u64).prop_map(Duration::from_secs),
    ];
    let budget = prop::sample::select(vec![0, 1, 5, usize::MAX]);
    prop_oneof![
        8 => (0..KEYS).prop_map(Step::Insert),
        3 => (0..KEYS).prop_map(Step::Remove),
        3 => (0..KEYS, 0..KEYS).prop_map(|(flow, key)| Step::Alias(flow, key)),
        4 => (0..KEYS, span.clone()).prop_map(|(flow, ahead)| Step::Deadline(flow, ahead)),
        2 => (0..KEYS, any::<bool>()).prop_map(|(flow, on)| Step::Evictable(flow, on)),
        1 => Just(Step::EvictOldest),
        2 => (span, budget).prop_map(|(pass, budget)| Step::Expire(pass, budget)),
        2 => Just(Step::EndBurst),
    ]
}

/// A deadline as the table keeps it: rounded up to a multiple of 256 ns.
fn kept(deadline: Time) -> Time {
    Time::from_nanos(deadline.as_nanos().next_multiple_of(256))
}

#[derive(Default)]
struct Model {
    /// What each key leads to.
    keys: HashMap<FlowKey, FlowId>,
    deadlines: HashMap<FlowId, Time>,
    /// In the order of their declaration.
    evictable: Vec<FlowId>,
    ended: HashSet<FlowId>,
    /// Entries freed in this burst.
    resting: HashSet<u32>,
    /// The longest time there was.
    peak: usize,
}

impl Model {
    fn end(&mut self, id: FlowId) {
        self.keys.retain(|_, flow| *flow != id);
        self.evictable.retain(|flow| *flow != id);
        assert!(self.deadlines.remove(&id).is_some());
        self.ended.insert(id);
        self.resting.insert(id.index);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 200 }))]

    #[test]
    fn the_table_does_what_maps_do(steps in prop::collection::vec(step(), 1..STEPS)) {
        let mut layout = StateLayout::new();
        let name = layout.reserve::<Box<FlowKey>>().unwrap();
        let mut table = table(CAPACITY, layout);
        let mut model = Model::default();
        let mut now = Time::from_secs(1_000_000);
        for step in steps {
            match step {
                Step::Insert(number) => {
                    let key = key(number);
                    if model.keys.contains_key(&key) {
                        continue;
                    }
                    let inserted = table.insert_key(&key, now);
                    prop_assert_eq!(inserted.is_ok(), model.deadlines.len() < CAPACITY);
                    if let Ok(id) = inserted {
                        prop_assert!(!model.resting.contains(&id.index));
                        prop_assert!(!model.ended.contains(&id));
                        let mut flow = table.flow(id).unwrap();
                        prop_assert!(flow.state(name).is_none());
                        flow.init(name, Box::new(key));
                        model.keys.insert(key, id);
                        model.deadlines.insert(id, Time::NEVER);
                        model.peak = model.peak.max(model.deadlines.len());
                    }
                }
                Step::Remove(number) => {
                    if let Some(&id) = model.keys.get(&key(number)) {
                        prop_assert!(table.remove(id));
                        model.end(id);
                    }
                }
                Step::Alias(flow, number) => {
                    let key = key(number);
                    let Some(&id) = model.keys.get(&super::key(flow)) else { continue };
                    let keys = model.keys.iter().filter(|(_, other)| **other == id);
                    let own: Vec<FlowKey> = keys.map(|(key, _)| *key).collect();
                    let expected = if model.keys.contains_key(&key) {
                        Err(AliasError::Taken)
                    } else if own.len() == 2 || key.family() != own[0].family() {
                        Err(AliasError::NoRoom)
                    } else {
                        Ok(())
                    };
                    prop_assert_eq!(table.alias(id, hash(&key), &key), expected);
                    if expected.is_ok() {
                        model.keys.insert(key, id);
                    }
                }
                Step::Deadline(number, ahead) => {
                    if let Some(&id) = model.keys.get(&key(number)) {
                        table.flow(id).unwrap().set_deadline(now + ahead);
                        model.deadlines.insert(id, kept(now + ahead));
                    }
                }
                Step::Evictable(number, on) => {
                    if let Some(&id) = model.keys.get(&key(number)) {
                        table.flow(id).unwrap().set_evictable(on);
                        if !on {
                            model.evictable.retain(|flow| *flow != id);
                        } else if !model.evictable.contains(&id) {
                            model.evictable.push(id);
                        }
                    }
                }
                Step::EvictOldest => {
                    let oldest = table.oldest_evictable();
                    prop_assert_eq!(oldest, model.evictable.first().copied());
                    if let Some(id) = oldest {
                        prop_assert!(table.evict(id));
                        model.end(id);
                    }
                }
                Step::Expire(pass, budget) => {
                    now += pass;
                    let mut ended = Vec::new();
                    let reclaimed = table.expire(now, budget, |flow| ended.push(flow.id()));
                    prop_assert_eq!(reclaimed.flows, ended.len());
                    for id in ended {
                        prop_assert!(tick(model.deadlines[&id]) < tick(now));
                        model.end(id);
                    }
                    if reclaimed.complete {
                        prop_assert!(model.deadlines.values().all(|&due| tick(due) >= tick(now)));
                    }
                }
                Step::EndBurst => {
                    table.end_burst();
                    model.resting.clear();
                }
            }
            for number in 0..KEYS {
                let key = key(number);
                let found = table.look_up(&key);
                prop_assert_eq!(found, model.keys.get(&key).copied());
                let flow = table.find_flow(hash(&key), &key, Probe::default());
                prop_assert_eq!(flow.map(|flow| flow.id()), found);
                let Some(mut flow) = found.and_then(|id| table.flow(id)) else { continue };
                let first = **flow.state(name).unwrap();
                prop_assert_eq!(flow.key(), first);
                prop_assert!(key == first || flow.alias() == Some(key));
                prop_assert_eq!(flow.deadline(), model.deadlines[&flow.id()]);
            }
            for &id in &model.ended {
                prop_assert!(table.flow(id).is_none());
            }
            let counts = table.counts();
            prop_assert_eq!(counts.live, model.deadlines.len() as u64);
            prop_assert_eq!(counts.expired, model.ended.len() as u64);
            prop_assert_eq!(counts.created, counts.live + counts.expired);
            prop_assert_eq!(counts.peak, model.peak as u64);
        }
    }
}
