//! Maglev's table of backends (Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load
//! Balancer", NSDI 2016, section 3.4).
//!
//! Each backend has a permutation of the table's slots of its own. The backends take turns, and at its
//! turn a backend takes the first slot of its permutation that is still free, until none is. With equal
//! turns all get the same number of slots, within one; a backend of a lower weight sits out turns.
//! When a backend goes, its slots go to the others, and few slots change hands between those: which
//! slots are free at a turn has changed a little.
//!
//! The table depends on the seed and on the backends, not on the order in which they are named nor on those before, so that all
//! instances with one configuration have the same one.

use std::net::IpAddr;

use super::keyed_hash::KeyedHash;

/// Marks a slot that is not taken yet.
const FREE: u16 = u16::MAX;

/// Backends a table can tell apart.
pub const MAX_BACKENDS: usize = FREE as usize;

/// A backend, as far as the table cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// Its address.
    pub address: IpAddr,
    /// Its port; zero where packets keep theirs.
    pub port: u16,
    /// How often it has a turn, compared with the others; zero for never.
    pub weight: u32,
}

/// Which backend each slot belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maglev {
    slots: Box<[u16]>,
}

/// A backend while the table is being filled.
struct Turns {
    backend: u16,
    weight: u64,
    /// Grows by the weight in each round; a turn costs the heaviest backend's weight.
    credit: u64,
    /// The next slot of the backend's permutation: an arithmetic progression modulo the size.
    next: u64,
    skip: u64,
}

impl Maglev {
    /// Fills a table of `size` slots. Slots name backends by their place in `backends`. Without a backend
    /// of some weight the table is empty.
    ///
    /// # Panics
    /// When `size` is no prime, because not every progression would reach every slot then, or there are
    /// more than [`MAX_BACKENDS`] backends.
    pub fn new(size: usize, seed: u64, backends: &[Candidate]) -> Maglev {
        assert!(is_prime(size), "a table of {size} slots: not a prime");
        assert!(backends.len() <= MAX_BACKENDS, "{} backends", backends.len());
        let mut turns = turns(size as u64, seed, backends);
        let Some(heaviest) = turns.iter().map(|turns| turns.weight).max() else {
            return Maglev { slots: Box::default() };
        };
        let mut slots = vec![FREE; size].into_boxed_slice();
        let mut free = size;
        while free > 0 {
            for backend in &mut turns {
                backend.credit += backend.weight;
                if backend.credit < heaviest {
                    continue;
                }
                backend.credit -= heaviest;
                backend.take(&mut slots);
                free -= 1;
                if free == 0 {
                    break;
                }
            }
        }
        Maglev { slots }
    }

    /// The backend for a flow with this hash; `None` when the table is empty.
    #[inline]
    pub fn pick(&self, hash: u64) -> Option<usize> {
        self.slots.get(self.slot_of(hash)?).map(|&backend| usize::from(backend))
    }

    /// The backends of a flow with this hash in the order in which it would try them: that of its slot,
    /// then those of the slots that follow. Backends come again and again.
    pub fn alternatives(&self, hash: u64) -> impl Iterator<Item = usize> + '_ {
        let start = self.slot_of(hash).unwrap_or(0);
        let (before, behind) = self.slots.split_at(start);
        behind.iter().chain(before).map(|&backend| usize::from(backend))
    }

    fn slot_of(&self, hash: u64) -> Option<usize> {
        hash.checked_rem(self.slots.len() as u64).map(|slot| slot as usize)
    }

    /// Whether no backend is in the table.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many slots each of `backends` backends has.
    pub fn shares(&self, backends: usize) -> Vec<usize> {
        let mut shares = vec![0; backends];
        for &backend in &self.slots {
            shares[usize::from(backend)] += 1;
        }
        shares
    }

    /// How many slots belong to two different backends here and in `other`, of the slots for which
    /// `concerns` says yes to the backend here.
    pub fn moved(&self, other: &Maglev, concerns: impl Fn(usize) -> bool) -> usize {
        let pairs = self.slots.iter().zip(&other.slots);
        pairs.filter(|(here, there)| here != there && concerns(usize::from(**here))).count()
    }
}

/// The size from which [`DISTURBANCE_BOUND`] holds: the smaller one that the paper measures.
pub const BOUNDED: usize = 65_537;

/// The share of the others' slots that change hands when one of several backends goes: at most this in
/// tables of [`BOUNDED`] slots or more with at least a hundred slots for each backend. Measured, as in
/// section 5.3 of the paper, not proven: the worst seen over 2 to 600 backends, of equal weights and of
/// others, was 0.9 %, but for rare seeds with which the permutations of two backends go together: with one of
/// these, 8 % of three backends' slots.
pub const DISTURBANCE_BOUND: f64 = 0.02;

/// The share of the other backends' slots that change hands when backend `gone` leaves the table of
/// `backends`: zero would be least, as its own slots are all that need a new owner.
pub fn disturbance(size: usize, seed: u64, backends: &[Candidate], gone: usize) -> f64 {
    let mut fewer = backends.to_vec();
    fewer[gone].weight = 0;
    let (table, left) = (Maglev::new(size, seed, backends), Maglev::new(size, seed, &fewer));
    let others = table.slots.len() - table.shares(backends.len())[gone];
    table.moved(&left, |backend| backend != gone) as f64 / others.max(1) as f64
}

/// What the backends start with, in an order of their own.
fn turns(size: u64, seed: u64, backends: &[Candidate]) -> Vec<Turns> {
    let hash = KeyedHash::new(seed);
    let numbered = backends.iter().enumerate().filter(|(_, backend)| backend.weight > 0);
    let mut numbered: Vec<_> = numbered.collect();
    numbered.sort_unstable_by_key(|(_, backend)| (backend.address, backend.port));
    let turns = numbered.into_iter().map(|(number, backend)| {
        let bits = match backend.address {
            IpAddr::V4(v4) => u128::from(v4.to_bits()),
            IpAddr::V6(v6) => v6.to_bits(),
        };
        let kind = u64::from(backend.address.is_ipv6()) << 16 | u64::from(backend.port);
        let of = |which: u64| hash.words(&[bits as u64, (bits >> 64) as u64, kind, which]);
        Turns {
            backend: number as u16,
            weight: backend.weight.into(),
            credit: 0,
            next: of(0) % size,
            // A progression needs a step: of one slot there is only one.
            skip: of(1).checked_rem(size - 1).map_or(0, |skip| skip + 1),
        }
    });
    turns.collect()
}

impl Turns {
    /// Takes the first free slot of the permutation; there must be one.
    fn take(&mut self, slots: &mut [u16]) {
        let size = slots.len() as u64;
        loop {
            let slot = &mut slots[self.next as usize];
            self.next = (self.next + self.skip) % size;
            if *slot == FREE {
                *slot = self.backend;
                return;
            }
        }
    }
}

/// Whether `number` is a prime.
pub fn is_prime(number: usize) -> bool {
    number >= 2 && (2..).take_while(|d| d * d <= number).all(|d| !number.is_multiple_of(d))
}

/// The least prime that is not below `number`.
pub fn next_prime(number: usize) -> usize {
    (number..).find(|&candidate| is_prime(candidate)).expect("there is always another prime")
}

#[cfg(test)]
mod tests;
