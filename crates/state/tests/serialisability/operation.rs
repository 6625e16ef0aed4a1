//! Operations on objects of every kind.

use std::time::Duration;

use proptest::prelude::*;
use rand::Rng;
use rand::rngs::SmallRng;
use rheostat_state::bytemuck::Zeroable;
use rheostat_state::object::{Allocator, Boxed, Distributed, Lease, Map, Vector};
use rheostat_state::txn::{Objects, Outcome, Txn};

const ELEMENTS: usize = 4;
const KEYS: u32 = 14;
const RESOURCES: u32 = 5;

/// One object of each kind, small, so that lanes meet.
pub(super) struct World {
    pub(super) objects: Objects,
    plain: Vector<[u64; 3]>,
    boxed: Vector<Vec<u64>, Boxed>,
    map: Map<u32, u64>,
    names: Map<[u16; 5], String, Boxed>,
    leases: Allocator<u64>,
    fresh: Distributed<[i64; 2]>,
    old: Distributed<u64>,
    /// The leases that were handed out, by resource, so that operations can name one: state of the world, too.
    handed: Vector<Lease>,
}

impl World {
    pub(super) fn new(lanes: usize) -> World {
        let objects = Objects::new(lanes);
        let lifetimes = [Duration::from_nanos(60), Duration::from_nanos(300)];
        World {
            plain: Vector::new(&objects, "plain", [[0; 3]; ELEMENTS]),
            boxed: Vector::boxed(&objects, "boxed", vec![vec![]; 2]),
            // Few buckets, so that keys share them and move.
            map: Map::with_hash(&objects, "map", 9, |key| {
                u64::from(*key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            }),
            names: Map::boxed(&objects, "names", 30),
            leases: Allocator::new(
                &objects,
                "leases",
                RESOURCES as usize,
                &lifetimes,
                Duration::from_nanos(10),
            ),
            fresh: Distributed::new(
                &objects,
                "fresh",
                [0; 2],
                |sum, share| (0..2).for_each(|at| sum[at] += share[at]),
                Duration::ZERO,
            ),
            old: Distributed::new(
                &objects,
                "old",
                0,
                |sum, share| *sum = (*sum).max(*share),
                Duration::from_nanos(50),
            ),
            handed: Vector::new(&objects, "handed", [Lease::zeroed(); RESOURCES as usize]),
            objects,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    ReadElement(usize),
    Write(usize, u64),
    Change(usize, u64),
    ReadBoxed(usize),
    Push(usize, u64),
    Get(u32),
    Set(u32, u64),
    Remove(u32),
    GetName(u32),
    SetName(u32, u64),
    RemoveName(u32),
    Allocate(u64, usize),
    AllocateOdd(u64),
    Take(u32, u64),
    GetLease(u32),
    SetLease(u32, u64),
    Refresh(u32, usize),
    Free(u32),
    Holder(u32),
    Expired,
    Add(i64),
    ReadSum,
    Raise(u64),
    ReadHighest,
}

impl Operation {
    /// Runs it, and returns what it returned, as text.
    pub(super) fn run(self, world: &World, txn: &mut Txn) -> Outcome<String> {
        let World { plain, boxed, map, names, leases, fresh, old, handed, .. } = world;
        let name = |key: u32| [key as u16, 1, 2, 3, 4];
        let lease = |txn: &mut Txn, resource: u32| handed.read(txn, resource as usize);
        let keep = |txn: &mut Txn, lease: Option<Lease>| {
            lease.map_or(Ok(()), |lease| handed.write(txn, lease.resource as usize, lease))
        };
        Ok(match self {
            Operation::ReadElement(at) => format!("{:?}", plain.read(txn, at)?),
            Operation::Write(at, value) => {
                format!("{:?}", plain.write(txn, at, [value, value + 1, value + 2])?)
            }
            Operation::Change(at, value) => {
                let add = |element: &mut [u64; 3]| {
                    element[1] += value;
                    element[1]
                };
                format!("{:?}", plain.update(txn, at, add)?)
            }
            Operation::ReadBoxed(at) => format!("{:?}", boxed.read(txn, at)?),
            Operation::Push(at, value) => {
                let push = |values: &mut Vec<u64>| {
                    values.push(value);
                    if values.len() > 5 {
                        values.clear();
                    }
                    values.len()
                };
                format!("{:?}", boxed.update(txn, at, push)?)
            }
            Operation::Get(key) => format!("{:?}", map.get(txn, &key)?),
            Operation::Set(key, value) => format!("{:?}", map.set(txn, key, value)?),
            Operation::Remove(key) => format!("{:?}", map.remove(txn, &key)?),
            Operation::GetName(key) => format!("{:?}", names.get(txn, &name(key))?),
            Operation::SetName(key, value) => {
                format!("{:?}", names.set(txn, name(key), format!("name {value}"))?)
            }
            Operation::RemoveName(key) => format!("{:?}", names.remove(txn, &name(key))?),
            Operation::Allocate(value, lifetime) => {
                let lease = leases.allocate(txn, value, lifetime)?;
                keep(txn, lease)?;
                format!("{lease:?}")
            }
            Operation::AllocateOdd(value) => {
                let lease = leases.allocate_if(txn, |resource| resource % 2 == 1, 3, value, 0)?;
                keep(txn, lease)?;
                format!("{lease:?}")
            }
            Operation::Take(resource, value) => {
                let lease = leases.take(txn, resource, value, 1)?;
                keep(txn, lease)?;
                format!("{lease:?}")
            }
            Operation::GetLease(resource) => {
                let lease = lease(txn, resource)?;
                format!("{:?}", leases.get(txn, lease)?)
            }
            Operation::SetLease(resource, value) => {
                let lease = lease(txn, resource)?;
                format!("{:?}", leases.set(txn, lease, value)?)
            }
            Operation::Refresh(resource, lifetime) => {
                let lease = lease(txn, resource)?;
                format!("{:?}", leases.refresh(txn, lease, lifetime)?)
            }
            Operation::Free(resource) => {
                let lease = lease(txn, resource)?;
                format!("{:?}", leases.free(txn, lease)?)
            }
            Operation::Holder(resource) => format!("{:?}", leases.holder(txn, resource)?),
            Operation::Expired => format!("{:?}", leases.expired(txn)?),
            Operation::Add(value) => {
                format!("{:?}", fresh.update(txn, |share| share[0] += value)?)
            }
            Operation::ReadSum => format!("{:?}", fresh.read(txn)?),
            Operation::Raise(value) => format!("{:?}", old.update(txn, |share| *share += value)?),
            Operation::ReadHighest => format!("{:?}", old.read(txn)?),
        })
    }

    /// One of them all.
    pub(super) fn random(rng: &mut SmallRng) -> Operation {
        let (kind, key, value) =
            (rng.random_range(0..24), rng.random(), rng.random_range(0..1_000));
        Operation::of(kind, key, value)
    }

    fn of(kind: u32, key: u32, value: u64) -> Operation {
        let (element, lifetime) = (key as usize % ELEMENTS, value as usize % 2);
        let (boxed, resource, key) = (key as usize % 2, key % RESOURCES, key % KEYS);
        match kind {
            0 => Operation::ReadElement(element),
            1 => Operation::Write(element, value),
            2 => Operation::Change(element, value),
            3 => Operation::ReadBoxed(boxed),
            4 => Operation::Push(boxed, value),
            5 => Operation::Get(key),
            6 => Operation::Set(key, value),
            7 => Operation::Remove(key),
            8 => Operation::GetName(key),
            9 => Operation::SetName(key, value),
            10 => Operation::RemoveName(key),
            11 => Operation::Allocate(value, lifetime),
            12 => Operation::AllocateOdd(value),
            13 => Operation::Take(resource, value),
            14 => Operation::GetLease(resource),
            15 => Operation::SetLease(resource, value),
            16 => Operation::Refresh(resource, lifetime),
            17 => Operation::Free(resource),
            18 => Operation::Holder(resource),
            19 => Operation::Expired,
            20 => Operation::Add(value as i64 - 500),
            21 => Operation::ReadSum,
            22 => Operation::Raise(value),
            _ => Operation::ReadHighest,
        }
    }
}

/// One of them all, to be shrunk.
pub(super) fn operation() -> impl Strategy<Value = Operation> {
    (0..24_u32, any::<u32>(), 0..1_000_u64)
        .prop_map(|(kind, key, value)| Operation::of(kind, key, value))
}
