//! The connections of a shard: found by their packets' key, and owned by whichever lane owns the shard.

use hashbrown::HashTable;
use rheostat_base::{DeviceId, ShardId, Time};
use rheostat_packet::FlowKey;
use rheostat_state::FlowHash;
use rheostat_tcp::{Info, TimeWait};

use crate::deadlines::{Armed, Deadlines};
use crate::entry::Entry;

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
    slots: Vec<Slot<S>>,
    /// Slots by the hash of the keys in them.
    index: HashTable<u32>,
    free: Vec<u32>,
    deadlines: Deadlines,
    /// Slots with a connection, without those in TIME-WAIT.
    live: usize,
    time_wait: usize,
}

/// A place for a connection.
struct Slot<S> {
    generation: u32,
    armed: Armed,
    hash: FlowHash,
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
    pub(crate) fn new(shard: ShardId) -> Connections<S> {
        Connections {
            shard,
            slots: Vec::new(),
            index: HashTable::new(),
            free: Vec::new(),
            deadlines: Deadlines::default(),
            live: 0,
            time_wait: 0,
        }
    }

    pub(crate) fn shard(&self) -> ShardId {
        self.shard
    }

    /// Connections that are not closed.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// The earliest deadline of any.
    pub(crate) fn next_deadline(&self) -> Time {
        self.deadlines.next()
    }

    /// The connection whose packets have this key.
    pub(crate) fn find(&mut self, key: &FlowKey, hash: FlowHash) -> Found<'_, S> {
        let slots = &self.slots;
        let found = self.index.find(hash.0, |slot| slots[*slot as usize].has(key));
        let Some(&slot) = found else { return Found::Nothing };
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
        let slot = self.free.pop().unwrap_or_else(|| {
            let (generation, armed) = (0, Armed::NEVER);
            self.slots.push(Slot { generation, armed, hash, state: SlotState::Free });
            self.slots.len() as u32 - 1
        });
        let place = &mut self.slots[slot as usize];
        place.hash = hash;
        place.state = SlotState::Live(Box::new(entry));
        self.live += 1;
        let slots = &self.slots;
        self.index.insert_unique(hash.0, slot, |slot| slots[*slot as usize].hash.0);
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
            self.deadlines.arm(slot, at, &mut place.armed);
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
        place.armed = Armed::NEVER;
        if let Ok(entry) = self.index.find_entry(place.hash.0, |other| *other == slot) {
            entry.remove();
        }
        self.free.push(slot);
    }

    /// Sees to it that the connection in a slot comes at `at` at the latest.
    pub(crate) fn arm(&mut self, slot: u32, at: Time) {
        let Some(place) = self.slots.get_mut(slot as usize) else { return };
        self.deadlines.arm(slot, at, &mut place.armed);
        if self.deadlines.is_bloated(self.live + self.time_wait) {
            let armed = |(slot, place): (usize, &Slot<S>)| (slot as u32, place.armed);
            self.deadlines.rebuild(self.slots.iter().enumerate().map(armed));
        }
    }

    /// A connection whose deadline may have come by `now`. It has none then, until it is armed again.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<u32> {
        while let Some((slot, at)) = self.deadlines.pop(now) {
            let place = self.slots.get_mut(slot as usize);
            if place.is_some_and(|place| Deadlines::is_of(at, &mut place.armed)) {
                return Some(slot);
            }
        }
        None
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
    fn has(&self, key: &FlowKey) -> bool {
        match &self.state {
            SlotState::Free => false,
            SlotState::Live(entry) => entry.key == *key,
            SlotState::Closed(closed) => closed.key == *key,
        }
    }
}
