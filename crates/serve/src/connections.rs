//! The connections of a shard: found by their packets' key, and owned by whichever lane owns the shard.

use std::sync::Arc;

use rheostat_base::sync::prefetch::prefetch_lines_for_write;
use rheostat_base::{DeviceId, ShardId, Time};
use rheostat_packet::{Family, FlowKey};
use rheostat_state::FlowHash;
use rheostat_tcp::{Info, MemoryBudget, SpareBuffers, State, TimeWait};

use crate::entry::Entry;
use crate::half_open::{HalfOpenEntry, HalfOpens};
use crate::index::{Index, tag_of};
use crate::slab::{Placed, Slab};

/// The name of a connection: of no other one before it has 2^32 successors in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    /// The shard that owns it.
    pub shard: ShardId,
    /// Its place there.
    pub slot: u32,
    /// Which of the connections that had the place it is.
    pub generation: u32,
}

/// What a shard keeps for a service over TCP: its connections, half-open and closed ones included, and their timers. It is a
/// value, and moves with its shard.
///
/// A *slot* is the number of a connection's place, or with [`CLOSED`] that of what is left of one, or with [`HALF_OPEN`] that of one
/// whose handshake goes on.
pub(crate) struct Connections<S> {
    shard: ShardId,
    /// What they may take.
    memory: Arc<MemoryBudget>,
    /// Send buffers that no connection needs.
    spares: SpareBuffers,
    /// Slots by the hash of the keys in them.
    index: Index,
    live: Slab<Entry<S>>,
    half_open: HalfOpens,
    closed: Slab<ClosedEntry>,
}

/// The slot of no connection.
pub(crate) const NO_SLOT: u32 = u32::MAX;
/// The bit of slots of closed connections.
const CLOSED: u32 = 1 << 30;
/// The bit of slots of half-open connections.
const HALF_OPEN: u32 = 1 << 29;
/// The bits that tell slots apart from those of live connections.
const KIND: u32 = CLOSED | HALF_OPEN;

/// What stays of a connection in TIME-WAIT.
pub(crate) struct ClosedEntry {
    pub(crate) key: FlowKey,
    pub(crate) stub: TimeWait,
    tag: u32,
    pub(crate) device: DeviceId,
}

/// A connection that is neither half-open nor closed, with the parts of its shard that its turn needs.
pub(crate) struct LiveConnection<'a, S> {
    shard: ShardId,
    placed: Placed<'a, Entry<S>>,
    spares: &'a mut SpareBuffers,
}

impl<S> LiveConnection<'_, S> {
    /// The connection.
    #[inline]
    pub(crate) fn entry(&mut self) -> &mut Entry<S> {
        self.placed.value
    }

    /// Its name.
    pub(crate) fn id(&self) -> ConnectionId {
        let (slot, generation) = self.placed.name();
        ConnectionId { shard: self.shard, slot, generation }
    }

    /// Gives it a send buffer that no connection of the shard needs, if it has none.
    #[inline]
    pub(crate) fn lend_buffer(&mut self) {
        self.spares.lend(&mut self.placed.value.tcp);
    }

    /// Takes its send buffer back, if nothing is in it.
    #[inline]
    pub(crate) fn take_back_buffer(&mut self) {
        self.spares.take_back(&mut self.placed.value.tcp);
    }

    /// As [`Connections::arm`].
    #[inline]
    pub(crate) fn arm(&mut self, at: Time) {
        self.placed.arm(at);
    }
}

/// What a key leads to.
pub(crate) enum Found<'a, S> {
    Nothing,
    Live(u32, &'a mut Entry<S>),
    HalfOpen(u32, &'a mut HalfOpenEntry),
    Closed(u32, &'a mut ClosedEntry),
}

impl<S> Connections<S> {
    /// Of a shard without connections.
    pub(crate) fn new(shard: ShardId, memory: Arc<MemoryBudget>) -> Connections<S> {
        Connections {
            shard,
            spares: SpareBuffers::new(memory.clone()),
            memory,
            index: Index::default(),
            live: Slab::default(),
            half_open: HalfOpens::default(),
            closed: Slab::default(),
        }
    }

    pub(crate) fn shard(&self) -> ShardId {
        self.shard
    }

    /// What the shard's connections may take for data.
    pub(crate) fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Connections that are not closed, half-open ones included.
    pub(crate) fn live(&self) -> usize {
        self.live.len() + self.half_open.entries.len()
    }

    /// When to look for deadlines that have passed: none is found before.
    pub(crate) fn next_deadline(&self) -> Time {
        let half_open = self.half_open.entries.next_due();
        self.live.next_due().min(self.closed.next_due()).min(half_open)
    }

    /// Asks for where a connection with this hash is looked up first, and for where connections and timers are.
    #[inline]
    pub(crate) fn prefetch_index(&self, hash: FlowHash) {
        self.index.prefetch(tag_of(hash));
        prefetch_lines_for_write(&self.live, size_of::<Slab<Entry<S>>>().div_ceil(64));
    }

    /// The slot that a connection with this hash has, if there is one; to be called when the index is here. Asks for what leads to the
    /// connection, and for its timer.
    #[inline]
    pub(crate) fn prefetch_slot(&self, hash: FlowHash) -> Option<u32> {
        let slot = self.index.candidate(tag_of(hash))?;
        if slot & KIND == 0 {
            self.live.prefetch_chunk(slot);
        }
        Some(slot)
    }

    /// Asks for what a segment touches of the connection in a slot, if that is one of live connections; to be called when what leads
    /// to it is here.
    #[inline]
    pub(crate) fn prefetch_entry(&self, slot: u32) {
        self.live.prefetch(slot, Entry::<S>::TOUCHED_LINES);
    }

    /// The connection whose packets have this key, if it is the live one in `slot`; otherwise as [`Connections::find`].
    #[inline]
    pub(crate) fn find_at(&mut self, slot: u32, key: &FlowKey, hash: FlowHash) -> Found<'_, S> {
        match self.live.get(slot).is_some_and(|entry| is_same(&entry.key, key)) {
            true => self.get(slot),
            false => self.find(key, hash),
        }
    }

    /// The connection whose packets have this key.
    pub(crate) fn find(&mut self, key: &FlowKey, hash: FlowHash) -> Found<'_, S> {
        let Connections { live, half_open, closed, .. } = self;
        let has = |slot: u32| match slot & KIND {
            0 => live.get(slot).is_some_and(|entry| is_same(&entry.key, key)),
            HALF_OPEN => {
                half_open.entries.get(slot & !KIND).is_some_and(|entry| is_same(&entry.key, key))
            }
            _ => closed.get(slot & !CLOSED).is_some_and(|entry| is_same(&entry.key, key)),
        };
        match self.index.find(tag_of(hash), has) {
            Some(slot) => self.get(slot),
            None => Found::Nothing,
        }
    }

    /// The connection in a slot.
    pub(crate) fn get(&mut self, slot: u32) -> Found<'_, S> {
        let found = match slot & KIND {
            0 => self.live.get_mut(slot).map(|entry| Found::Live(slot, entry)),
            HALF_OPEN => self
                .half_open
                .entries
                .get_mut(slot & !KIND)
                .map(|entry| Found::HalfOpen(slot, entry)),
            _ => self.closed.get_mut(slot & !CLOSED).map(|entry| Found::Closed(slot, entry)),
        };
        found.unwrap_or(Found::Nothing)
    }

    /// The name of the connection in a slot.
    pub(crate) fn id(&self, slot: u32) -> ConnectionId {
        ConnectionId { shard: self.shard, slot, generation: self.live.generation(slot) }
    }

    fn is_here(&self, id: ConnectionId) -> bool {
        (self.shard, self.live.generation(id.slot)) == (id.shard, id.generation)
    }

    /// The connection of this name, if it is there still and not in TIME-WAIT.
    pub(crate) fn live_mut(&mut self, id: ConnectionId) -> Option<&mut Entry<S>> {
        if !self.is_here(id) {
            return None;
        }
        self.live.get_mut(id.slot)
    }

    /// Two different connections.
    pub(crate) fn pair_mut(&mut self, ids: [ConnectionId; 2]) -> Option<[&mut Entry<S>; 2]> {
        if !ids.iter().all(|id| self.is_here(*id)) {
            return None;
        }
        self.live.pair_mut(ids.map(|id| id.slot))
    }

    /// Enters a connection whose key is not here.
    pub(crate) fn insert(&mut self, entry: Entry<S>) -> u32 {
        let tag = entry.tag;
        let slot = self.live.insert(entry);
        self.index.insert(tag, slot);
        slot
    }

    /// Enters a half-open connection whose key is not here.
    pub(crate) fn insert_half_open(&mut self, entry: HalfOpenEntry) -> u32 {
        let tag = entry.tag;
        let slot = self.half_open.insert(entry) | HALF_OPEN;
        self.index.insert(tag, slot);
        slot
    }

    /// The half-open connection that began first, and its slot.
    pub(crate) fn oldest_half_open(&self) -> Option<(u32, &HalfOpenEntry)> {
        let (place, entry) = self.half_open.oldest()?;
        Some((place | HALF_OPEN, entry))
    }

    /// Takes a half-open connection out.
    pub(crate) fn take_half_open(&mut self, slot: u32) -> Option<HalfOpenEntry> {
        let entry = self.half_open.remove(slot & !HALF_OPEN)?;
        self.index.remove(entry.tag, slot);
        Some(entry)
    }

    /// Puts what is left of a closed connection in its place.
    pub(crate) fn retire(&mut self, slot: u32, stub: TimeWait) {
        if let Some(entry) = self.take(slot) {
            let Entry { key, tag, device, .. } = entry;
            let at = stub.deadline();
            let place = self.closed.insert(ClosedEntry { key, stub, tag, device });
            self.index.insert(tag, place | CLOSED);
            self.closed.arm(place, at);
        }
    }

    /// Takes a connection, or what is left of it, out.
    pub(crate) fn remove(&mut self, slot: u32) {
        if slot & KIND == 0 {
            self.take(slot);
        } else if let Some(entry) = self.closed.remove(slot & !CLOSED) {
            self.index.remove(entry.tag, slot);
        }
    }

    fn take(&mut self, slot: u32) -> Option<Entry<S>> {
        let mut entry = self.live.remove(slot)?;
        self.spares.take_back(&mut entry.tcp);
        self.index.remove(entry.tag, slot);
        if self.live.len() == 0 {
            self.spares.rest();
        }
        Some(entry)
    }

    /// Has the connection in a slot called at `at`, and no earlier than that.
    #[inline]
    pub(crate) fn arm(&mut self, slot: u32, at: Time) {
        match slot & KIND {
            0 => self.live.arm(slot, at),
            HALF_OPEN => self.half_open.entries.arm(slot & !KIND, at),
            _ => self.closed.arm(slot & !KIND, at),
        }
    }

    /// A connection whose deadline has come by `now`. It has none then, until it is armed again.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<u32> {
        let closed = || self.closed.pop_due(now).map(|place| place | CLOSED);
        let half_open = || self.half_open.entries.pop_due(now).map(|place| place | HALF_OPEN);
        self.live.pop_due(now).or_else(closed).or_else(half_open)
    }

    /// Places of which [`Connections::look`] shows what they have: a connection, a half-open one, a closed one, or several of these.
    pub(crate) fn places(&self) -> usize {
        self.live.places().max(self.closed.places()).max(self.half_open.entries.places())
    }

    /// Shows the connections in `count` places from `first` on, half-open ones and those in TIME-WAIT included: key, state, what the
    /// protocol knows, and when something last went either way.
    pub(crate) fn look(
        &self,
        first: usize,
        count: usize,
        mut see: impl FnMut(&FlowKey, State, Option<Info>, Option<Time>),
    ) {
        for place in first..first + count {
            let place = place as u32;
            if let Some(entry) = self.live.get(place) {
                let info = entry.tcp.info();
                see(&entry.key, info.state, Some(info), Some(entry.active));
            }
            if let Some(HalfOpenEntry { key, tcp, .. }) = self.half_open.entries.get(place) {
                see(key, State::SynReceived, None, Some(tcp.sent_at()));
            }
            if let Some(closed) = self.closed.get(place) {
                see(&closed.key, State::TimeWait, None, None);
            }
        }
    }

    /// The slots with connections that are neither half-open nor closed.
    pub(crate) fn live_slots(&self) -> impl Iterator<Item = u32> {
        self.live.taken()
    }

    /// The slots with half-open connections.
    pub(crate) fn half_open_slots(&self) -> impl Iterator<Item = u32> {
        self.half_open.entries.taken().map(|place| place | HALF_OPEN)
    }

    /// The live connection in a slot, for its turn.
    #[inline]
    pub(crate) fn live_in(&mut self, slot: u32) -> Option<LiveConnection<'_, S>> {
        let Connections { shard, live, spares, .. } = self;
        Some(LiveConnection { shard: *shard, placed: live.get_placed(slot)?, spares })
    }
}

/// Whether two keys are the same. For two words it needs no call.
#[inline]
fn is_same(one: &FlowKey, other: &FlowKey) -> bool {
    let (a, b) = (one.raw(), other.raw());
    match (one.family(), other.family()) {
        (Family::V4, Family::V4) => a[0] == b[0] && a[1] == b[1],
        _ => one == other,
    }
}
