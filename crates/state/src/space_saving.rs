//! The keys with the largest counts, out of more keys than there is memory for: Space-Saving (Metwally,
//! Agrawal and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT
//! 2005), with weights.
//!
//! A key that is not known takes the place of the one with the least count and inherits it as its error.
//! So no count is too low, none is too high by more than its error, and with n counters every key with
//! more than an n-th of everything is among them.
//!
//! [`SpaceSaving::age`] halves all counts, once per epoch, so that they follow traffic that changes: a
//! weight counts 2⁻ᵉ after e epochs. The bounds stay bounds, since the upper one is rounded up and the
//! lower one down. With W the sum of all aged weights and n counters, no error exceeds W/n + 2, and no
//! key that is not known has more than W/n + 1. [`SpaceSaving::add`] takes O(log n), `age` O(n); neither
//! allocates.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

/// A count that is known within bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// It is no more than this.
    pub most: u64,
    /// Nor less than this below it.
    pub error: u64,
}

impl Estimate {
    /// What was counted for sure.
    pub fn least(&self) -> u64 {
        self.most.saturating_sub(self.error)
    }

    /// The count of two keys together, or of one key in two summaries.
    #[must_use]
    pub fn plus(self, other: Estimate) -> Estimate {
        Estimate { most: self.most + other.most, error: self.error + other.error }
    }

    /// Bounds of half the count.
    fn halved(self) -> Estimate {
        let most = self.most.div_ceil(2);
        Estimate { most, error: most - self.least() / 2 }
    }
}

/// A key with its count.
#[derive(Clone, Copy, Debug)]
struct Counter<K> {
    key: K,
    count: Estimate,
    /// Where in the heap it stands.
    place: u32,
    /// Whether the key was added again since it took this counter.
    repeated: bool,
}

/// As many keys as it was made for, with their counts.
#[derive(Clone, Debug)]
pub struct SpaceSaving<K, S = RandomState> {
    counters: Vec<Counter<K>>,
    /// The numbers of counters, as a heap with the least count at the top.
    heap: Vec<u32>,
    known: HashMap<K, u32, S>,
    capacity: usize,
}

impl<K: Copy + Eq + Hash> SpaceSaving<K> {
    /// Room for `capacity` keys, at least one.
    pub fn new(capacity: usize) -> SpaceSaving<K> {
        SpaceSaving::with_hasher(capacity, RandomState::new())
    }
}

impl<K: Copy + Eq + Hash, S: BuildHasher> SpaceSaving<K, S> {
    /// As [`SpaceSaving::new`], with another hash function.
    pub fn with_hasher(capacity: usize, hasher: S) -> SpaceSaving<K, S> {
        let capacity = capacity.max(1);
        SpaceSaving {
            counters: Vec::with_capacity(capacity),
            heap: Vec::with_capacity(capacity),
            known: HashMap::with_capacity_and_hasher(capacity + 1, hasher),
            capacity,
        }
    }

    /// Adds `weight` to the count of `key`.
    pub fn add(&mut self, key: K, weight: u64) {
        if let Some(&number) = self.known.get(&key) {
            let counter = &mut self.counters[number as usize];
            counter.count.most = counter.count.most.saturating_add(weight);
            counter.repeated = true;
            let place = counter.place as usize;
            self.sink(place);
        } else if self.counters.len() < self.capacity {
            let number = self.counters.len() as u32;
            let count = Estimate { most: weight, error: 0 };
            self.counters.push(Counter { key, count, place: number, repeated: false });
            self.heap.push(number);
            self.known.insert(key, number);
            self.rise(number as usize);
        } else {
            let number = self.heap[0];
            let counter = &mut self.counters[number as usize];
            self.known.remove(&counter.key);
            self.known.insert(key, number);
            counter.key = key;
            counter.repeated = false;
            let error = counter.count.most;
            counter.count = Estimate { most: error.saturating_add(weight), error };
            self.sink(0);
        }
    }

    /// Halves all counts: an epoch ends. Keys stay known until others take their places.
    pub fn age(&mut self) {
        // Halving keeps the order of counts, so the heap stays one.
        for counter in &mut self.counters {
            counter.count = counter.count.halved();
        }
    }

    /// The most that a key may have which is not known.
    pub fn floor(&self) -> u64 {
        match self.heap.first() {
            Some(&least) if self.counters.len() == self.capacity => self.count(least),
            _ => 0,
        }
    }

    /// The known keys with their counts, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (K, Estimate)> {
        self.counters.iter().map(|counter| (counter.key, counter.count))
    }

    /// Those of the known keys that were added more than once since they took their places: with many keys that are seldom
    /// added, most others are known by chance.
    pub fn iter_repeated(&self) -> impl Iterator<Item = (K, Estimate)> {
        let repeated = self.counters.iter().filter(|counter| counter.repeated);
        repeated.map(|counter| (counter.key, counter.count))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counters.clear();
        self.heap.clear();
        self.known.clear();
    }

    fn count(&self, number: u32) -> u64 {
        self.counters[number as usize].count.most
    }

    /// Moves the counter at `place` down the heap until those below it are no less.
    fn sink(&mut self, mut place: usize) {
        loop {
            let below = [2 * place + 1, 2 * place + 2].into_iter().filter(|&b| b < self.heap.len());
            let Some(least) = below.min_by_key(|&b| self.count(self.heap[b])) else { return };
            if self.count(self.heap[place]) <= self.count(self.heap[least]) {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }

    /// Moves the counter at `place` up the heap until the one above it is no more.
    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.count(self.heap[above]) <= self.count(self.heap[place]) {
                return;
            }
            self.swap(place, above);
            place = above;
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            self.counters[self.heap[place] as usize].place = place as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_is_repeated_once_it_was_added_again_and_no_longer_when_it_lost_its_place() {
        let mut summary = SpaceSaving::new(2);
        let repeated = |summary: &SpaceSaving<u16>| {
            let mut keys: Vec<u16> = summary.iter_repeated().map(|(key, _)| key).collect();
            keys.sort_unstable();
            keys
        };
        summary.add(1, 10);
        summary.add(2, 1);
        assert_eq!(repeated(&summary), []);
        summary.add(2, 1);
        summary.age();
        assert_eq!(repeated(&summary), [2]);
        summary.add(3, 10);
        assert_eq!(repeated(&summary), [], "3 has the place of 2");
        summary.add(1, 1);
        summary.add(3, 1);
        assert_eq!(repeated(&summary), [1, 3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// The guarantees of the paper against exact counts: none too low, none too high by more than
        /// its error, all counts together are everything (Lemma 1), the least is at most an n-th of it
        /// (Lemma 2), and every key with more than that is listed (Theorem 2).
        #[test]
        fn counts_keep_their_bounds(
            capacity in 1..20_usize,
            stream in prop::collection::vec((0..60_u16, 0..1_000_u64), 0..400),
        ) {
            let mut summary = SpaceSaving::new(capacity);
            let mut exact: HashMap<u16, u64> = HashMap::new();
            for &(key, weight) in &stream {
                summary.add(key, weight);
                *exact.entry(key).or_default() += weight;
            }
            let total: u64 = exact.values().sum();
            let known: HashMap<u16, Estimate> = summary.iter().collect();
            prop_assert_eq!(known.len(), exact.len().min(capacity));
            prop_assert_eq!(known.values().map(|count| count.most).sum::<u64>(), total);
            prop_assert!(summary.floor() <= total / capacity as u64);
            if exact.len() < capacity {
                prop_assert_eq!(summary.floor(), 0);
            }
            for (key, &count) in &exact {
                match known.get(key) {
                    Some(known) => {
                        prop_assert!(known.least() <= count && count <= known.most);
                        prop_assert!(known.error <= summary.floor());
                    }
                    None => prop_assert!(count <= summary.floor()),
                }
            }
        }

        /// The bounds that the module's documentation states, against exact aged counts, after every
        /// packet and every epoch.
        #[test]
        fn aged_counts_keep_their_bounds(
            capacity in 1..12_usize,
            epochs in prop::collection::vec(
                prop::collection::vec((0..30_u16, 0..1_000_u64), 0..60), 1..12),
        ) {
            let mut summary = SpaceSaving::new(capacity);
            let mut exact: HashMap<u16, f64> = HashMap::new();
            for stream in &epochs {
                for &(key, weight) in stream {
                    summary.add(key, weight);
                    *exact.entry(key).or_default() += weight as f64;
                }
                check_aged(&summary, &exact, capacity)?;
                summary.age();
                // Exact: twelve halvings of integers below 2^17.
                exact.values_mut().for_each(|count| *count /= 2.0);
                check_aged(&summary, &exact, capacity)?;
            }
        }
    }

    fn check_aged(
        summary: &SpaceSaving<u16>,
        exact: &HashMap<u16, f64>,
        capacity: usize,
    ) -> Result<(), TestCaseError> {
        let share = exact.values().sum::<f64>() / capacity as f64;
        let known: HashMap<u16, Estimate> = summary.iter().collect();
        prop_assert!(summary.floor() as f64 <= share + 1.0);
        for (key, &count) in exact {
            let Some(known) = known.get(key) else {
                prop_assert!(count <= summary.floor() as f64);
                continue;
            };
            prop_assert!(known.least() as f64 <= count && count <= known.most as f64);
            prop_assert!(known.error as f64 <= share + 2.0);
        }
        Ok(())
    }

    #[test]
    fn a_flow_that_ends_gives_way_to_one_that_begins() {
        let mut summary = SpaceSaving::new(4);
        summary.add("old", 1 << 20);
        for _ in 0..12 {
            summary.age();
            summary.add("new", 1_000);
        }
        let count = |key| summary.iter().find(|(known, _)| *known == key).map(|(_, count)| count);
        assert!(count("old").is_some_and(|count| count.most == 256));
        assert!(count("new").is_some_and(|count| count.least() > 1_900));
    }
}
