//! The states of several flows, which may be of several tables: what a fast path works with that goes through a burst function by
//! function.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use rheostat_base::{DeviceId, ShardId, Time};
use rheostat_packet::FlowKey;

use super::detached::DetachedFlow;
use super::entry::Hot;
use super::flow::FlowMut;
use super::layout::{Handle, TimePlace};
use super::{FlowTable, Probe};
use crate::Shard;
use crate::timer_wheel;

/// How many flows are open at once at most.
pub const OPEN_FLOWS: usize = 16;

/// The places of some functions' states in the entries of one layout, of which only the set is known.
#[derive(Clone, Copy, Debug)]
pub struct StateBits {
    layout: u64,
    bits: u8,
}

impl StateBits {
    /// The place of one state.
    pub fn of<T>(handle: Handle<T>) -> StateBits {
        StateBits { layout: handle.layout(), bits: handle.bit() }
    }

    /// The bits of the states in entries of this layout. Panics when the places are of another.
    #[inline(always)]
    pub(super) fn bits_of(self, layout: u64) -> u8 {
        assert!(self.layout == layout, "places of another layout than the table's");
        self.bits
    }

    /// These places and those of `other`.
    ///
    /// # Panics
    /// When they are of different layouts, or have a state in common.
    #[must_use]
    pub fn and(self, other: StateBits) -> StateBits {
        assert!(self.layout == other.layout, "places of two layouts");
        assert!(self.bits & other.bits == 0, "two functions have one state");
        StateBits { bits: self.bits | other.bits, ..self }
    }
}

/// The entries of some flows, each of which has all states of a set.
pub struct EntryColumn<'a> {
    entries: [NonNull<u8>; OPEN_FLOWS],
    len: usize,
    set: StateBits,
    flows: PhantomData<&'a mut FlowTable>,
}

/// One function's states of these flows.
#[derive(Debug)]
pub struct StateColumn<'c, T> {
    entries: &'c [NonNull<u8>],
    handle: Handle<T>,
}

/// One function's states of these flows, to change.
#[derive(Debug)]
pub struct StateColumnMut<'c, T> {
    entries: &'c mut [NonNull<u8>],
    handle: Handle<T>,
}

impl<'a> EntryColumn<'a> {
    fn new(set: StateBits) -> EntryColumn<'a> {
        let entries = [NonNull::dangling(); OPEN_FLOWS];
        EntryColumn { entries, len: 0, set, flows: PhantomData }
    }

    /// The entry of a flow that is away from its table, if all states are initialised.
    ///
    /// # Panics
    /// When the set is of another layout than the table's.
    pub fn detached(flow: &'a mut DetachedFlow, set: StateBits) -> Option<EntryColumn<'a>> {
        let mut column = EntryColumn::new(set);
        column.entries[0] = flow.entry_with(set.layout, set.bits)?;
        column.len = 1;
        Some(column)
    }

    /// The entry of a flow, if all states are initialised.
    ///
    /// # Panics
    /// When the set is of another layout than the table's.
    pub fn one(flow: FlowMut<'a>, set: StateBits) -> Option<EntryColumn<'a>> {
        let mut column = EntryColumn::new(set);
        column.push(&flow).then_some(column)
    }

    /// Appends the entry of a flow, if all states are initialised. Nothing else may have access to these as long as the column
    /// lives.
    #[inline(always)]
    fn push(&mut self, flow: &FlowMut<'_>) -> bool {
        let bits = self.set.bits_of(flow.layout());
        if flow.initialised() & bits != bits || self.len == OPEN_FLOWS {
            return false;
        }
        self.entries[self.len] = flow.entry();
        self.len += 1;
        true
    }

    /// How many flows there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Leaves out all flows from this one on.
    #[inline(always)]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    #[inline(always)]
    fn check<T>(&self, handle: Handle<T>) {
        let is_one = self.set.layout == handle.layout() && self.set.bits & handle.bit() != 0;
        assert!(is_one, "a state that the flows were not opened for");
    }

    /// As [`FlowMut::time`], of the flow at this place.
    #[inline(always)]
    pub fn time(&self, at: usize, place: TimePlace) -> Time {
        // SAFETY: the entry is of the layout that the set is of, as `push` made sure; the flows are borrowed alone by the column.
        unsafe { place.read(self.entries[..self.len][at], self.set.layout) }
    }

    /// As [`FlowMut::set_time`], of the flow at this place.
    #[inline(always)]
    pub fn set_time(&mut self, at: usize, place: TimePlace, time: Time) {
        // SAFETY: as in `time`; `&mut self` makes the access exclusive.
        unsafe { place.write(self.entries[..self.len][at], self.set.layout, time) };
    }

    /// One function's states.
    ///
    /// # Panics
    /// When its place is not one of the set.
    #[inline(always)]
    pub fn states<T: Send + 'static>(&self, handle: Handle<T>) -> StateColumn<'_, T> {
        self.check(handle);
        StateColumn { entries: &self.entries[..self.len], handle }
    }

    /// One function's states, to change.
    ///
    /// # Panics
    /// When its place is not one of the set.
    #[inline(always)]
    pub fn states_mut<T: Send + 'static>(&mut self, handle: Handle<T>) -> StateColumnMut<'_, T> {
        self.check(handle);
        StateColumnMut { entries: &mut self.entries[..self.len], handle }
    }
}

impl<T: Send + 'static> StateColumn<'_, T> {
    /// The state of the flow at this place.
    ///
    /// # Panics
    /// When there are fewer flows.
    #[inline(always)]
    pub fn get(&self, at: usize) -> &T {
        // SAFETY: the entry is of the layout that the handle is of, and the state is initialised, as `push` and `check` made sure.
        // The flows are borrowed alone by the column, which is borrowed here: nothing changes states meanwhile.
        unsafe { self.entries[at].add(self.handle.offset()).cast().as_ref() }
    }
}

impl<T: Send + 'static> StateColumnMut<'_, T> {
    /// As [`FlowMut::set_time`], of the flow at this place.
    #[inline(always)]
    pub fn set_time(&mut self, at: usize, place: TimePlace, time: Time) {
        // SAFETY: the entry is of the layout that the handle is of, as `check` made sure; no state lies at the place, and the flows
        // are borrowed alone by the column.
        unsafe { place.write(self.entries[at], self.handle.layout(), time) };
    }

    /// The state of the flow at this place.
    ///
    /// # Panics
    /// When there are fewer flows.
    #[inline(always)]
    pub fn get_mut(&mut self, at: usize) -> &mut T {
        // SAFETY: as for `StateColumn::get`; the column is borrowed alone, and so is this value, so that no other reference to a
        // state lives, also where two entries of the column are one.
        unsafe { self.entries[at].add(self.handle.offset()).cast().as_mut() }
    }
}

/// Flows of the shards of a lane, no two the same, whose states are in use. Their deadlines can be changed beside them.
pub struct OpenFlows<'a> {
    shards: &'a mut [Option<Box<Shard>>],
    places: [(ShardId, u32); OPEN_FLOWS],
    /// Marks of the flows that are open: flows with different marks are different ones.
    marks: [u64; 4],
    entries: EntryColumn<'a>,
}

impl<'a> OpenFlows<'a> {
    /// No flow yet. All that follow have the states of this set.
    #[inline(always)]
    pub fn new(shards: &'a mut [Option<Box<Shard>>], set: StateBits) -> OpenFlows<'a> {
        let places = [(ShardId(0), 0); OPEN_FLOWS];
        OpenFlows { shards, places, marks: [0; 4], entries: EntryColumn::new(set) }
    }

    /// Opens the flow that a packet of time `now` belongs to, if `probe` has found it, it has not ended, all states are there, it is
    /// not one of those that are open (one of 256 others may be taken for one of these), and the packet is not late. Notes its
    /// arrival, as [`FlowMut::note_arrival`]: to note it once more, for a packet that is not processed here, changes nothing.
    ///
    /// # Panics
    /// When the set is of another layout than the table's.
    #[inline(always)]
    pub fn push(
        &mut self,
        shard: ShardId,
        key: &FlowKey,
        probe: Probe,
        now: Time,
        (forward, device, stamp): (bool, DeviceId, u32),
    ) -> bool {
        let of_shard = self.shards.get_mut(shard.index()).and_then(Option::as_deref_mut);
        let flow = of_shard.and_then(|of| of.table.probed(key, probe));
        let Some(mut flow) = flow else { return false };
        let (index, len) = (flow.index(), self.entries.len);
        let mark = index ^ u32::from(shard.0).wrapping_mul(37);
        let word = &mut self.marks[(mark >> 6) as usize & 3];
        if flow.is_expired(now) || *word & 1 << (mark & 63) != 0 || !self.entries.push(&flow) {
            return false;
        }
        if flow.note_arrival(forward, device, stamp) {
            self.entries.truncate(len);
            return false;
        }
        *word |= 1 << (mark & 63);
        self.places[len] = (shard, index);
        true
    }

    /// The states of the flows.
    #[inline(always)]
    pub fn entries(&mut self) -> &mut EntryColumn<'a> {
        &mut self.entries
    }

    /// The states of the flows, and what services keep for their shards beside the flows.
    #[inline(always)]
    pub fn split(&mut self) -> (&mut EntryColumn<'a>, ShardLocals<'_>) {
        (&mut self.entries, ShardLocals { shards: &mut *self.shards })
    }

    /// Sets the deadline of the flow at this place, as [`FlowMut::set_deadline`].
    ///
    /// # Panics
    /// When there are fewer flows.
    #[inline(always)]
    pub fn set_deadline(&mut self, at: usize, deadline: Time) {
        let mut entry = self.entries.entries[..self.entries.len][at].cast::<Hot>();
        // SAFETY: the entry is one of a table that is borrowed alone, whose first bytes are always a valid `Hot`; no state lies there.
        let hot = unsafe { entry.as_mut() };
        let mut ending = hot.ending;
        let is_earlier = ending.set_deadline(deadline);
        hot.ending = ending;
        if is_earlier {
            self.arm(at);
        }
    }

    /// Lets the timer wheel find the flow at this place at its deadline, which has become earlier.
    #[cold]
    fn arm(&mut self, at: usize) {
        let (shard, index) = self.places[at];
        let of_shard = self.shards.get_mut(shard.index()).and_then(Option::as_deref_mut);
        if let Some(of_shard) = of_shard {
            let mut flow = FlowMut::new(&mut of_shard.table, index);
            flow.arm(timer_wheel::tick(flow.deadline()));
        }
    }
}

/// What services keep for the shards of a lane, while flows of these are open.
pub struct ShardLocals<'s> {
    // Nothing but `Shard::local` of these may be touched: the tables' entries are in use.
    shards: &'s mut [Option<Box<Shard>>],
}

impl ShardLocals<'_> {
    /// What the service keeps for a shard, if the lane has it.
    ///
    /// # Panics
    /// When the shard was made with something of another type.
    #[inline]
    pub fn get_mut<L: Any>(&mut self, shard: ShardId) -> Option<&mut L> {
        let shard = self.shards.get_mut(shard.index())?.as_deref_mut()?;
        Some(shard.split().1)
    }
}

impl fmt::Debug for ShardLocals<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardLocals").finish_non_exhaustive()
    }
}

impl fmt::Debug for EntryColumn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryColumn").field("len", &self.len).finish_non_exhaustive()
    }
}

impl fmt::Debug for OpenFlows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFlows").field("entries", &self.entries).finish_non_exhaustive()
    }
}
