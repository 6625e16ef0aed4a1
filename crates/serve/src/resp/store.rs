//! Keys and values, some of which live for a while only.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::Time;

use super::refusal::Refusal;
use super::value::StoredValue;

/// Locks over which keys are spread.
const STRIPES: usize = 256;
/// What a key costs besides its bytes and those of its value, about.
const OVERHEAD: usize = 96;
/// Keys whose time has come that one access removes at most.
const RECLAIM: usize = 4;

/// The store.
#[derive(Debug)]
pub(super) struct Store {
    stripes: Vec<Mutex<Stripe>>,
    hasher: RandomState,
    most: usize,
    /// Bytes of keys and values, those included that replies still send.
    taken: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Stripe {
    values: HashMap<Box<[u8]>, Value>,
    /// When keys may have to go; some entries are out of date.
    due: BinaryHeap<Reverse<(Time, Box<[u8]>)>>,
}

#[derive(Debug)]
struct Value {
    bytes: StoredValue,
    expires: Time,
}

/// When a value is to be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Always,
    IfNew,
    IfThere,
}

impl Store {
    pub(super) fn new(most: usize) -> Store {
        let stripes = (0..STRIPES).map(|_| Mutex::default()).collect();
        Store { stripes, hasher: RandomState::new(), most, taken: Arc::default() }
    }

    /// The stripe of a key, without the first few keys whose time has come.
    fn stripe(&self, key: &[u8], now: Time) -> MutexGuard<'_, Stripe> {
        let place = self.hasher.hash_one(key) as usize % STRIPES;
        let mut stripe = self.stripes[place].lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..RECLAIM {
            let is_due = |entry: &&Reverse<(Time, Box<[u8]>)>| entry.0.0 <= now;
            if stripe.due.peek().filter(is_due).is_none() {
                break;
            }
            if let Some(Reverse((_, key))) = stripe.due.pop()
                && stripe.values.get(&key).is_some_and(|value| value.expires <= now)
            {
                self.remove_from(&mut stripe, &key);
            }
        }
        stripe
    }

    fn remove_from(&self, stripe: &mut Stripe, key: &[u8]) -> bool {
        let Some(value) = stripe.values.remove(key) else { return false };
        self.taken.fetch_sub(key.len() + OVERHEAD, Ordering::Relaxed);
        value.bytes.release(&self.taken);
        true
    }

    /// Shows the value of a key to `look`.
    pub(super) fn get<T>(
        &self,
        key: &[u8],
        now: Time,
        look: impl FnOnce(Option<&StoredValue>) -> T,
    ) -> T {
        let stripe = self.stripe(key, now);
        let value = stripe.values.get(key).filter(|value| value.expires > now);
        look(value.map(|value| &value.bytes))
    }

    /// Bytes of keys and values.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Enters a value, until `expires`. Returns whether the condition let it.
    pub(super) fn set(
        &self,
        key: &[u8],
        bytes: Vec<u8>,
        expires: Time,
        condition: Condition,
        now: Time,
    ) -> Result<bool, Refusal> {
        self.set_in(&mut self.stripe(key, now), key, bytes, expires, condition, now)
    }

    fn set_in(
        &self,
        stripe: &mut Stripe,
        key: &[u8],
        bytes: Vec<u8>,
        expires: Time,
        condition: Condition,
        now: Time,
    ) -> Result<bool, Refusal> {
        let old = stripe.values.get(key);
        let is_there = old.is_some_and(|old| old.expires > now);
        let before = old.map_or(0, |old| cost(key, old.bytes.removable()));
        match (condition, is_there) {
            (Condition::IfNew, true) | (Condition::IfThere, false) => return Ok(false),
            _ => {}
        }
        let after = cost(key, bytes.len());
        if after > before && self.taken.load(Ordering::Relaxed) + after - before > self.most {
            return Err(Refusal::Full);
        }
        let bytes = StoredValue::new(bytes, &self.taken);
        match stripe.values.insert(key.into(), Value { bytes, expires }) {
            Some(old) => old.bytes.release(&self.taken),
            None => _ = self.taken.fetch_add(key.len() + OVERHEAD, Ordering::Relaxed),
        }
        if expires != Time::NEVER {
            stripe.due.push(Reverse((expires, key.into())));
        }
        Ok(true)
    }

    /// Changes the number that a key has, 0 without; none if its value is no number, or the result would be none.
    pub(super) fn add(&self, key: &[u8], amount: i64, now: Time) -> Result<Option<i64>, Refusal> {
        let mut stripe = self.stripe(key, now);
        match stripe.values.entry(key.into()) {
            Entry::Occupied(mut entry) if entry.get().expires > now => {
                let value = entry.get_mut();
                let text = std::str::from_utf8(&value.bytes).ok();
                let sum = text.and_then(|text| text.parse::<i64>().ok()?.checked_add(amount));
                let Some(sum) = sum else { return Ok(None) };
                let bytes = StoredValue::new(sum.to_string().into_bytes(), &self.taken);
                std::mem::replace(&mut value.bytes, bytes).release(&self.taken);
                Ok(Some(sum))
            }
            _ => {
                let (bytes, always) = (amount.to_string().into_bytes(), Condition::Always);
                self.set_in(&mut stripe, key, bytes, Time::NEVER, always, now)?;
                Ok(Some(amount))
            }
        }
    }

    /// Appends to the value of a key, nothing without, and returns how long it is then; `None` if that is more than `longest`. The
    /// value is not copied, but for its growth.
    pub(super) fn append(
        &self,
        key: &[u8],
        more: Vec<u8>,
        longest: usize,
        now: Time,
    ) -> Result<Option<usize>, Refusal> {
        let mut stripe = self.stripe(key, now);
        let Some(value) = stripe.values.get_mut(key).filter(|value| value.expires > now) else {
            let len = more.len();
            if len <= longest {
                self.set_in(&mut stripe, key, more, Time::NEVER, Condition::Always, now)?;
            }
            return Ok((len <= longest).then_some(len));
        };
        let len = value.bytes.len() + more.len();
        if len > longest {
            return Ok(None);
        }
        let grown = len - value.bytes.removable();
        if self.taken.load(Ordering::Relaxed) + grown > self.most {
            return Err(Refusal::Full);
        }
        let empty = StoredValue::new(Vec::new(), &self.taken);
        let mut bytes = std::mem::replace(&mut value.bytes, empty).into_bytes(&self.taken);
        if bytes.capacity() < len {
            // Not doubled: what is not used is not charged.
            bytes.reserve_exact(more.len().max(bytes.len() / 8));
        }
        bytes.extend_from_slice(&more);
        value.bytes = StoredValue::new(bytes, &self.taken);
        Ok(Some(len))
    }

    /// Removes all keys. Takes time in proportion to their number; stripes are free meanwhile, one by one.
    pub(super) fn clear(&self) {
        for stripe in &self.stripes {
            let Stripe { values, .. } =
                std::mem::take(&mut *stripe.lock().unwrap_or_else(PoisonError::into_inner));
            for (key, value) in values {
                self.taken.fetch_sub(key.len() + OVERHEAD, Ordering::Relaxed);
                value.bytes.release(&self.taken);
            }
        }
    }

    /// Removes a key; whether it was there.
    pub(super) fn remove(&self, key: &[u8], now: Time) -> bool {
        let mut stripe = self.stripe(key, now);
        let was = stripe.values.get(key).is_some_and(|value| value.expires > now);
        self.remove_from(&mut stripe, key);
        was
    }

    /// Lets a key live until `expires`; whether it was there.
    pub(super) fn expire(&self, key: &[u8], expires: Time, now: Time) -> bool {
        let mut stripe = self.stripe(key, now);
        let Some(value) = stripe.values.get_mut(key).filter(|value| value.expires > now) else {
            return false;
        };
        value.expires = expires;
        stripe.due.push(Reverse((expires, key.into())));
        true
    }

    /// When a key goes, if it is there.
    pub(super) fn expires(&self, key: &[u8], now: Time) -> Option<Time> {
        let stripe = self.stripe(key, now);
        stripe.values.get(key).map(|value| value.expires).filter(|expires| *expires > now)
    }

    /// Keys that are there, those included whose time has come a moment ago.
    pub(super) fn len(&self) -> usize {
        let count = |stripe: &Mutex<Stripe>| {
            stripe.lock().unwrap_or_else(PoisonError::into_inner).values.len()
        };
        self.stripes.iter().map(count).sum()
    }
}

/// What a key with a value of so many bytes costs.
fn cost(key: &[u8], value: usize) -> usize {
    key.len() + value + OVERHEAD
}
