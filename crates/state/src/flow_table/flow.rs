//! One flow: its deadline, its order of arrival, and the states of the chain's functions.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr::NonNull;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{Family, FlowKey};

use super::FlowTable;
use super::entries::{EvictLinks, WheelLinks};
use super::entry::{self, COLD_OFFSET, Cold, Ending, EntryKind, Hot, NO_PARTNER};
use super::layout::{Handle, TimePlace};
use super::open_flows::StateBits;
use crate::timer_wheel::{self, UNARMED};

/// Names a flow of one table, and no other flow that its entry serves later. (Entries count their
/// flows modulo 2³².)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// What a flow's entry holds of the flow itself, beside the states of functions: how long it lives, and
/// the order in which its packets came.
#[derive(Clone, Copy, Debug)]
pub struct FlowMarks {
    deadline: Time,
    stamps: [u32; 2],
    devices: [DeviceId; 2],
}

/// A flow to read and change.
pub struct FlowMut<'a> {
    table: &'a mut FlowTable,
    /// Where the entry lies: computed once, because a packet comes here several times.
    entry: NonNull<u8>,
    index: u32,
}

impl<'a> FlowMut<'a> {
    /// The flow in entry `index`, which must be live.
    #[inline]
    pub(super) fn new(table: &'a mut FlowTable, index: u32) -> FlowMut<'a> {
        FlowMut { entry: table.entries.address(index), table, index }
    }

    /// The flow in entry `index`, if the entry has been used and has this key.
    #[inline(always)]
    pub(super) fn with_key(
        table: &'a mut FlowTable,
        index: u32,
        key: &FlowKey,
    ) -> Option<FlowMut<'a>> {
        if index >= table.entries.used() {
            return None;
        }
        let name = table.entries.name(index);
        let flow = FlowMut { entry: table.entries.address(index), table, index };
        if !entry::matches(name, || flow.cold(), key) {
            return None;
        }
        match name.kind() {
            EntryKind::V6Alias => Some(flow.partner()),
            _ => Some(flow),
        }
    }

    /// The flow whose second key the entry has.
    #[cold]
    fn partner(self) -> FlowMut<'a> {
        let index = self.cold().partner;
        FlowMut::new(self.table, index)
    }

    #[inline(always)]
    fn hot(&self) -> &Hot {
        // SAFETY: `entry` is the address of an entry of the table, which this value borrows alone; an
        // entry's first bytes are always a valid `Hot`, and no state lies there.
        unsafe { self.entry.cast::<Hot>().as_ref() }
    }

    #[inline(always)]
    fn hot_mut(&mut self) -> &mut Hot {
        // SAFETY: as for `hot`; `&mut self` makes the access exclusive.
        unsafe { self.entry.cast::<Hot>().as_mut() }
    }

    #[inline(always)]
    fn cold(&self) -> &Cold {
        // SAFETY: as for `hot`; the `Cold` ends the second line, which every entry has.
        unsafe { self.entry.add(COLD_OFFSET).cast::<Cold>().as_ref() }
    }

    #[inline(always)]
    fn cold_mut(&mut self) -> &mut Cold {
        // SAFETY: as for `cold`; `&mut self` makes the access exclusive.
        unsafe { self.entry.add(COLD_OFFSET).cast::<Cold>().as_mut() }
    }

    #[inline(always)]
    fn change_ending<T>(&mut self, change: impl FnOnce(&mut Ending) -> T) -> T {
        let hot = self.hot_mut();
        let mut ending = hot.ending;
        let result = change(&mut ending);
        hot.ending = ending;
        result
    }

    /// Notes which states are initialised.
    #[inline]
    fn set_initialised(&mut self, initialised: u8) {
        self.cold_mut().initialised = initialised;
        let complete = initialised == self.table.states;
        self.change_ending(|ending| ending.set_complete(complete));
    }

    /// What names the flow.
    #[inline]
    pub fn id(&self) -> FlowId {
        let generation = self.cold().generation;
        FlowId { index: self.index, generation }
    }

    /// The key the flow was created under.
    pub fn key(&self) -> FlowKey {
        let (words, family) = entry::primary(self.hot(), self.cold());
        key(&words, family)
    }

    /// The second key, if [`FlowTable::alias`] gave it one.
    pub fn alias(&self) -> Option<FlowKey> {
        if let Some(words) = entry::alias(self.hot(), self.cold()) {
            return Some(key(&words, Family::V4));
        }
        let partner = self.cold().partner;
        (self.hot().ending.kind() == EntryKind::V6 && partner != NO_PARTNER).then(|| {
            let entries = &self.table.entries;
            let (words, family) = entry::primary(entries.hot(partner), entries.cold(partner));
            key(&words, family)
        })
    }

    /// When the flow ends unless a packet comes.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.hot().ending.deadline()
    }

    /// Whether the deadline has come. This alone decides what a packet finds; when the entry is
    /// reclaimed does not matter.
    #[inline]
    pub fn is_expired(&self, now: Time) -> bool {
        self.deadline() <= now
    }

    /// Sets the deadline, rounded up to a multiple of 256 ns. One that is not earlier than before costs a store: where the wheel finds the flow in time for the
    /// earlier one, it finds it in time for this one.
    #[inline]
    pub fn set_deadline(&mut self, deadline: Time) {
        let earlier = self.change_ending(|ending| ending.set_deadline(deadline));
        if earlier {
            self.arm(timer_wheel::tick(self.deadline()));
        }
    }

    /// Puts the flow where the wheel finds it once `tick` is over, unless it finds it earlier.
    #[inline(never)]
    pub(super) fn arm(&mut self, tick: u64) {
        let slot = self.cold().slot;
        if tick >= self.table.wheel.armed_tick(slot) {
            return;
        }
        let mut links = WheelLinks(&mut self.table.entries);
        if slot != UNARMED {
            self.table.wheel.disarm(&mut links, self.index);
        }
        let slot = self.table.wheel.arm(&mut links, self.index, tick);
        self.cold_mut().slot = slot;
    }

    /// Notes that a packet of the flow arrived at `device` as the one with `stamp`, and says whether
    /// it is late: older than one of the same direction that was noted before. Stamps of different
    /// devices do not compare; they wrap around.
    #[inline]
    pub fn note_arrival(&mut self, forward: bool, device: DeviceId, stamp: u32) -> bool {
        let hot = self.hot_mut();
        let way = usize::from(!forward);
        let comparable = hot.devices[way] == device;
        let late = comparable && (stamp.wrapping_sub(hot.stamps[way]) as i32) < 0;
        if !late {
            hot.stamps[way] = stamp;
            hot.devices[way] = device;
        }
        late
    }

    /// The devices at which the latest packets from the key's first end and from its second end arrived;
    /// [`DeviceId::NONE`] where none has.
    pub fn devices(&self) -> [DeviceId; 2] {
        self.hot().devices
    }

    /// What the entry holds of the flow now, for [`FlowMut::set_marks`] to go back to.
    #[inline]
    pub fn marks(&self) -> FlowMarks {
        let &Hot { ending, stamps, devices, .. } = self.hot();
        FlowMarks { deadline: ending.deadline(), stamps, devices }
    }

    /// Lets the flow be again what it was when it had these marks.
    pub fn set_marks(&mut self, marks: FlowMarks) {
        let FlowMarks { deadline, stamps, devices } = marks;
        let hot = self.hot_mut();
        (hot.stamps, hot.devices) = (stamps, devices);
        self.set_deadline(deadline);
    }

    /// Says whether the flow may be ended to make room for another: one that is only half open. Those
    /// that may are kept in the order in which they were declared so.
    pub fn set_evictable(&mut self, evictable: bool) {
        if evictable == self.hot().ending.is_evictable() {
            return;
        }
        self.change_ending(|ending| ending.set_evictable(evictable));
        let mut links = EvictLinks(&mut self.table.entries);
        if evictable {
            self.table.evictable.push_back(&mut links, 0, self.index);
        } else {
            self.table.evictable.unlink(&mut links, self.index);
        }
    }

    /// Which layout the handles of its states are of.
    #[inline(always)]
    pub(super) fn layout(&self) -> u64 {
        self.table.layout
    }

    /// The bits of the states that are initialised, and perhaps bits of no states.
    #[inline(always)]
    pub(super) fn initialised(&self) -> u8 {
        match self.hot().ending.is_complete() {
            true => u8::MAX,
            false => self.cold().initialised,
        }
    }

    /// Whether any state is initialised.
    pub fn has_states(&self) -> bool {
        self.cold().initialised != 0
    }

    /// Whether all states of a set are initialised.
    ///
    /// # Panics
    /// When the set is of another layout than the table's.
    #[inline]
    pub fn has(&self, set: StateBits) -> bool {
        let bits = set.bits_of(self.table.layout);
        self.initialised() & bits == bits
    }

    /// The time at a place that the layout has reserved for one.
    ///
    /// # Panics
    /// When the place is of another layout than the table's.
    #[inline]
    pub fn time(&self, place: TimePlace) -> Time {
        // SAFETY: the entry is the table's, which is borrowed alone, and the place is checked.
        unsafe { place.read(self.entry, self.table.layout) }
    }

    /// Sets the time at a place that the layout has reserved for one.
    ///
    /// # Panics
    /// When the place is of another layout than the table's.
    #[inline]
    pub fn set_time(&mut self, place: TimePlace, time: Time) {
        // SAFETY: as in `time`; `&mut self` makes the access exclusive.
        unsafe { place.write(self.entry, self.table.layout, time) };
    }

    /// The number of the entry.
    #[inline(always)]
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Where the entry lies.
    #[inline(always)]
    pub(super) fn entry(&self) -> NonNull<u8> {
        self.entry
    }

    /// The state behind `handle`, if it is initialised. Panics when the handle is of another layout
    /// than the table's, as all methods that take one.
    #[inline]
    pub fn state<T: Send + 'static>(&mut self, handle: Handle<T>) -> Option<&mut T> {
        handle.check(self.table.layout);
        if self.initialised() & handle.bit() == 0 {
            return None;
        }
        // SAFETY: the handle is of this layout, so a `T` has its place there, and the bit says that
        // one was written; the borrow of the table makes the access exclusive.
        Some(unsafe { self.place(handle).as_mut() })
    }

    /// Initialises the state behind `handle`; a state that was there before is dropped.
    #[inline]
    pub fn init<T: Send + 'static>(&mut self, handle: Handle<T>, state: T) -> &mut T {
        drop(self.take(handle));
        let mut place = self.place(handle);
        // SAFETY: the handle is of this layout (`take` checked), so the place is aligned, large
        // enough and reserved for a `T`; what was there has been taken out.
        unsafe { place.write(state) };
        let initialised = self.cold().initialised | handle.bit();
        self.set_initialised(initialised);
        // SAFETY: just written; the borrow of the table makes the access exclusive.
        unsafe { place.as_mut() }
    }

    /// Takes the state behind `handle` out of the flow.
    #[inline]
    pub fn take<T: Send + 'static>(&mut self, handle: Handle<T>) -> Option<T> {
        handle.check(self.table.layout);
        let initialised = self.cold().initialised;
        if initialised & handle.bit() == 0 {
            return None;
        }
        self.set_initialised(initialised & !handle.bit());
        // SAFETY: as in `state`; the bit is clear now, so it is not read or dropped again.
        Some(unsafe { self.place(handle).read() })
    }

    /// Where the state behind `handle`, which is of this layout, lies.
    #[inline]
    fn place<T>(&self, handle: Handle<T>) -> NonNull<T> {
        // SAFETY: the layout gave the offset and is the one the entries were sized by.
        unsafe { self.entry.add(handle.offset()).cast() }
    }
}

impl std::fmt::Debug for FlowMut<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowMut")
            .field("key", &self.key())
            .field("alias", &self.alias())
            .field("deadline", &self.deadline())
            .finish()
    }
}

/// The key with these words.
fn key(words: &[u64; 5], family: Family) -> FlowKey {
    let tail = match family {
        Family::V4 => words[1],
        Family::V6 => words[4],
    };
    let ports = (tail as u16, (tail >> 16) as u16);
    let (protocol, zone) = ((tail >> 32) as u8, (tail >> 40) as u32);
    match family {
        Family::V4 => {
            let (first, second) = (words[0] as u32, (words[0] >> 32) as u32);
            let first = (Ipv4Addr::from_bits(first), ports.0);
            FlowKey::v4(first, (Ipv4Addr::from_bits(second), ports.1), protocol, zone)
        }
        Family::V6 => {
            let address =
                |low, high| Ipv6Addr::from_bits(u128::from(low) | u128::from(high) << 64_u32);
            let first = (address(words[0], words[1]), ports.0);
            FlowKey::v6(first, (address(words[2], words[3]), ports.1), protocol, zone)
        }
    }
}
