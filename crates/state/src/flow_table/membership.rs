//! How flows enter a table, get a second key, and leave.

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{Family, FlowKey};
use thiserror::Error;

use super::entries::{EvictLinks, WheelLinks};
use super::entry::{self, Ending, EntryKind, Hot, NO_PARTNER};
use super::{FlowId, FlowTable};
use crate::FlowHash;
use crate::timer_wheel::{self, UNARMED};

/// The table has no room for another flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the flow table is full")]
pub struct TableFull;

/// Why a flow did not get a second key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AliasError {
    /// The flow is gone.
    #[error("the flow has ended")]
    Ended,
    /// The key leads to a flow already.
    #[error("the key belongs to a flow")]
    Taken,
    /// The alias is of another family than the flow, or the flow has one already.
    #[error("a flow has at most two keys, of one family")]
    NoRoom,
    /// The table has no room for another key.
    #[error("the flow table is full")]
    Full,
}

impl FlowTable {
    /// Creates a flow, without any state and with no deadline: it stays until one is set or it is
    /// removed. `key` must lead to no flow, and `hash` must be its hash.
    ///
    /// # Errors
    /// [`TableFull`] when the table holds its capacity (see [`FlowTable`]). Also when more than 64
    /// flows were created since [`FlowTable::end_burst`] in a full table, or when the index finds no
    /// place: its load stays below 0.7, where only a hash whose seed is known makes that happen.
    pub fn insert(
        &mut self,
        hash: FlowHash,
        key: &FlowKey,
        now: Time,
    ) -> Result<FlowId, TableFull> {
        debug_assert_eq!(hash, self.shared.hasher.hash(key), "the hash of another key");
        debug_assert_eq!(self.find_now(hash, key), None, "the key has a flow");
        if self.counts.live >= self.capacity {
            return Err(TableFull);
        }
        let index = self.entries.take().ok_or(TableFull)?;
        if self.index.insert(hash, index).is_err() {
            self.entries.retire(index);
            return Err(TableFull);
        }
        self.wheel.turn_if_idle(timer_wheel::tick(now));
        let kind = match key.family() {
            Family::V4 => EntryKind::V4,
            Family::V6 => EntryKind::V6,
        };
        let generation = self.occupy(index, key, kind, NO_PARTNER);
        self.counts.created += 1;
        self.counts.live += 1;
        self.counts.peak = self.counts.peak.max(self.counts.live);
        Ok(FlowId { index, generation })
    }

    /// Makes `key` lead to `flow` as well. `hash` must be its hash. An alias of IPv4 lies in the flow's
    /// entry, one of IPv6 takes an entry of its own.
    ///
    /// # Errors
    /// When the flow is gone, `key` is taken or of another family, the flow has an alias already, or
    /// the table is full.
    pub fn alias(&mut self, flow: FlowId, hash: FlowHash, key: &FlowKey) -> Result<(), AliasError> {
        debug_assert_eq!(hash, self.shared.hasher.hash(key), "the hash of another key");
        let index = self.live(flow).ok_or(AliasError::Ended)?;
        if self.find_now(hash, key).is_some() {
            return Err(AliasError::Taken);
        }
        match (key.family(), self.entries.hot(index).ending.kind()) {
            (Family::V4, EntryKind::V4) => self.alias_v4(index, hash, key),
            (Family::V6, EntryKind::V6) if self.entries.cold(index).partner == NO_PARTNER => {
                self.alias_v6(index, hash, key)
            }
            _ => Err(AliasError::NoRoom),
        }
    }

    /// Writes the fixed parts of an entry that was free, and returns its generation.
    fn occupy(&mut self, index: u32, key: &FlowKey, kind: EntryKind, partner: u32) -> u32 {
        let &[first, second, rest @ ..] = key.raw();
        let devices = [DeviceId::NONE; 2];
        let ending = Ending::never(kind);
        *self.entries.hot_mut(index) =
            Hot { key: [first, second], ending, stamps: [0; 2], devices };
        let cold = self.entries.cold_mut(index);
        (cold.more, cold.slot, cold.partner) = (rest, UNARMED, partner);
        cold.generation
    }

    fn alias_v4(&mut self, index: u32, hash: FlowHash, key: &FlowKey) -> Result<(), AliasError> {
        self.index.insert(hash, index).map_err(|_| AliasError::Full)?;
        let &[first, second, ..] = key.raw();
        self.entries.cold_mut(index).more = [first, second, 0];
        self.entries.set_kind(index, EntryKind::V4Alias);
        Ok(())
    }

    fn alias_v6(&mut self, index: u32, hash: FlowHash, key: &FlowKey) -> Result<(), AliasError> {
        let alias = self.entries.take().ok_or(AliasError::Full)?;
        if self.index.insert(hash, alias).is_err() {
            self.entries.retire(alias);
            return Err(AliasError::Full);
        }
        self.occupy(alias, key, EntryKind::V6Alias, index);
        self.entries.cold_mut(index).partner = alias;
        Ok(())
    }

    /// Ends a flow: its keys lead nowhere from now on, its states are dropped, and its entry serves
    /// another flow only after [`FlowTable::end_burst`]. `false` when it had ended before.
    pub fn remove(&mut self, flow: FlowId) -> bool {
        let Some(index) = self.live(flow) else { return false };
        self.end(index);
        true
    }

    /// Takes the insertion of a flow back, as if it had not been: it is not counted, and its entry can be
    /// taken again at once. For flows that were not looked up since, except to undo that as well.
    pub fn retract(&mut self, flow: FlowId) -> bool {
        let Some(index) = self.live(flow) else { return false };
        let entries = if self.entries.cold(index).partner == NO_PARTNER { 1 } else { 2 };
        self.end(index);
        (0..entries).for_each(|_| self.entries.reclaim_latest());
        self.counts.expired -= 1;
        self.counts.created -= 1;
        true
    }

    /// As [`FlowTable::remove`], counted as an eviction.
    pub fn evict(&mut self, flow: FlowId) -> bool {
        let removed = self.remove(flow);
        self.counts.evicted += u64::from(removed);
        removed
    }

    /// The flow that has been evictable for the longest time (see
    /// [`super::FlowMut::set_evictable`]).
    pub fn oldest_evictable(&self) -> Option<FlowId> {
        self.evictable.front(0).map(|index| self.id(index))
    }

    /// Ends the flow in entry `index`.
    pub(super) fn end(&mut self, index: u32) {
        let (hot, cold) = (self.entries.hot(index), self.entries.cold(index));
        let (slot, partner, ending) = (cold.slot, cold.partner, hot.ending);
        let ((words, family), alias) = (entry::primary(hot, cold), entry::alias(hot, cold));
        self.unindex(index, &words, family);
        if let Some(words) = alias {
            self.unindex(index, &words, Family::V4);
        }
        if family == Family::V6 && partner != NO_PARTNER {
            let (hot, cold) = (self.entries.hot(partner), self.entries.cold(partner));
            let (words, family) = entry::primary(hot, cold);
            self.unindex(partner, &words, family);
            self.entries.retire(partner);
        }
        if slot != UNARMED {
            self.wheel.disarm(&mut WheelLinks(&mut self.entries), index);
        }
        if ending.is_evictable() {
            self.evictable.unlink(&mut EvictLinks(&mut self.entries), index);
        }
        self.counts.live -= 1;
        self.counts.expired += 1;
        self.entries.retire(index);
        self.drop_states(index);
    }

    /// Takes a key of entry `index` out of the index.
    fn unindex(&mut self, index: u32, words: &[u64; 5], family: Family) {
        let hash = self.shared.hasher.hash_words(words, family);
        let found = self.index.remove(hash, index);
        debug_assert!(found, "a key of a flow is not in the index");
    }

    /// Drops the states in entry `index`, once all else is in order: a drop may panic.
    pub(super) fn drop_states(&mut self, index: u32) {
        let initialised = std::mem::take(&mut self.entries.cold_mut(index).initialised);
        // SAFETY: the entry is one of this layout (the arena holds both), the bits name the states
        // that are initialised, and they were cleared first.
        unsafe { self.shared.layout.drop_states(self.entries.address(index), initialised) };
    }
}
