//! The index: from a hash to the entries that may have its key.
//!
//! A key has two buckets: its home, which the hash names, and another, which the home and the key's
//! tag name, so that a key can be moved between them without its hash (partial-key cuckoo hashing:
//! Fan, Andersen, Kaminsky, "MemC3", NSDI '13). It goes home if there is room, into its other bucket
//! if not, and if that is full too, keys are moved along the shortest chain that ends at a vacancy. A
//! bucket counts the keys that stand away from it, and a lookup reads a second bucket only where
//! there are any.

use std::ptr::NonNull;

use super::bucket::{Bucket, WAYS};
use crate::FlowHash;

/// Keys per bucket when the index is as full as it may be: a load of 0.7. Random two-choice placement
/// into buckets of eight succeeds up to a load of 0.98; the distance makes chains of moves short, and
/// second buckets rare.
const KEYS_PER_BUCKET: f64 = 5.6;

/// Buckets looked at in search of a vacancy before an insertion is given up.
const SEARCH: usize = 256;

/// No bucket with a vacancy was found.
#[derive(Debug)]
pub(super) struct IndexFull;

/// Where a key belongs.
#[derive(Clone, Copy)]
struct IndexPlace {
    home: u32,
    tag: u16,
}

/// Buckets in one piece of memory.
pub(super) struct Index {
    buckets: NonNull<Bucket>,
    count: u32,
}

/// A step of the search for a vacancy: a bucket, and the way of an earlier step's bucket whose key
/// could move there.
#[derive(Clone, Copy)]
struct IndexStep {
    bucket: u32,
    from: u16,
    way: u8,
}

/// The step a search starts from.
const ROOT: u16 = u16::MAX;

impl Index {
    /// How many buckets an index of `keys` keys has. Odd, so that one home in the whole table is its
    /// own other bucket, whatever the tag; and two more than the load asks for, for tables so small
    /// that chance matters.
    pub(super) fn buckets_for(keys: usize) -> usize {
        ((keys as f64 / KEYS_PER_BUCKET).ceil() as usize + 2) | 1
    }

    /// An index in the `count` buckets at `buckets`.
    ///
    /// # Safety
    /// The buckets are zero, aligned, exclusively this value's to access, and stay mapped while it
    /// lives. There is at least one.
    pub(super) unsafe fn new(buckets: NonNull<Bucket>, count: u32) -> Index {
        Index { buckets, count }
    }

    /// The entry that has the hash's tag and satisfies `is_it`, with its mark, as it is shown to `is_it`.
    #[inline]
    pub(super) fn find(&self, hash: FlowHash, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let place = self.place(hash);
        let home = self.bucket(place.home);
        let mut matching = |bucket: &Bucket| {
            bucket
                .with_tag(place.tag)
                .map(|way| bucket.marked_entry(way))
                .find(|&entry| is_it(entry))
        };
        if let Some(entry) = matching(home) {
            return Some(entry);
        }
        if home.overflow == 0 {
            return None;
        }
        matching(self.bucket(self.other(place.home, place.tag)))
    }

    /// Where the first bucket lies, and how many there are.
    pub(super) fn buckets(&self) -> (*const Bucket, u32) {
        (self.buckets.as_ptr(), self.count)
    }

    /// Asks the processor to fetch the home bucket of a key.
    #[inline]
    pub(super) fn prefetch(&self, hash: FlowHash) {
        let home = Index::home(hash, self.count) as usize;
        super::prefetch(self.buckets.as_ptr().wrapping_add(home).cast());
    }

    /// Adds a key that leads to `entry`.
    pub(super) fn insert(&mut self, hash: FlowHash, entry: u32) -> Result<(), IndexFull> {
        let IndexPlace { home, tag } = self.place(hash);
        if let Some(way) = self.bucket(home).vacancy() {
            self.bucket_mut(home).fill(way, tag, entry, false);
            return Ok(());
        }
        let other = self.other(home, tag);
        if other != home
            && let Some(way) = self.bucket(other).vacancy()
        {
            self.bucket_mut(other).fill(way, tag, entry, true);
            self.bucket_mut(home).overflow += 1;
            return Ok(());
        }
        let bucket = self.make_room(home, other)?;
        let way = self.bucket(bucket).vacancy().expect("room was made in this bucket");
        self.bucket_mut(bucket).fill(way, tag, entry, bucket != home);
        if bucket != home {
            self.bucket_mut(home).overflow += 1;
        }
        Ok(())
    }

    /// Removes the key that leads to `entry`. `false` when it is not there.
    pub(super) fn remove(&mut self, hash: FlowHash, entry: u32) -> bool {
        let IndexPlace { home, tag } = self.place(hash);
        // A key at home is not marked as away, one in its other bucket is; so a second key of the
        // same entry is not mistaken for this one.
        let find = |bucket: &Bucket, away: bool| {
            bucket
                .with_tag(tag)
                .find(|&way| bucket.entry(way) == entry && bucket.is_away(way) == away)
        };
        if let Some(way) = find(self.bucket(home), false) {
            self.bucket_mut(home).vacate(way);
            return true;
        }
        let other = self.other(home, tag);
        let Some(way) = find(self.bucket(other), true) else { return false };
        self.bucket_mut(other).vacate(way);
        self.bucket_mut(home).overflow -= 1;
        true
    }

    /// Marks the key of this hash that leads to `entry` as one of a detached flow, or as one that is not. `false` when it is not
    /// there.
    pub(super) fn set_detached(&mut self, hash: FlowHash, entry: u32, detached: bool) -> bool {
        let IndexPlace { home, tag } = self.place(hash);
        let mut found = false;
        // Both keys of an entry may stand in one bucket with one tag: marks go to both anyhow.
        for bucket in [home, self.other(home, tag)] {
            let bucket = self.bucket_mut(bucket);
            for way in bucket.with_tag(tag) {
                if bucket.entry(way) == entry {
                    bucket.set_detached(way, detached);
                    found = true;
                }
            }
        }
        found
    }

    /// Moves keys so that `home` or `other` has a vacancy, and returns which.
    #[cold]
    fn make_room(&mut self, home: u32, other: u32) -> Result<u32, IndexFull> {
        let root = |bucket| IndexStep { bucket, from: ROOT, way: 0 };
        let mut steps = [root(home); SEARCH];
        steps[1] = root(other);
        let mut known = 2;
        for at in 0..SEARCH {
            if at == known {
                break;
            }
            let bucket = steps[at].bucket;
            for way in 0..WAYS {
                let next = self.other(bucket, self.bucket(bucket).tag(way));
                let step = IndexStep { bucket: next, from: at as u16, way: way as u8 };
                if next != bucket && self.bucket(next).vacancy().is_some() {
                    return Ok(self.shift(&steps, step));
                }
                if next != bucket && known < SEARCH {
                    steps[known] = step;
                    known += 1;
                }
            }
        }
        Err(IndexFull)
    }

    /// Moves the keys along the chain that ends with `last`, from its end, and returns the bucket at
    /// its start. The search goes breadth first, so the chain is a shortest one and visits no bucket
    /// twice: no move disturbs a later one.
    fn shift(&mut self, steps: &[IndexStep; SEARCH], mut last: IndexStep) -> u32 {
        while last.from != ROOT {
            let from = steps[usize::from(last.from)];
            self.relocate(from.bucket, usize::from(last.way), last.bucket);
            last = from;
        }
        last.bucket
    }

    /// Moves the key in `way` of `from` to `to`, its other bucket, which has a vacancy.
    fn relocate(&mut self, from: u32, way: usize, to: u32) {
        let bucket = self.bucket_mut(from);
        let (tag, was_away) = (bucket.tag(way), bucket.is_away(way));
        let entry = bucket.marked_entry(way);
        bucket.vacate(way);
        let vacancy = self.bucket(to).vacancy().expect("chains end at a vacancy");
        self.bucket_mut(to).fill(vacancy, tag, entry, !was_away);
        if was_away {
            self.bucket_mut(to).overflow -= 1;
        } else {
            self.bucket_mut(from).overflow += 1;
        }
    }

    /// The home and the tag of a key: the high bits of hash × buckets and those that follow, so that
    /// both come from contiguous high bits of the hash (see [`crate::flow_hash`]).
    #[inline]
    fn place(&self, hash: FlowHash) -> IndexPlace {
        let product = u128::from(hash.0) * u128::from(self.count);
        IndexPlace { home: (product >> 64) as u32, tag: (product >> 48) as u16 }
    }

    /// The home of a key in an index of so many buckets.
    #[inline(always)]
    pub(super) fn home(hash: FlowHash, buckets: u32) -> u32 {
        ((u128::from(hash.0) * u128::from(buckets)) >> 64) as u32
    }

    /// The other bucket of a key with `tag` in `bucket`: a reflection, so the other's other is
    /// `bucket` again.
    #[inline]
    fn other(&self, bucket: u32, tag: u16) -> u32 {
        // The multiplier spreads tags over 32 bits (2^32 divided by the golden ratio).
        let spread = u64::from(u32::from(tag).wrapping_mul(0x9e37_79b1));
        let centre = ((spread * u64::from(self.count)) >> 32) as u32;
        if centre >= bucket { centre - bucket } else { centre + self.count - bucket }
    }

    #[inline]
    fn bucket(&self, index: u32) -> &Bucket {
        assert!(index < self.count);
        // SAFETY: index < count, so the bucket lies inside the memory, where every bit pattern is a
        // valid bucket; only this value accesses it.
        unsafe { self.buckets.add(index as usize).as_ref() }
    }

    #[inline]
    fn bucket_mut(&mut self, index: u32) -> &mut Bucket {
        assert!(index < self.count);
        // SAFETY: as for `bucket`; `&mut self` makes the access exclusive.
        unsafe { self.buckets.add(index as usize).as_mut() }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// An index with memory of its own.
    fn with_buckets<R>(count: u32, run: impl FnOnce(Index) -> R) -> R {
        // SAFETY: all zero is an empty bucket.
        let mut buckets: Vec<Bucket> = (0..count).map(|_| unsafe { std::mem::zeroed() }).collect();
        let first = NonNull::new(buckets.as_mut_ptr()).unwrap();
        // SAFETY: the buckets are zero, there are `count`, and they outlive the index.
        run(unsafe { Index::new(first, count) })
    }

    /// A hash that spreads well; the index needs no more.
    fn hash(key: u32) -> FlowHash {
        let x = u64::from(key).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        FlowHash(x ^ x >> 32)
    }

    impl Index {
        /// What every operation keeps: a bucket's overflow is the number of keys away from it, and
        /// the away bit of a key says which of its buckets is home.
        fn check(&self, keys: &HashMap<u32, u32>) -> Result<(), TestCaseError> {
            let mut away = vec![0; self.count as usize];
            for (&key, &entry) in keys {
                let IndexPlace { home, tag } = self.place(hash(key));
                let other = self.other(home, tag);
                prop_assert_eq!(self.other(other, tag), home);
                let stands = |bucket: u32, is_away: bool| {
                    let bucket = self.bucket(bucket);
                    bucket
                        .with_tag(tag)
                        .any(|way| bucket.entry(way) == entry && bucket.is_away(way) == is_away)
                };
                prop_assert!(stands(home, false) != stands(other, true));
                away[home as usize] += u32::from(stands(other, true));
            }
            for (bucket, &away) in (0..).zip(&away) {
                prop_assert_eq!(self.bucket(bucket).overflow, away);
            }
            Ok(())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn the_index_finds_what_a_map_finds(
            count in prop::sample::select(vec![1, 3, 5, 7]),
            steps in prop::collection::vec((any::<bool>(), 0..80_u32), 1..if cfg!(miri) { 40 } else { 200 }),
        ) {
            with_buckets(count, |mut index| {
                let mut model = HashMap::new();
                for (step, (insert, key)) in (0..).zip(steps) {
                    if insert && !model.contains_key(&key) {
                        // Seven buckets are filled to the brim: an insertion may fail, and then
                        // leaves everything as it was.
                        if index.insert(hash(key), step).is_ok() {
                            model.insert(key, step);
                        } else {
                            prop_assert!(model.len() >= WAYS);
                        }
                    } else if !insert {
                        let entry = model.remove(&key);
                        prop_assert_eq!(
                            index.remove(hash(key), entry.unwrap_or(u32::MAX >> 1)),
                            entry.is_some()
                        );
                    }
                    index.check(&model)?;
                }
                for key in 0..80 {
                    let found = index.find(hash(key), |entry| model.get(&key) == Some(&entry));
                    prop_assert_eq!(found, model.get(&key).copied());
                }
                Ok(())
            })?;
        }
    }

    #[test]
    fn keys_make_room_for_others_far_beyond_the_stated_load() {
        let (count, keys) = if cfg!(miri) { (31, 220) } else { (255, 1_938) };
        with_buckets(count, |mut index| {
            for key in 0..keys {
                index.insert(hash(key), key).expect("95 % of all ways can be filled");
            }
            let moved = (0..count).filter(|&bucket| index.bucket(bucket).overflow > 0).count();
            assert!(moved > count as usize / 4, "the load is high enough to move keys: {moved}");
            for key in 0..keys {
                assert_eq!(index.find(hash(key), |entry| entry == key), Some(key));
            }
            for key in 0..keys {
                assert!(index.remove(hash(key), key));
            }
            for bucket in 0..count {
                assert_eq!(index.bucket(bucket).overflow, 0);
                assert_eq!((0..WAYS).filter_map(|_| index.bucket(bucket).vacancy()).count(), WAYS);
            }
        });
    }

    #[test]
    fn both_keys_of_an_entry_in_one_bucket_are_told_apart() {
        // Two hashes with the same home and tag, as two keys of one flow may have by chance.
        let (first, second) = (FlowHash(1 << 60), FlowHash((1 << 60) + 1));
        with_buckets(3, |mut index| {
            index.insert(first, 9).unwrap();
            index.insert(second, 9).unwrap();
            assert!(index.remove(first, 9));
            assert_eq!(index.find(second, |_| true), Some(9));
            assert!(index.remove(second, 9));
            assert!(!index.remove(second, 9));
        });
    }

    #[test]
    fn memory_per_key_stays_below_twelve_bytes() {
        for keys in [1_000, 65_536, 1 << 20, 10_000_000] {
            let bytes = Index::buckets_for(keys) * size_of::<Bucket>();
            assert!(bytes as f64 / (keys as f64) < 12.0, "{keys}");
        }
    }
}
