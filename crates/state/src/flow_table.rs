//! The flows of a shard, and with each the states that the functions of the chain keep about it.
//!
//! One lookup serves a packet through the whole chain: a flow's entry holds the states of all
//! functions, each at an offset that a [`Handle`] knows. A lookup touches one line of the index and
//! the entry's first two: the key, and the start of what packets write. Entries never move while their
//! flow lives. Nothing here allocates after the table is made.
//!
//! A burst looks up in stages, with memory fetched between them: [`FlowTable::prefetch`] for all
//! packets, then [`FlowTable::probe`] for all, then, packet by packet, [`FlowTable::find`], which
//! takes what `probe` said as a hint and nothing more, because packets of the same burst create and
//! end flows.
#![allow(unsafe_code)]

mod arena;
mod bucket;
mod entries;
mod entry;
mod expiry;
mod flow;
mod index;
mod layout;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{Family, FlowKey};
use thiserror::Error;

pub use arena::{Arena, ArenaError, TableConfig};
pub use expiry::Reclaimed;
pub use flow::{FlowId, FlowMut};
pub use layout::{Handle, LayoutError, MAX_STATES, StateLayout};

use arena::Shared;
use entries::{Entries, EvictLinks, WheelLinks};
use entry::{EVICTABLE, Kind};
use index::Index;

use crate::list::Lists;
use crate::timer_wheel::{self, TimerWheel, UNARMED};
use crate::{FlowHash, FlowHasher};

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
    /// An entry has room for one IPv6 key, or for two IPv4 keys: the flow or the alias is IPv6, or the
    /// flow has its alias already.
    #[error("a flow has room for two keys of IPv4 or one of IPv6")]
    NoRoom,
    /// The index has no room for another key.
    #[error("the flow table is full")]
    Full,
}

/// What [`FlowTable::probe`] found: an entry to look at first. The default is none.
#[derive(Clone, Copy, Debug)]
pub struct Probe(u32);

impl Default for Probe {
    fn default() -> Probe {
        Probe(NO_CANDIDATE)
    }
}

/// No entry has the tag.
const NO_CANDIDATE: u32 = u32::MAX;

/// What a table has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// Flows created.
    pub created: u64,
    /// Flows ended for whatever reason: created = expired + live.
    pub expired: u64,
    /// Flows ended to make room for others; counted in `expired` too.
    pub evicted: u64,
    /// Flows in the table.
    pub live: u64,
    /// The most flows there ever were at a time.
    pub peak: u64,
}

/// The flow table of one shard.
///
/// **When it is full.** An insertion into a table that holds its capacity fails, and the caller makes
/// room: first [`FlowTable::expire`] without a budget, then [`FlowTable::evict`] of
/// [`FlowTable::oldest_evictable`]. In this order, the outcome depends only on the packets and their
/// times, not on when the lane found time to advance the wheel.
#[repr(C, align(64))]
pub struct FlowTable {
    // What a lookup reads, in the first line.
    entries: Entries,
    index: Index,
    layout: u64,
    // The rest.
    wheel: TimerWheel,
    evictable: Lists,
    counts: TableCounts,
    capacity: u64,
    shared: Arc<Shared>,
}

// SAFETY: the table is the only one to access its parts of the mapping, the states in them are `Send`
// (`StateLayout::reserve` asks for it), and the mapping itself is kept alive by a shared count. It is
// not `Sync`: the states need not be.
unsafe impl Send for FlowTable {}

impl FlowTable {
    /// A table with memory of its own.
    ///
    /// # Errors
    /// As [`Arena::new`].
    pub fn new(
        config: TableConfig,
        layout: Arc<StateLayout>,
        hasher: FlowHasher,
    ) -> Result<FlowTable, ArenaError> {
        let mut tables = Arena::new(1, config, layout, hasher)?.into_tables();
        Ok(tables.pop().expect("an arena of one table has one"))
    }

    /// A table of these parts, which belong to it alone.
    fn with(index: Index, entries: Entries, config: TableConfig, shared: Arc<Shared>) -> FlowTable {
        FlowTable {
            entries,
            index,
            layout: shared.layout.id(),
            wheel: TimerWheel::new(),
            evictable: Lists::new(1),
            counts: TableCounts::default(),
            capacity: config.capacity as u64,
            shared,
        }
    }

    /// Asks the processor to fetch the line of the index where `hash` leads.
    #[inline]
    pub fn prefetch(&self, hash: FlowHash) {
        self.index.prefetch(hash);
    }

    /// Finds an entry that `hash` may lead to, and asks the processor to fetch it. No key is compared.
    #[inline]
    pub fn probe(&self, hash: FlowHash) -> Probe {
        match self.index.find(hash, |_| true) {
            Some(candidate) => {
                self.entries.prefetch(candidate);
                Probe(candidate)
            }
            None => Probe(NO_CANDIDATE),
        }
    }

    /// The flow that `key` belongs to. `hash` is the key's, and `probe` may be any probe at all: it
    /// decides how long the search takes, not what it finds.
    ///
    /// The flow may be past its deadline (see [`FlowMut::is_expired`]); ending it is up to the caller.
    #[inline]
    pub fn find(&self, hash: FlowHash, key: &FlowKey, probe: Probe) -> Option<FlowId> {
        self.search(hash, key, probe).map(|index| self.id(index))
    }

    /// The flow that `key` belongs to, without a probe.
    #[inline]
    pub fn find_now(&self, hash: FlowHash, key: &FlowKey) -> Option<FlowId> {
        self.search_index(hash, key).map(|index| self.id(index))
    }

    /// As [`FlowTable::find`], to read and change the flow at once.
    #[inline]
    pub fn find_flow(
        &mut self,
        hash: FlowHash,
        key: &FlowKey,
        probe: Probe,
    ) -> Option<FlowMut<'_>> {
        let index = self.search(hash, key, probe)?;
        Some(FlowMut::new(self, index))
    }

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
            self.entries.bury(index);
            return Err(TableFull);
        }
        self.wheel.turn_if_idle(timer_wheel::tick(now));
        let head = self.entries.head_mut(index);
        head.key = *key.raw();
        head.slot = UNARMED;
        head.kind = match key.family() {
            Family::V4 => Kind::V4,
            Family::V6 => Kind::V6,
        };
        let generation = head.generation;
        let tail = self.entries.tail_mut(index);
        tail.deadline = Time::NEVER;
        tail.seen = 0;
        self.counts.created += 1;
        self.counts.live += 1;
        self.counts.peak = self.counts.peak.max(self.counts.live);
        Ok(FlowId { index, generation })
    }

    /// Makes `key` lead to `flow` as well. `hash` must be its hash.
    ///
    /// # Errors
    /// When the flow is gone, `key` is taken, the entry has no room for it (only a flow of IPv4 has
    /// room, for one alias of IPv4), or the index is full.
    pub fn alias(&mut self, flow: FlowId, hash: FlowHash, key: &FlowKey) -> Result<(), AliasError> {
        debug_assert_eq!(hash, self.shared.hasher.hash(key), "the hash of another key");
        let index = self.live(flow).ok_or(AliasError::Ended)?;
        if self.find_now(hash, key).is_some() {
            return Err(AliasError::Taken);
        }
        if key.family() != Family::V4 || self.entries.head(index).kind != Kind::V4 {
            return Err(AliasError::NoRoom);
        }
        self.index.insert(hash, index).map_err(|_| AliasError::Full)?;
        let head = self.entries.head_mut(index);
        head.key[2..4].copy_from_slice(&key.raw()[..2]);
        head.kind = Kind::V4Alias;
        Ok(())
    }

    /// The flow, to read and change; `None` when it has ended.
    #[inline]
    pub fn flow(&mut self, flow: FlowId) -> Option<FlowMut<'_>> {
        let index = self.live(flow)?;
        Some(FlowMut::new(self, index))
    }

    /// Ends a flow: its keys lead nowhere from now on, its states are dropped, and its entry serves
    /// another flow only after [`FlowTable::end_burst`]. `false` when it had ended before.
    pub fn remove(&mut self, flow: FlowId) -> bool {
        let Some(index) = self.live(flow) else { return false };
        self.end(index);
        true
    }

    /// As [`FlowTable::remove`], counted as an eviction.
    pub fn evict(&mut self, flow: FlowId) -> bool {
        let removed = self.remove(flow);
        self.counts.evicted += u64::from(removed);
        removed
    }

    /// The flow that has been evictable for the longest time (see [`FlowMut::set_evictable`]).
    pub fn oldest_evictable(&self) -> Option<FlowId> {
        self.evictable.front(0).map(|index| self.id(index))
    }

    /// Lets the entries of flows ended since the last call serve new flows. Called between bursts,
    /// when no [`FlowId`] or [`Probe`] of the burst is in use.
    #[inline]
    pub fn end_burst(&mut self) {
        self.entries.exhume();
    }

    /// Flows the table holds at most.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// What the table has seen.
    pub fn counts(&self) -> TableCounts {
        self.counts
    }

    /// The entry with `key`: the probe's candidate, if that is right.
    #[inline]
    fn search(&self, hash: FlowHash, key: &FlowKey, Probe(candidate): Probe) -> Option<u32> {
        if candidate < self.entries.used() && self.entries.head(candidate).matches(key) {
            return Some(candidate);
        }
        self.search_index(hash, key)
    }

    /// The entry with `key`. Not inlined: the path of packets whose probe was right is to be short.
    #[inline(never)]
    fn search_index(&self, hash: FlowHash, key: &FlowKey) -> Option<u32> {
        self.index.find(hash, |entry| self.entries.head(entry).matches(key))
    }

    /// What names the flow in entry `index`.
    #[inline]
    fn id(&self, index: u32) -> FlowId {
        FlowId { index, generation: self.entries.head(index).generation }
    }

    /// The entry of a flow that has not ended.
    #[inline]
    fn live(&self, flow: FlowId) -> Option<u32> {
        let in_use = flow.index < self.entries.used()
            && self.entries.head(flow.index).generation == flow.generation
            && self.entries.head(flow.index).kind != Kind::Free;
        in_use.then_some(flow.index)
    }

    /// Ends the flow in entry `index`.
    fn end(&mut self, index: u32) {
        let head = self.entries.head(index);
        let (slot, flags, alias) = (head.slot, head.flags, head.alias());
        let (words, family) = head.primary();
        let hash = self.shared.hasher.hash_words(&words, family);
        let found = self.index.remove(hash, index);
        debug_assert!(found, "a flow is not in the index");
        if let Some(words) = alias {
            let hash = self.shared.hasher.hash_words(&words, Family::V4);
            let found = self.index.remove(hash, index);
            debug_assert!(found, "an alias is not in the index");
        }
        if slot != UNARMED {
            self.wheel.disarm(&mut WheelLinks(&mut self.entries), index);
        }
        if flags & EVICTABLE != 0 {
            self.evictable.unlink(&mut EvictLinks(&mut self.entries), index);
        }
        self.counts.live -= 1;
        self.counts.expired += 1;
        self.entries.bury(index);
        self.drop_states(index);
    }

    /// Drops the states in entry `index`, once all else is in order: a drop may panic.
    fn drop_states(&mut self, index: u32) {
        let initialised = std::mem::take(&mut self.entries.tail_mut(index).initialised);
        // SAFETY: the entry is one of this layout (the arena holds both), the bits name the states
        // that are initialised, and they were cleared first.
        unsafe { self.shared.layout.drop_states(self.entries.address(index), initialised) };
    }
}

impl Drop for FlowTable {
    fn drop(&mut self) {
        if self.shared.layout.needs_drop() {
            for index in 0..self.entries.used() {
                self.drop_states(index);
            }
        }
    }
}

impl fmt::Debug for FlowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowTable")
            .field("capacity", &self.capacity)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

/// Asks the processor to fetch the line at `address`, wherever that is.
#[inline]
fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch cannot fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(address.cast(), _MM_HINT_T0);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
