//! The connections of a shard: found by their packets' key, and owned by whichever lane owns the shard.

use std::sync::Arc;

use rheostat_base::sync::prefetch::prefetch_for_write;
use rheostat_base::{DeviceId, ShardId, Time};
use rheostat_packet::{Family, FlowKey};
use rheostat_state::{DeadlineWheel, FlowHash};
use rheostat_tcp::{Info, MemoryBudget, TimeWait};

use crate::entry::Entry;
use crate::index::{Index, tag_of};

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
pub(crate) struct Connections<S> {
    shard: ShardId,
    /// What they may take.
    memory: Arc<MemoryBudget>,
    slots: Vec<Slot<S>>,
    /// Slots by the hash of the keys in them.
    index: Index,
    free: Vec<u32>,
    /// When slots want to be called.
    deadlines: DeadlineWheel,
    /// Slots with a connection, without those in TIME-WAIT.
    live: usize,
    time_wait: usize,
}

/// A place for a connection.
struct Slot<S> {
    generation: u32,
    tag: u32,
    state: SlotState<S>,
}

enum SlotState<S> {
    Free,
    Live(Box<Entry<S>>),
    Closed(Box<ClosedEntry>),
}

/// What stays of a connection in TIME-WAIT.
pub(crate) struct ClosedEntry {
    pub(crate) key: FlowKey,
    pub(crate) device: DeviceId,
    pub(crate) stub: TimeWait,
}

/// What can be seen of a connection, or of what is left of one.
pub(crate) struct Seen<'a> {
    pub(crate) key: &'a FlowKey,
    pub(crate) info: Option<Info>,
    /// When something last went either way.
    pub(crate) active: Option<Time>,
}

/// What a key leads to.
pub(crate) enum Found<'a, S> {
    Nothing,
    Live(u32, &'a mut Entry<S>),
    Closed(u32, &'a mut ClosedEntry),
}

impl<S> Connections<S> {
    /// Of a shard without connections.
    pub(crate) fn new(shard: ShardId, memory: Arc<MemoryBudget>) -> Connections<S> {
        Connections {
            shard,
            memory,
            slots: Vec::new(),
            index: Index::default(),
            free: Vec::new(),
            deadlines: DeadlineWheel::new(),
            live: 0,
            time_wait: 0,
        }
    }

    pub(crate) fn shard(&self) -> ShardId {
        self.shard
    }

    /// What the shard's connections may take for data.
    pub(crate) fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// Connections that are not closed.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// When to look for deadlines that have passed: none is found before.
    pub(crate) fn next_deadline(&self) -> Time {
        self.deadlines.next_due().unwrap_or(Time::NEVER)
    }

    /// Asks for where a connection with this hash is looked up first.
    #[inline]
    pub(crate) fn prefetch_index(&self, hash: FlowHash) {
        self.index.prefetch(tag_of(hash));
    }

    /// Asks for the slot that a connection with this hash has, if there is one; to be called when the index is here.
    #[inline]
    pub(crate) fn prefetch_slot(&self, hash: FlowHash) -> Option<u32> {
        let slot = self.index.candidate(tag_of(hash))?;
        prefetch_for_write(self.slots.get(slot as usize)?);
        self.deadlines.prefetch(slot);
        Some(slot)
    }

    /// Asks for what a segment touches of the connection in a slot; to be called when the slot is here.
    #[inline]
    pub(crate) fn prefetch_entry(&self, slot: u32) {
        if let Some(Slot { state: SlotState::Live(entry), .. }) = self.slots.get(slot as usize) {
            entry.prefetch();
        }
    }

    /// The connection whose packets have this key.
    pub(crate) fn find(&mut self, key: &FlowKey, hash: FlowHash) -> Found<'_, S> {
        let slots = &self.slots;
        let found = self.index.find(tag_of(hash), |slot| slots[slot as usize].has(key));
        let Some(slot) = found else { return Found::Nothing };
        self.get(slot)
    }

    /// The connection in a slot.
    pub(crate) fn get(&mut self, slot: u32) -> Found<'_, S> {
        match self.slots.get_mut(slot as usize).map(|found| &mut found.state) {
            None | Some(SlotState::Free) => Found::Nothing,
            Some(SlotState::Live(entry)) => Found::Live(slot, entry),
            Some(SlotState::Closed(closed)) => Found::Closed(slot, closed),
        }
    }

    /// The name of the connection in a slot.
    pub(crate) fn id(&self, slot: u32) -> ConnectionId {
        let generation = self.slots.get(slot as usize).map_or(0, |place| place.generation);
        ConnectionId { shard: self.shard, slot, generation }
    }

    /// The connection of this name, if it is there still and not in TIME-WAIT.
    pub(crate) fn live_mut(&mut self, id: ConnectionId) -> Option<&mut Entry<S>> {
        let place = self.slots.get_mut(id.slot as usize)?;
        match &mut place.state {
            SlotState::Live(entry)
                if (self.shard, place.generation) == (id.shard, id.generation) =>
            {
                Some(entry)
            }
            _ => None,
        }
    }

    /// Two different connections.
    pub(crate) fn pair_mut(&mut self, ids: [ConnectionId; 2]) -> Option<[&mut Entry<S>; 2]> {
        self.live_mut(ids[0])?;
        self.live_mut(ids[1])?;
        let places = self.slots.get_disjoint_mut(ids.map(|id| id.slot as usize)).ok()?;
        let [SlotState::Live(first), SlotState::Live(second)] =
            places.map(|place| &mut place.state)
        else {
            return None;
        };
        Some([first, second])
    }

    /// Enters a connection whose key is not here.
    pub(crate) fn insert(&mut self, entry: Entry<S>, hash: FlowHash) -> u32 {
        let tag = tag_of(hash);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, tag, state: SlotState::Free });
            self.slots.len() as u32 - 1
        });
        let place = &mut self.slots[slot as usize];
        (place.tag, place.state) = (tag, SlotState::Live(Box::new(entry)));
        self.live += 1;
        self.index.insert(tag, slot);
        slot
    }

    /// Puts what is left of a closed connection in its place.
    pub(crate) fn retire(&mut self, slot: u32, stub: TimeWait) {
        let place = &mut self.slots[slot as usize];
        if let SlotState::Live(entry) = &place.state {
            let closed = ClosedEntry { key: entry.key, device: entry.device, stub };
            let at = closed.stub.deadline();
            place.state = SlotState::Closed(Box::new(closed));
            self.live -= 1;
            self.time_wait += 1;
            self.deadlines.arm(slot, at);
        }
    }

    /// Takes a connection, or what is left of it, out.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        match place.state {
            SlotState::Free => return,
            SlotState::Live(_) => self.live -= 1,
            SlotState::Closed(_) => self.time_wait -= 1,
        }
        place.state = SlotState::Free;
        place.generation = place.generation.wrapping_add(1);
        self.deadlines.disarm(slot);
        self.index.remove(place.tag, slot);
        self.free.push(slot);
    }

    /// Has the connection in a slot called at `at`, and no earlier than that.
    #[inline]
    pub(crate) fn arm(&mut self, slot: u32, at: Time) {
        if self.slots.get(slot as usize).is_some_and(|place| !place.is_free()) {
            self.deadlines.arm(slot, at);
        }
    }

    /// A connection whose deadline has come by `now`. It has none then, until it is armed again.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<u32> {
        self.deadlines.poll(now)
    }

    /// Places, those that are free included.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    /// Shows the connections in `count` places from `first` on, those in TIME-WAIT included.
    pub(crate) fn look(&self, first: usize, count: usize, mut see: impl FnMut(Seen<'_>)) {
        for place in self.slots.iter().skip(first).take(count) {
            match &place.state {
                SlotState::Free => {}
                SlotState::Live(entry) => see(Seen {
                    key: &entry.key,
                    info: Some(entry.tcp.info()),
                    active: Some(entry.active),
                }),
                SlotState::Closed(closed) => {
                    see(Seen { key: &closed.key, info: None, active: None });
                }
            }
        }
    }

    /// The slots with connections that are not closed.
    pub(crate) fn live_slots(&self) -> impl Iterator<Item = u32> {
        let is_live = |(_, place): &(usize, &Slot<S>)| matches!(place.state, SlotState::Live(_));
        self.slots.iter().enumerate().filter(is_live).map(|(slot, _)| slot as u32)
    }
}

impl<S> Slot<S> {
    fn is_free(&self) -> bool {
        matches!(self.state, SlotState::Free)
    }

    #[inline]
    fn has(&self, key: &FlowKey) -> bool {
        match &self.state {
            SlotState::Free => false,
            SlotState::Live(entry) => is_same(&entry.key, key),
            SlotState::Closed(closed) => is_same(&closed.key, key),
        }
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
