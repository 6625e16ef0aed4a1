//! A hash table.

mod head;

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use thiserror::Error;

use self::head::MapHead;
use super::storage::{Boxed, Inline, Storage};
use crate::txn::{
    Look, ObjectId, ObjectKind, Objects, Operation, Outcome, Part, Plain, Slab, Touch,
    Transactional, Txn, Words, WordsMut, detail_of, load, store, words_of,
};

/// Keys per bucket.
const SLOTS: usize = 4;
/// Keys per bucket, on average, of a map that is full. With two buckets for each key to choose from, and up to two moves
/// to make room, a new key finds none below that only by very bad luck.
const FILL: usize = 3;

/// There is no room for another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the map is full")]
pub struct Full;

/// Keys and their values. A key lies in one of two buckets. Conflicts: one lane changes a bucket that another reads
/// or changes, whether or not they mean the same key.
pub struct Map<K, V, S = Inline> {
    slab: Arc<Slab>,
    object: ObjectId,
    mask: usize,
    hash: Hash<K>,
    values: PhantomData<fn() -> (V, S)>,
}

/// Another handle of the same map.
impl<K, V, S> Clone for Map<K, V, S> {
    fn clone(&self) -> Map<K, V, S> {
        let Map { slab, object, mask, hash, values } = self;
        let hash = match hash {
            Hash::Keyed(secret) => Hash::Keyed(*secret),
            Hash::By(hash) => Hash::By(*hash),
        };
        Map { slab: slab.clone(), object: *object, mask: *mask, hash, values: *values }
    }
}

/// How keys are hashed.
enum Hash<K> {
    /// By their bytes and a secret number, so that no sender can choose keys that collide.
    Keyed(u64),
    By(fn(&K) -> u64),
}

/// The slot of a key in a bucket, and its value.
type MapSlot<R> = Option<(usize, R)>;

/// Looks for a key in a bucket of a [`Map`].
struct LookUp<'k, K, V, S> {
    key: &'k K,
    tag: u8,
    map: PhantomData<fn() -> (V, S)>,
}

impl<K: Plain + Eq, V, S: Storage<V>> Look for LookUp<'_, K, V, S> {
    type Seen = (MapSlot<S::Raw>, bool);

    #[inline(always)]
    fn look(&mut self, words: &Words<'_>) -> (MapSlot<S::Raw>, bool) {
        let head = MapHead::of(words);
        let is = |slot| load::<K>(words, Map::<K, V, S>::key_at(slot)) == *self.key;
        let value = |slot| S::load(words, Map::<K, V, S>::value_at(slot));
        let found = head.find(self.tag, is).map(|slot| (slot, value(slot)));
        (found, head.elsewhere() > 0)
    }
}

/// A key with its hash in one map, for callers that look it up there more than once.
#[derive(Clone, Copy, Debug)]
pub struct Hashed<K> {
    key: K,
    hash: u64,
}

impl<K> Hashed<K> {
    /// The key.
    #[inline]
    pub fn key(&self) -> &K {
        &self.key
    }
}

/// Where a key may lie.
#[derive(Clone, Copy)]
struct MapPlace {
    first: usize,
    second: usize,
    tag: u8,
    touch: Touch,
}

impl<K: Plain + Eq, V: Plain> Map<K, V> {
    /// A map for `capacity` keys.
    pub fn new(objects: &Objects, name: &str, capacity: usize) -> Map<K, V> {
        Map::with(objects, name, capacity, None)
    }

    /// As [`Map::new`], with a hash of the author's own. All 64 bits of it are used.
    pub fn with_hash(
        objects: &Objects,
        name: &str,
        capacity: usize,
        hash: fn(&K) -> u64,
    ) -> Map<K, V> {
        Map::with(objects, name, capacity, Some(hash))
    }

    /// What seems to lie under a key in its first bucket. It may be something that was never there: this reads beside all
    /// transactions, only to find what to fetch next.
    #[inline]
    pub fn guess(&self, key: &K) -> Option<V> {
        self.guess_hashed(&self.hashed(*key))
    }

    /// As [`Map::guess`].
    #[inline]
    pub fn guess_hashed(&self, Hashed { key, hash }: &Hashed<K>) -> Option<V> {
        let hash = *hash;
        let mut look = LookUp { key, tag: tag_of(hash), map: PhantomData::<fn() -> (V, Inline)> };
        let (found, _) = look.look(&self.slab.peek(hash as usize & self.mask));
        found.map(|(_, value)| value)
    }
}

impl<K: Plain + Eq, V: Clone + Send + Sync + 'static> Map<K, V, Boxed> {
    /// As [`Map::new`], for values that are not plain data.
    pub fn boxed(objects: &Objects, name: &str, capacity: usize) -> Map<K, V, Boxed> {
        Map::with(objects, name, capacity, None)
    }
}

impl<K: Plain + Eq, V, S: Storage<V>> Map<K, V, S> {
    const KEY: usize = words_of::<K>();
    const SLOT: usize = Self::KEY + S::WORDS;

    fn with(
        objects: &Objects,
        name: &str,
        capacity: usize,
        hash: Option<fn(&K) -> u64>,
    ) -> Map<K, V, S> {
        let buckets = capacity.div_ceil(FILL).next_power_of_two().max(2);
        let dispose: fn(&Slab) = |slab| {
            for bucket in 0..slab.cells() {
                (0..SLOTS).for_each(|slot| S::dispose(slab, bucket, Self::value_at(slot)));
            }
        };
        let dispose = S::OWNS.then_some(dispose);
        let slab = Slab::new(objects, buckets, 1 + SLOTS * Self::SLOT, dispose, |_, _| ());
        let object = objects.register(name, ObjectKind::Map, capacity);
        let hash = hash.map_or_else(|| Hash::Keyed(objects.secret(object)), Hash::By);
        Map { slab, object, mask: buckets - 1, hash, values: PhantomData }
    }

    /// The object's number, for profiles.
    pub fn id(&self) -> ObjectId {
        self.object
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    #[inline]
    pub fn get(&self, cx: &mut impl Transactional, key: &K) -> Outcome<Option<V>> {
        self.get_hashed(cx, &self.hashed(*key))
    }

    /// The key with its hash in this map: in another, it finds nothing.
    #[inline]
    pub fn hashed(&self, key: K) -> Hashed<K> {
        Hashed { key, hash: self.hash_of(&key) }
    }

    /// As [`Map::get`].
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    #[inline]
    pub fn get_hashed(
        &self,
        cx: &mut impl Transactional,
        hashed: &Hashed<K>,
    ) -> Outcome<Option<V>> {
        let place = self.place_of(hashed.hash, Operation::Get, Location::caller());
        let txn = cx.txn();
        let Some((_, _, raw)) = self.find(txn, &hashed.key, &place)? else { return Ok(None) };
        Ok(Some(S::value(raw, txn)))
    }

    /// Asks the processor to fetch where a key lies most likely. Needs no transaction, and changes nothing but how long
    /// others take.
    #[inline]
    pub fn prefetch(&self, key: &K) {
        self.prefetch_hashed(&self.hashed(*key));
    }

    /// As [`Map::prefetch`].
    #[inline]
    pub fn prefetch_hashed(&self, hashed: &Hashed<K>) {
        self.slab.prefetch(hashed.hash as usize & self.mask);
    }

    /// Gives a key a value, whether or not it had one.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict. Inside, [`Full`] when there is no room, and nothing is changed.
    #[track_caller]
    pub fn set(&self, cx: &mut impl Transactional, key: K, value: V) -> Outcome<Result<(), Full>> {
        let place = self.place(&key, Operation::Set, Location::caller());
        let txn = cx.txn();
        if let Some((bucket, slot, _)) = self.find(txn, &key, &place)? {
            let raw = S::make(value, txn);
            let before = txn.update(&self.slab, bucket, place.touch, |words| {
                S::replace(raw, words, Self::value_at(slot))
            })?;
            S::free(before, txn);
            return Ok(Ok(()));
        }
        let Some((bucket, slot)) = self.make_room(txn, &place)? else { return Ok(Err(Full)) };
        let raw = S::make(value, txn);
        txn.update(&self.slab, bucket, place.touch, |words| {
            words.set(0, MapHead::of(&words.as_words()).with(slot, place.tag).word());
            store(words, Self::key_at(slot), &key);
            S::replace(raw, words, Self::value_at(slot));
        })?;
        if bucket != place.first {
            self.change_head(txn, place.touch, place.first, MapHead::one_more_elsewhere)?;
        }
        Ok(Ok(()))
    }

    /// Removes a key, and returns its value.
    ///
    /// # Errors
    /// [`Abort`](crate::txn::Abort) on a conflict.
    #[track_caller]
    pub fn remove(&self, cx: &mut impl Transactional, key: &K) -> Outcome<Option<V>> {
        let place = self.place(key, Operation::Remove, Location::caller());
        let txn = cx.txn();
        let Some((bucket, slot, raw)) = self.find(txn, key, &place)? else { return Ok(None) };
        let value = S::value(raw, txn);
        let taken = txn.update(&self.slab, bucket, place.touch, |words| {
            words.set(0, MapHead::of(&words.as_words()).without(slot).word());
            S::take(words, Self::value_at(slot))
        })?;
        S::free(taken, txn);
        if bucket != place.first {
            self.change_head(txn, place.touch, place.first, MapHead::one_less_elsewhere)?;
        }
        Ok(Some(value))
    }

    /// The number of keys, for figures: while lanes run, of slightly different moments.
    pub fn count(&self) -> usize {
        (0..self.slab.cells()).map(|cell| MapHead::of(&self.slab.peek(cell)).taken()).sum()
    }

    /// Bucket and slot of a key, and its value.
    #[inline]
    fn find(
        &self,
        txn: &mut Txn,
        key: &K,
        place: &MapPlace,
    ) -> Outcome<Option<(usize, usize, S::Raw)>> {
        let (found, elsewhere) = self.look(txn, key, place, place.first)?;
        match found {
            Some((slot, raw)) => Ok(Some((place.first, slot, raw))),
            None if elsewhere => self.find_elsewhere(txn, key, place),
            None => Ok(None),
        }
    }

    #[cold]
    fn find_elsewhere(
        &self,
        txn: &mut Txn,
        key: &K,
        place: &MapPlace,
    ) -> Outcome<Option<(usize, usize, S::Raw)>> {
        let (found, _) = self.look(txn, key, place, place.second)?;
        Ok(found.map(|(slot, raw)| (place.second, slot, raw)))
    }

    /// What there is of a key in a bucket, and whether keys of this bucket lie in their other one.
    #[inline(always)]
    fn look(
        &self,
        txn: &mut Txn,
        key: &K,
        place: &MapPlace,
        bucket: usize,
    ) -> Outcome<(MapSlot<S::Raw>, bool)> {
        let look = LookUp { key, tag: place.tag, map: PhantomData::<fn() -> (V, S)> };
        txn.look(&self.slab, bucket, place.touch, look)
    }

    /// A free slot for a key: in its first bucket, where it is found at once; else in its second; else where another key
    /// can be moved away.
    fn make_room(&self, txn: &mut Txn, place: &MapPlace) -> Outcome<Option<(usize, usize)>> {
        for bucket in [place.first, place.second] {
            let head = txn.read(&self.slab, bucket, place.touch, MapHead::of)?;
            if let Some(slot) = head.free_slot() {
                return Ok(Some((bucket, slot)));
            }
        }
        self.push_away(txn, place)
    }

    /// Moves some key of two full buckets to its other bucket, preferably to its first; or, when all of those are full,
    /// after a key there to its own. Returns the slot that has become free.
    #[cold]
    fn push_away(&self, txn: &mut Txn, place: &MapPlace) -> Outcome<Option<(usize, usize)>> {
        let touch = place.touch;
        let taken =
            [place.first, place.second].map(|bucket| (0..SLOTS).map(move |slot| (bucket, slot)));
        let taken = || taken.clone().into_iter().flatten();
        for back in [true, false] {
            for (bucket, slot) in taken() {
                let (theirs, other) = self.resident(txn, touch, bucket, slot)?;
                if (other == theirs.first) == back && self.move_away(txn, touch, bucket, slot)? {
                    return Ok(Some((bucket, slot)));
                }
            }
        }
        for (bucket, slot) in taken() {
            let (_, other) = self.resident(txn, touch, bucket, slot)?;
            for further in 0..SLOTS {
                if self.move_away(txn, touch, other, further)? {
                    let moved = self.move_away(txn, touch, bucket, slot)?;
                    return Ok(moved.then_some((bucket, slot)));
                }
            }
        }
        Ok(None)
    }

    /// Where the key of a slot may lie, and the one of the two buckets where it does not.
    fn resident(
        &self,
        txn: &mut Txn,
        touch: Touch,
        bucket: usize,
        slot: usize,
    ) -> Outcome<(MapPlace, usize)> {
        let key = txn.read(&self.slab, bucket, touch, |words| load(words, Self::key_at(slot)))?;
        let place = self.place(&key, touch.operation(), touch.site);
        let other = if bucket == place.first { place.second } else { place.first };
        Ok((place, other))
    }

    /// Moves the key of a slot to its other bucket, if there is room.
    fn move_away(&self, txn: &mut Txn, touch: Touch, bucket: usize, slot: usize) -> Outcome<bool> {
        let (theirs, other) = self.resident(txn, touch, bucket, slot)?;
        let head = txn.read(&self.slab, other, touch, MapHead::of)?;
        let Some(free) = head.free_slot() else { return Ok(false) };
        let (key, raw) = txn.read(&self.slab, bucket, touch, |words| {
            (load::<K>(words, Self::key_at(slot)), S::load(words, Self::value_at(slot)))
        })?;
        txn.update(&self.slab, other, touch, |words| {
            words.set(0, MapHead::of(&words.as_words()).with(free, theirs.tag).word());
            store(words, Self::key_at(free), &key);
            S::replace(raw, words, Self::value_at(free));
        })?;
        txn.update(&self.slab, bucket, touch, |words| {
            words.set(0, MapHead::of(&words.as_words()).without(slot).word());
            S::take(words, Self::value_at(slot));
        })?;
        let change = match bucket == theirs.first {
            true => MapHead::one_more_elsewhere,
            false => MapHead::one_less_elsewhere,
        };
        self.change_head(txn, touch, theirs.first, change)?;
        Ok(true)
    }

    fn change_head(
        &self,
        txn: &mut Txn,
        touch: Touch,
        bucket: usize,
        change: fn(MapHead) -> MapHead,
    ) -> Outcome<()> {
        txn.update(&self.slab, bucket, touch, |words: &mut WordsMut<'_>| {
            words.set(0, change(MapHead::of(&words.as_words())).word());
        })
    }

    #[inline(always)]
    fn place(&self, key: &K, operation: Operation, site: &'static Location<'static>) -> MapPlace {
        self.place_of(self.hash_of(key), operation, site)
    }

    #[inline(always)]
    fn place_of(
        &self,
        hash: u64,
        operation: Operation,
        site: &'static Location<'static>,
    ) -> MapPlace {
        let first = hash as usize & self.mask;
        // Never the same, as there are at least two. The upper half as a fraction of 2^32.
        let apart = (((hash >> 32) * self.mask as u64) >> 32) as usize + 1;
        let touch = Touch::new(self.object, operation, Part::Bucket, detail_of(hash), site);
        MapPlace { first, second: (first + apart) & self.mask, tag: tag_of(hash), touch }
    }

    #[inline(always)]
    fn hash_of(&self, key: &K) -> u64 {
        match self.hash {
            Hash::Keyed(secret) => hash_bytes(bytemuck::bytes_of(key), secret),
            Hash::By(hash) => hash(key),
        }
    }

    #[inline(always)]
    const fn key_at(slot: usize) -> usize {
        1 + slot * Self::SLOT
    }

    #[inline(always)]
    const fn value_at(slot: usize) -> usize {
        Self::key_at(slot) + Self::KEY
    }
}

/// The bits of a hash that a bucket has of each key.
#[inline(always)]
const fn tag_of(hash: u64) -> u8 {
    (hash >> 24) as u8
}

/// Multiplies word after word into a state, and folds the product, which brings every bit of the key to every bit of
/// the hash.
#[inline]
fn hash_bytes(bytes: &[u8], secret: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = secret;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = fold(state ^ u64::from_ne_bytes(word), ODD ^ secret.rotate_left(23) | 1);
    }
    fold(state ^ ODD, secret | 1)
}

impl<K, V, S> fmt::Debug for Map<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Map({} buckets)", self.slab.cells())
    }
}
