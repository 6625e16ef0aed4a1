//! The operations of shared objects against simple models: one transaction after the other, random operations, the same results.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use proptest::prelude::*;
use rheostat_base::{LaneId, Time};
use rheostat_state::object::{Allocator, Distributed, Full, Lease, Map};
use rheostat_state::txn::{Objects, Txn};

/// Runs `operation` in a transaction of its own.
fn within<R>(txn: &mut Txn, now: u64, operation: impl FnOnce(&mut Txn) -> R) -> R {
    txn.begin(Time::from_nanos(now));
    let result = operation(txn);
    txn.commit().expect("no other lane runs");
    result
}

#[derive(Clone, Copy, Debug)]
enum MapStep {
    Get(u8),
    Set(u8, u32),
    Remove(u8),
}

fn map_step() -> impl Strategy<Value = MapStep> {
    // More keys than there is room for.
    let key = 0..40_u8;
    prop_oneof![
        key.clone().prop_map(MapStep::Get),
        (key.clone(), any::<u32>()).prop_map(|(key, value)| MapStep::Set(key, value)),
        key.prop_map(MapStep::Remove),
    ]
}

proptest! {
    #[test]
    fn a_map_is_a_map(steps in prop::collection::vec(map_step(), 1..400), seed in any::<u64>()) {
        const CAPACITY: usize = 6;
        let objects = Objects::new(1);
        let map: Map<[u8; 11], u32> = Map::new(&objects, "map", CAPACITY);
        let mut txn = Txn::new(&objects, LaneId(0));
        let key = |key: u8| std::array::from_fn(|at| key ^ (seed >> at) as u8);
        let mut model = HashMap::new();
        for step in steps {
            match step {
                MapStep::Get(k) => {
                    let value = within(&mut txn, 0, |txn| map.get(txn, &key(k))).unwrap();
                    prop_assert_eq!(value, model.get(&k).copied());
                    prop_assert!(map.guess(&key(k)).is_none_or(|guess| Some(guess) == value));
                }
                MapStep::Set(k, value) => {
                    match within(&mut txn, 0, |txn| map.set(txn, key(k), value)).unwrap() {
                        Ok(()) => {
                            model.insert(k, value);
                        }
                        Err(Full) => {
                            prop_assert!(!model.contains_key(&k), "a key that is there has room");
                            prop_assert!(model.len() >= CAPACITY, "full with {}", model.len());
                        }
                    }
                }
                MapStep::Remove(k) => {
                    let value = within(&mut txn, 0, |txn| map.remove(txn, &key(k))).unwrap();
                    prop_assert_eq!(value, model.remove(&k));
                }
            }
            prop_assert_eq!(map.count(), model.len());
        }
    }

    /// What is lent is lent once, ends when its time is up, and comes back.
    #[test]
    fn an_allocator_leases(steps in prop::collection::vec((0..8_u8, any::<u32>(), 0..30_u64), 1..300)) {
        let mut world = Lending::new();
        for (kind, number, elapsed) in steps {
            world.now += elapsed;
            world.step(kind, number);
            let free = world.allocator.resources() - world.allocator.lent();
            prop_assert_eq!(free, Lending::RESOURCES as usize - world.lent.len());
        }
    }

    #[test]
    fn a_distributed_value_is_the_sum_of_its_shares(
        steps in prop::collection::vec((0..3_u16, -5..5_i32, any::<bool>()), 1..100),
    ) {
        let objects = Objects::new(3);
        let add = |sum: &mut i32, share: &i32| *sum += share;
        let value = Distributed::new(&objects, "value", 0, add, Duration::ZERO);
        let mut sum = 0;
        for (lane, change, reads) in steps {
            let mut txn = Txn::new(&objects, LaneId(lane));
            within(&mut txn, 0, |txn| value.update(txn, |share| *share += change)).unwrap();
            sum += change;
            if reads {
                prop_assert_eq!(within(&mut txn, 0, |txn| value.read(txn)).unwrap(), sum);
            }
            prop_assert_eq!(value.total(), sum);
        }
    }
}

/// A map has room for its capacity for as long as keys come and go, though the number of its buckets leaves it no more
/// slots than it must have.
#[test]
fn a_map_that_stays_full_has_room_for_all() {
    const CAPACITY: u64 = 3 << 12;
    let objects = Objects::seeded(1, 1);
    let map: Map<u64, u64> = Map::new(&objects, "map", CAPACITY as usize);
    let mut txn = Txn::new(&objects, LaneId(0));
    for key in 0..20 * CAPACITY {
        if let Some(oldest) = key.checked_sub(CAPACITY) {
            let value = within(&mut txn, 0, |txn| map.remove(txn, &oldest)).unwrap();
            assert_eq!(value, Some(!oldest));
        }
        let set = within(&mut txn, 0, |txn| map.set(txn, key, !key)).unwrap();
        assert_eq!(set, Ok(()), "after {key} keys");
    }
    assert_eq!(map.count(), CAPACITY as usize);
    let guessed = (19 * CAPACITY..20 * CAPACITY).filter(|key| map.guess(key) == Some(!key)).count();
    assert!(guessed > CAPACITY as usize / 2, "{guessed} are where they are looked for first");
}

/// An allocator, and a model of it.
struct Lending {
    allocator: Allocator<u32>,
    lanes: Vec<Txn>,
    now: u64,
    /// What is lent, or has ended and was not taken back: the lease, its value, its lifetime, its deadline.
    lent: BTreeMap<u32, (Lease, u32, usize, u64)>,
    /// Leases that are no more.
    gone: Vec<Lease>,
}

impl Lending {
    const RESOURCES: u32 = 7;
    const LIFETIMES: [u64; 2] = [50, 200];
    const INTERVAL: u64 = 10;

    fn new() -> Lending {
        let objects = Objects::new(2);
        let lifetimes = Self::LIFETIMES.map(Duration::from_nanos);
        Lending {
            allocator: Allocator::new(
                &objects,
                "allocator",
                Self::RESOURCES as usize,
                &lifetimes,
                Duration::from_nanos(Self::INTERVAL),
            ),
            lanes: (0..2).map(|lane| Txn::new(&objects, LaneId(lane))).collect(),
            now: 0,
            lent: BTreeMap::new(),
            gone: Vec::new(),
        }
    }

    fn step(&mut self, kind: u8, number: u32) {
        let Lending { allocator, lanes, now, lent, gone } = self;
        let now = *now;
        let txn = &mut lanes[number as usize % 2];
        let (resource, lifetime) = (number / 2 % Self::RESOURCES, number as usize / 16 % 2);
        let deadline = now + Self::LIFETIMES[lifetime];
        let known = lent.get(&resource).copied();
        let live = known.filter(|(.., deadline)| *deadline > now);
        let lease = known.map(|(lease, ..)| lease).or_else(|| gone.last().copied());
        match (kind, lease) {
            (0 | 1, _) => {
                let lease = within(txn, now, |txn| allocator.allocate(txn, number, lifetime));
                match lease.unwrap() {
                    None => assert_eq!(lent.len() as u32, Self::RESOURCES, "something is free"),
                    Some(lease) => {
                        let new = (lease, number, lifetime, deadline);
                        assert!(lent.insert(lease.resource, new).is_none(), "leased twice");
                        assert!(!gone.contains(&lease), "it is distinct from all old ones");
                    }
                }
            }
            (2, _) => {
                let lease = within(txn, now, |txn| allocator.take(txn, resource, number, lifetime));
                let lease = lease.unwrap();
                assert_eq!(lease.is_some(), known.is_none());
                lent.extend(lease.map(|lease| (resource, (lease, number, lifetime, deadline))));
            }
            (3, Some(lease)) => {
                let value = within(txn, now, |txn| allocator.get(txn, lease)).unwrap();
                assert_eq!(value, live.map(|(_, value, ..)| value));
            }
            (4, Some(lease)) => {
                let there =
                    within(txn, now, |txn| allocator.refresh(txn, lease, lifetime)).unwrap();
                assert_eq!(there, live.is_some());
                if let Some((_, _, had, until)) = lent.get_mut(&resource).filter(|_| there)
                    && (*had != lifetime || deadline.saturating_sub(*until) > Self::INTERVAL)
                {
                    (*had, *until) = (lifetime, deadline);
                }
            }
            (5, Some(lease)) => {
                let there = within(txn, now, |txn| allocator.free(txn, lease)).unwrap();
                assert_eq!(there, live.is_some());
                if there {
                    gone.push(lent.remove(&resource).expect("it was there").0);
                }
            }
            (6, _) => {
                let holder = within(txn, now, |txn| allocator.holder(txn, resource)).unwrap();
                assert_eq!(holder, live.map(|(lease, value, ..)| (lease, value)));
            }
            (7, _) => {
                let ended = within(txn, now, |txn| allocator.expired(txn)).unwrap();
                if let Some((lease, value)) = ended {
                    let (known, was, _, deadline) = lent.remove(&lease.resource).expect("lent");
                    assert_eq!((lease, value), (known, was));
                    assert!(deadline <= now, "its time is not up");
                    gone.push(lease);
                } else if lent.len() as u32 == Self::RESOURCES {
                    // A lane without free resources looks everywhere.
                    let all_live = lent.values().all(|(.., deadline)| *deadline > now);
                    assert!(all_live, "something has ended");
                }
            }
            _ => {}
        }
    }
}
