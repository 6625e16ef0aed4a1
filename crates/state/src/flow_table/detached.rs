//! Flows that another lane works on while their shard stays: the table gives the lane a [`DetachedFlow`], and from then on leaves
//! the entry's first line and its states alone, until it gets that value back.
//!
//! # Who may touch which bytes
//!
//! | bytes | table | holder of the [`DetachedFlow`] |
//! |---|---|---|
//! | index | reads and writes | nothing |
//! | key, in the first line and behind the states | reads | nothing |
//! | ending (deadline, kind, marks) | reads, atomically: an old [`Probe`](super::Probe) may lead to it | writes, atomically |
//! | stamps, devices, states | nothing | reads and writes |
//! | links, generation, partner, slot | reads and writes | nothing |
//!
//! The slots of the index that lead to the flow are marked, so that lookups do not read the entry at all. They compare keys with
//! copies that the table keeps for itself while the flow is away, and so find the right flow, whatever tags say. An entry is one
//! byte no larger for all this, and neither is a line of the index.
//!
//! A detached flow is out of the timer wheel. Its deadline is not known to the table, which keeps a bound instead: the flow does not
//! end before it ([`FlowTable::note_sent`]).

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::FlowKey;

use super::arena::SharedArena;
use super::entries::WheelLinks;
use super::entry::{self, EntryKind, Hot, NO_PARTNER, load_ending, store_ending};
use super::{FlowId, FlowMut, FlowTable, Probe, StateRefs, StateSet};
use crate::FlowHash;
use crate::timer_wheel::{self, UNARMED};

/// A flow whose table leaves it to the holder: its states, its deadline and its order of arrival. To be given back
/// ([`FlowTable::attach`]); what is dropped instead takes the states along, and the flow stays detached for ever.
pub struct DetachedFlow {
    entry: NonNull<u8>,
    index: u32,
    /// The bits of the states that are initialised.
    initialised: u8,
    /// Keeps the mapping alive.
    shared: Arc<SharedArena>,
}

// SAFETY: the states are `Send` (`StateLayout::reserve` asks for it), and nothing else reads or writes what the value accesses, but
// for the ending, which is accessed atomically.
unsafe impl Send for DetachedFlow {}

/// A detached flow as its table knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detached {
    /// The flow.
    pub flow: FlowId,
    /// The number that [`FlowTable::detach`] was called with.
    pub number: u32,
    /// The flow does not end before this.
    pub bound: Time,
}

/// The detached flows of a table, by the entries that have their keys.
#[derive(Default)]
pub(super) struct DetachedFlows {
    keys: HashMap<u32, Keys, BuildHasherDefault<NumberHasher>>,
    flows: usize,
    /// No flow ends before this.
    earliest: Time,
}

/// The keys in one entry.
struct Keys {
    keys: [FlowKey; 2],
    /// The entry of the flow.
    flow: u32,
    number: u32,
    /// The flow does not end before this.
    bound: Time,
}

impl DetachedFlows {
    /// The number, the bound and the keys of the flow in entry `index`.
    pub(super) fn of_flow(&self, index: u32) -> Option<(u32, Time, [FlowKey; 2])> {
        let keys = self.keys.get(&index).filter(|keys| keys.flow == index)?;
        Some((keys.number, keys.bound, keys.keys))
    }

    /// The keys in entry `index`, of whichever flow.
    pub(super) fn keys_at(&self, index: u32) -> Option<[FlowKey; 2]> {
        self.keys.get(&index).map(|keys| keys.keys)
    }
}

/// Spreads small numbers. They are the table's own, so nobody can choose them.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl FlowTable {
    /// Leaves a flow to another lane, under a number that is unique among the detached flows of its shard. `None` when it has ended,
    /// is detached, or lacks a state of its layout. The flow counts as live and can be found ([`FlowTable::find`],
    /// [`FlowTable::detached`]), but nothing of it can be read or changed, it is not expired, removed or evicted.
    ///
    /// Takes two insertions into a hash table; to be called between bursts.
    pub fn detach(&mut self, flow: FlowId, number: u32) -> Option<DetachedFlow> {
        let index = self.live(flow)?;
        let states = self.states;
        let one = FlowMut::new(self, index);
        if one.initialised() & states != states {
            return None;
        }
        let (key, alias, bound) = (one.key(), one.alias(), one.deadline());
        let slot = self.entries.cold(index).slot;
        if slot != UNARMED {
            self.wheel.disarm(&mut WheelLinks(&mut self.entries), index);
            self.entries.cold_mut(index).slot = UNARMED;
        }
        self.set_detached(index, (&key, alias.as_ref()), true);
        let keys = |keys| Keys { keys, flow: index, number, bound };
        let detached = self.detached.get_or_insert_default();
        detached.earliest = if detached.flows == 0 { bound } else { detached.earliest.min(bound) };
        detached.flows += 1;
        let partner = self.entries.cold(index).partner;
        let own = match partner {
            NO_PARTNER => [key, alias.unwrap_or(FlowKey::NONE)],
            partner => {
                let alias = alias.unwrap_or(FlowKey::NONE);
                detached.keys.insert(partner, keys([alias, FlowKey::NONE]));
                [key, FlowKey::NONE]
            }
        };
        detached.keys.insert(index, keys(own));
        let initialised = std::mem::take(&mut self.entries.cold_mut(index).initialised);
        let (entry, shared) = (self.entries.address(index), self.shared.clone());
        Some(DetachedFlow { entry, index, initialised, shared })
    }

    /// Takes a flow back.
    ///
    /// # Panics
    /// When it is another table's.
    pub fn attach(&mut self, flow: DetachedFlow) -> FlowId {
        let index = flow.index;
        let is_own = index < self.entries.used() && self.entries.address(index) == flow.entry;
        assert!(is_own, "a flow goes back to the table that it came from");
        let flow = std::mem::ManuallyDrop::new(flow);
        // SAFETY: the value is not used again, nor dropped, so its share moves out.
        drop(unsafe { std::ptr::read(&raw const flow.shared) });
        let detached = self.detached.as_mut().expect("a detached flow is known");
        detached.flows -= 1;
        detached.keys.remove(&index).expect("a detached flow is known");
        self.entries.cold_mut(index).initialised = flow.initialised;
        self.entries.set_detached(index, false);
        let partner = self.entries.cold(index).partner;
        if self.entries.hot(index).ending.kind() == EntryKind::V6 && partner != NO_PARTNER {
            let detached = self.detached.as_mut().expect("as above");
            detached.keys.remove(&partner).expect("both keys of a detached flow are known");
            self.entries.set_detached(partner, false);
        }
        let mut one = FlowMut::new(self, index);
        let (key, alias, deadline) = (one.key(), one.alias(), one.deadline());
        if deadline != Time::NEVER {
            one.arm(timer_wheel::tick(deadline));
        }
        self.set_detached(index, (&key, alias.as_ref()), false);
        self.id(index)
    }

    /// The detached flow that `key` belongs to; `hash` is the key's.
    #[inline]
    pub fn detached(&self, hash: FlowHash, key: &FlowKey) -> Option<Detached> {
        let detached = self.detached.as_ref().filter(|detached| detached.flows > 0)?;
        let index = self.search_index(hash, key).filter(|index| index & super::DETACHED != 0)?;
        // The entry of the flow itself, whichever key it was found by.
        let &Keys { number, bound, .. } = detached.keys.get(&(index & !super::DETACHED))?;
        Some(Detached { flow: self.id(index), number, bound })
    }

    /// Notes that the holder of a detached flow gets a packet of time `now`, and that the flow does not end before `bound` if it
    /// ends later than it would have, and returns the flow's number. `None`, and nothing is noted, where the probe of the packet
    /// does not lead to a detached flow with this key, or the flow may have ended. Takes one look at a hash table, and none at the
    /// index.
    #[inline]
    pub fn send_probed(
        &mut self,
        key: &FlowKey,
        Probe(candidate): Probe,
        now: Time,
        bound: Time,
    ) -> Option<u32> {
        if candidate & super::DETACHED == 0 {
            return None;
        }
        let index = candidate & !super::DETACHED;
        let detached = self.detached.as_mut()?;
        let of_index = detached.keys.get_mut(&index)?;
        if of_index.flow != index || !of_index.keys.contains(key) || now >= of_index.bound {
            return None;
        }
        of_index.bound = of_index.bound.min(bound);
        detached.earliest = detached.earliest.min(bound);
        Some(of_index.number)
    }

    /// How many flows are detached.
    #[inline]
    pub fn detached_len(&self) -> usize {
        self.detached.as_ref().map_or(0, |detached| detached.flows)
    }

    /// Notes that the holder of a detached flow gets a packet, and that the flow does not end before `bound` if it ends later
    /// than it would have.
    pub fn note_sent(&mut self, Detached { flow, .. }: Detached, bound: Time) {
        let Some(detached) = &mut self.detached else { return };
        if let Some(keys) = detached.keys.get_mut(&flow.index) {
            keys.bound = keys.bound.min(bound);
            detached.earliest = detached.earliest.min(bound);
        }
    }

    /// A detached flow that [`FlowTable::expire`] might end at `now` if it were attached: its bound lies in an earlier tick. Looks at
    /// all detached flows of the table where there may be one.
    pub fn overdue(&mut self, now: Time) -> Option<Detached> {
        let target = self.wheel.reach(now);
        let detached = self.detached.as_mut().filter(|detached| detached.flows > 0)?;
        if timer_wheel::tick(detached.earliest) >= target {
            return None;
        }
        let (index, first) = detached.keys.iter().min_by_key(|(_, keys)| keys.bound)?;
        let bound = first.bound;
        detached.earliest = first.bound;
        let (index, number) =
            (if first.flow == *index { *index } else { first.flow }, first.number);
        let is_due = timer_wheel::tick(detached.earliest) < target;
        is_due.then(|| Detached { flow: self.id(index), number, bound })
    }

    /// The flow that has been evictable for the longest time, if it is detached, so that it cannot be evicted.
    pub fn oldest_evictable_detached(&self) -> Option<Detached> {
        let oldest = self.oldest_evictable()?;
        let &Keys { number, bound, .. } = self.detached.as_ref()?.keys.get(&oldest.index)?;
        Some(Detached { flow: oldest, number, bound })
    }

    /// Marks a flow and the slots of the index that lead to it.
    fn set_detached(&mut self, index: u32, (key, alias): (&FlowKey, Option<&FlowKey>), on: bool) {
        let hasher = self.shared.hasher;
        let found = self.index.set_detached(hasher.hash(key), index, on);
        debug_assert!(found, "a key of a flow is not in the index");
        if let Some(alias) = alias {
            let partner = self.entries.cold(index).partner;
            let entry = if partner == NO_PARTNER { index } else { partner };
            let found = self.index.set_detached(hasher.hash(alias), entry, on);
            debug_assert!(found, "a key of a flow is not in the index");
            self.entries.set_detached(entry, on);
        }
        self.entries.set_detached(index, on);
    }

    /// Whether a detached flow has `key` in entry `index`.
    pub(super) fn is_detached_key(&self, index: u32, key: &FlowKey) -> bool {
        let keys = self.detached.as_ref().and_then(|detached| detached.keys.get(&index));
        *key != FlowKey::NONE && keys.is_some_and(|keys| keys.keys.contains(key))
    }

    /// The entry of the detached flow of which entry `index` has a key.
    pub(super) fn detached_at(&self, index: u32) -> Option<u32> {
        Some(self.detached.as_ref()?.keys.get(&index)?.flow)
    }
}

impl DetachedFlow {
    /// When the flow ends unless a packet comes.
    #[inline]
    pub fn deadline(&self) -> Time {
        // SAFETY: the entry is one of the mapping that `shared` keeps, and this value alone writes its ending, atomically.
        unsafe { load_ending(self.entry) }.deadline()
    }

    /// Whether the deadline has come.
    #[inline]
    pub fn is_expired(&self, now: Time) -> bool {
        self.deadline() <= now
    }

    /// The entry, if all states with these bits are initialised. Panics when they are of another layout than the table's.
    pub(super) fn entry_with(&self, layout: u64, bits: u8) -> Option<NonNull<u8>> {
        assert!(self.shared.layout.id() == layout, "places of another layout than the table's");
        (self.initialised & bits == bits).then_some(self.entry)
    }

    /// The states of a set, if all of them are initialised.
    ///
    /// # Panics
    /// When a handle is of another layout than the table's, or two are of one state.
    #[inline(always)]
    pub fn open<S: StateSet>(&mut self, set: S) -> Option<OpenDetached<'_, StateRefs<'_, S>>> {
        let bits = set.check(self.shared.layout.id());
        if self.initialised & bits != bits {
            return None;
        }
        // SAFETY: the handles are of this layout, and the bits say that the states were written. The table leaves them to this
        // value, which is borrowed alone as long as the references live, and `OpenDetached` touches no state.
        let states = unsafe { set.refs(self.entry) };
        Some(OpenDetached { entry: self.entry, states, flow: PhantomData })
    }
}

impl Drop for DetachedFlow {
    fn drop(&mut self) {
        // SAFETY: the entry is one of this layout, whose states the table leaves to this value; they are not used again.
        unsafe { self.shared.layout.drop_states(self.entry, self.initialised) };
    }
}

impl fmt::Debug for DetachedFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DetachedFlow")
            .field("index", &self.index)
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for DetachedFlows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DetachedFlows").field(&self.flows).finish()
    }
}

/// A detached flow whose states are in use. Its deadline and its order of arrival can be changed beside them.
pub struct OpenDetached<'a, R> {
    entry: NonNull<u8>,
    /// The states.
    pub states: R,
    flow: PhantomData<&'a mut DetachedFlow>,
}

impl<R> OpenDetached<'_, R> {
    /// As [`FlowMut::note_arrival`].
    #[inline(always)]
    pub fn note_arrival(&mut self, forward: bool, device: DeviceId, stamp: u32) -> bool {
        let hot = self.entry.cast::<Hot>().as_ptr();
        // SAFETY: the entry begins with a `Hot`, of which the table reads no stamps and no devices while the flow is detached. No
        // reference to the whole is made, as the table may read the rest.
        let (mut arrived, stamps) =
            unsafe { (entry::EntryArrivals::read(hot), &raw mut (*hot).stamps) };
        let late = arrived.note(forward, device, stamp);
        if !late {
            // SAFETY: as above.
            unsafe {
                stamps.write_unaligned(arrived.stamps);
                (&raw mut (*hot).devices).write_unaligned(arrived.devices);
            }
        }
        late
    }

    /// Sets the deadline, rounded up to a multiple of 256 ns.
    #[inline(always)]
    pub fn set_deadline(&mut self, deadline: Time) {
        // SAFETY: the entry is one of a mapping that the borrowed flow keeps, and the flow's holder alone writes its ending.
        unsafe {
            let mut ending = load_ending(self.entry);
            ending.set_deadline(deadline);
            store_ending(self.entry, ending);
        }
    }
}

impl<R> fmt::Debug for OpenDetached<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenDetached").finish_non_exhaustive()
    }
}
