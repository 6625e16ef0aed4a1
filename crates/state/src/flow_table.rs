//! The flows of a shard, and with each the states that the functions of the chain keep about it.
//!
//! One lookup serves a packet through the whole chain: a flow's entry holds the states of all
//! functions, each at an offset that a [`Handle`] knows. A packet of an IPv4 flow touches one line of the
//! index and, where the states are small, one of the entry: the key, what packets write, and 30 bytes of
//! states. Links, generation and second keys lie in the next line. Entries never move while their flow
//! lives. Nothing here allocates after the table is made.
//!
//! A burst looks up in stages, with memory fetched between them: [`FlowTable::prefetch_hint`] for all
//! packets, then [`FlowTable::probe`] for all, then, packet by packet, [`FlowTable::find`], which
//! takes what `probe` said as a hint and nothing more, because packets of the same burst create and
//! end flows.
#![allow(unsafe_code)]

mod arena;
mod bucket;
mod detached;
mod entries;
mod entry;
mod expiry;
mod flow;
mod index;
mod layout;
mod membership;
mod open_flows;
mod prefetch_hint;
mod states;
#[cfg(test)]
mod tests;
mod walk;

use std::fmt;
use std::sync::Arc;

use rheostat_base::Time;
use rheostat_packet::{Family, FlowKey};

pub use arena::{Arena, ArenaError, TableConfig};
pub use detached::{Detached, DetachedFlow, OpenDetached};
pub use expiry::{Expiry, Reclaimed};
pub use flow::{FlowId, FlowMarks, FlowMut};
pub use layout::{Handle, LayoutError, MAX_STATES, StateLayout, TimePlace};
pub use membership::{AliasError, TableFull};
pub use open_flows::{
    EntryColumn, OPEN_FLOWS, OpenFlows, ShardLocals, StateBits, StateColumn, StateColumnMut,
};
pub use prefetch_hint::PrefetchHint;
pub use states::{OpenFlow, StateRefs, StateSet};
pub use walk::{AwayFlow, WalkedFlow};

use arena::SharedArena;
use bucket::DETACHED;
use detached::DetachedFlows;
use entries::Entries;
use entry::EntryKind;
use index::Index;

use crate::list::Lists;
use crate::timer_wheel::TimerWheel;
use crate::{FlowHash, FlowHasher};

/// What [`FlowTable::probe`] found: an entry to look at first. The default is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe(u32);

impl Probe {
    /// No entry has the tag.
    pub const NONE: Probe = Probe(u32::MAX);
    /// The table has not been asked yet.
    pub const PENDING: Probe = Probe(u32::MAX - 1);

    /// Whether the table has not been asked yet.
    #[inline(always)]
    pub fn is_pending(self) -> bool {
        self == Probe::PENDING
    }
}

impl Default for Probe {
    fn default() -> Probe {
        Probe::NONE
    }
}

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
    /// The bits of all states.
    states: u8,
    // The rest.
    wheel: TimerWheel,
    evictable: Lists,
    counts: TableCounts,
    capacity: u64,
    shared: Arc<SharedArena>,
    /// The flows that other lanes work on; none in most tables.
    detached: Option<Box<DetachedFlows>>,
}

// SAFETY: the table is the only one to access its parts of the mapping, but for what a `DetachedFlow` accesses of an entry, which
// the table leaves alone. The states in them are `Send` (`StateLayout::reserve` asks for it), and the mapping itself is kept
// alive by a shared count. It is not `Sync`: the states need not be.
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
    fn with(
        index: Index,
        entries: Entries,
        config: TableConfig,
        shared: Arc<SharedArena>,
    ) -> FlowTable {
        FlowTable {
            entries,
            index,
            layout: shared.layout.id(),
            states: shared.layout.all(),
            wheel: TimerWheel::new(),
            evictable: Lists::new(1),
            counts: TableCounts::default(),
            capacity: config.capacity as u64,
            shared,
            detached: None,
        }
    }

    /// What a lookup will need, to be asked for ahead of it. Of use as long as the table stays where it is.
    pub fn prefetch_hint(&self) -> PrefetchHint {
        PrefetchHint::new(std::ptr::from_ref(self).cast(), &self.index)
    }

    /// Finds an entry that `hash` may lead to, and asks the processor to fetch what packets of this family need of
    /// it. No key is compared.
    #[inline]
    pub fn probe(&self, hash: FlowHash, family: Family) -> Probe {
        match self.index.find(hash, |_| true) {
            Some(candidate) => {
                // Of a detached flow, another lane needs the entry.
                if candidate & DETACHED == 0 {
                    self.entries.prefetch(candidate, family);
                }
                Probe(candidate)
            }
            None => Probe::NONE,
        }
    }

    /// The flow that `key` belongs to, also while it is detached. `hash` is the key's, and `probe` may be any probe at all: it
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

    /// As [`FlowTable::find`], to read and change the flow at once; `None` also while it is detached.
    #[inline]
    pub fn find_flow(
        &mut self,
        hash: FlowHash,
        key: &FlowKey,
        probe: Probe,
    ) -> Option<FlowMut<'_>> {
        let index = self.search(hash, key, probe)?;
        (index & DETACHED == 0).then(|| FlowMut::new(self, index))
    }

    /// The flow that `key` belongs to, if `probe` has found it and it has not ended: the flow of most packets. No other
    /// entry is looked at.
    #[inline(always)]
    pub fn probed(&mut self, key: &FlowKey, Probe(candidate): Probe) -> Option<FlowMut<'_>> {
        FlowMut::with_key(self, candidate, key)
    }

    /// The flow that `key` belongs to, its state behind `handle` and its deadline, to read. `None` also when
    /// the state is not initialised, or the flow is detached. Panics when the handle is of another layout than the table's.
    pub fn look_at<T: Send + 'static>(
        &self,
        hash: FlowHash,
        key: &FlowKey,
        handle: Handle<T>,
    ) -> Option<(FlowId, &T, Time)> {
        handle.check(self.layout);
        let index = self.search_index(hash, key)?;
        if index & DETACHED != 0 || self.entries.cold(index).initialised & handle.bit() == 0 {
            return None;
        }
        let place = self.entries.address(index);
        // SAFETY: the handle is of this layout, so a `T` has its place there, and the bit says that one was
        // written. The table is shared as long as the reference lives, and changes states only when it is
        // borrowed alone.
        let state = unsafe { place.add(handle.offset()).cast::<T>().as_ref() };
        Some((self.id(index), state, self.entries.hot(index).ending.deadline()))
    }

    /// The flow, to read and change; `None` when it has ended, or is detached.
    #[inline]
    pub fn flow(&mut self, flow: FlowId) -> Option<FlowMut<'_>> {
        let index = self.live(flow)?;
        Some(FlowMut::new(self, index))
    }

    /// Lets the entries of flows ended since the last call serve new flows. Called between bursts,
    /// when no [`FlowId`] or [`Probe`] of the burst is in use.
    #[inline]
    pub fn end_burst(&mut self) {
        self.entries.reclaim_retired();
    }

    /// The hash of a key in this table.
    pub fn hash_of(&self, key: &FlowKey) -> FlowHash {
        self.shared.hasher.hash(key)
    }

    /// Flows the table holds at most.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// What the table has seen.
    pub fn counts(&self) -> TableCounts {
        self.counts
    }

    /// The entry with `key`, and whether it is detached: the probe's candidate, if that is right.
    #[inline]
    fn search(&self, hash: FlowHash, key: &FlowKey, Probe(candidate): Probe) -> Option<u32> {
        if candidate < self.entries.used() && self.entries.matches(candidate, key) {
            return Some(self.flow_at(candidate, key.family()));
        }
        self.search_index(hash, key)
    }

    /// The entry of the flow of which `index` has a key of this family.
    #[inline]
    fn flow_at(&self, index: u32, family: Family) -> u32 {
        if family == Family::V6 && self.entries.name(index).kind() == EntryKind::V6Alias {
            return self.entries.cold(index).partner;
        }
        index
    }

    /// The entry with `key`, and whether it is detached. Not inlined: the path of packets whose probe was right is to be short.
    #[inline(never)]
    fn search_index(&self, hash: FlowHash, key: &FlowKey) -> Option<u32> {
        let index = self.index.find(hash, |entry| match entry & DETACHED {
            0 => self.entries.matches(entry, key),
            _ => self.is_detached_key(entry & !DETACHED, key),
        })?;
        match index & DETACHED {
            0 => Some(self.flow_at(index, key.family())),
            _ => self.detached_at(index & !DETACHED).map(|flow| flow | DETACHED),
        }
    }

    /// What names the flow in entry `index`.
    #[inline]
    fn id(&self, index: u32) -> FlowId {
        let index = index & !DETACHED;
        FlowId { index, generation: self.entries.cold(index).generation }
    }

    /// The entry of a flow that has not ended and is not detached.
    #[inline]
    fn live(&self, flow: FlowId) -> Option<u32> {
        let in_use = flow.index < self.entries.used()
            && self.entries.cold(flow.index).generation == flow.generation
            && !matches!(
                self.entries.name(flow.index).kind(),
                EntryKind::Free | EntryKind::V6Alias
            );
        in_use.then_some(flow.index)
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

/// Asks the processor to fetch the line in which a value begins, for a look some time later.
#[inline]
pub fn prefetch_line<T>(value: &T) {
    prefetch(std::ptr::from_ref(value).cast());
}

/// Asks the processor to fetch the line at `address`, wherever that is.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch cannot fault, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(address.cast(), _MM_HINT_T0);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
