//! One flow: its deadline, its order of arrival, and the states of the chain's functions.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr::NonNull;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{Family, FlowKey};

use super::FlowTable;
use super::entries::{EvictLinks, WheelLinks};
use super::entry::{EVICTABLE, Head, Kind, LINE, NO_PARTNER, Tail};
use super::layout::Handle;
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
        let flow = FlowMut { entry: table.entries.address(index), table, index };
        if !flow.head().matches(key) {
            return None;
        }
        match flow.head().kind {
            Kind::V6Alias => Some(flow.partner()),
            _ => Some(flow),
        }
    }

    /// The flow whose second key the entry has.
    #[cold]
    fn partner(self) -> FlowMut<'a> {
        let index = self.tail().partner;
        FlowMut::new(self.table, index)
    }

    #[inline]
    fn head(&self) -> &Head {
        // SAFETY: `entry` is the address of an entry of the table, which this value borrows alone; an
        // entry's first line is always a valid `Head`.
        unsafe { self.entry.cast::<Head>().as_ref() }
    }

    #[inline]
    fn head_mut(&mut self) -> &mut Head {
        // SAFETY: as for `head`; `&mut self` makes the access exclusive.
        unsafe { self.entry.cast::<Head>().as_mut() }
    }

    #[inline]
    fn tail(&self) -> &Tail {
        // SAFETY: as for `head`; the `Tail` starts the second line, which every entry has.
        unsafe { self.entry.add(LINE).cast::<Tail>().as_ref() }
    }

    #[inline]
    fn tail_mut(&mut self) -> &mut Tail {
        // SAFETY: as for `tail`; `&mut self` makes the access exclusive.
        unsafe { self.entry.add(LINE).cast::<Tail>().as_mut() }
    }

    /// What names the flow.
    #[inline]
    pub fn id(&self) -> FlowId {
        let generation = self.head().generation;
        FlowId { index: self.index, generation }
    }

    /// The key the flow was created under.
    pub fn key(&self) -> FlowKey {
        let (words, family) = self.head().primary();
        key(&words, family)
    }

    /// The second key, if [`FlowTable::alias`] gave it one.
    pub fn alias(&self) -> Option<FlowKey> {
        if let Some(words) = self.head().alias() {
            return Some(key(&words, Family::V4));
        }
        let (family, partner) = (self.head().primary().1, self.tail().partner);
        (family == Family::V6 && partner != NO_PARTNER)
            .then(|| key(&self.table.entries.head(partner).key, family))
    }

    /// When the flow ends unless a packet comes.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.tail().deadline
    }

    /// Whether the deadline has come. This alone decides what a packet finds; when the entry is
    /// reclaimed does not matter.
    #[inline]
    pub fn is_expired(&self, now: Time) -> bool {
        self.deadline() <= now
    }

    /// Sets the deadline. One that is not earlier than before costs a store: where the wheel finds the flow in time for the
    /// earlier one, it finds it in time for this one.
    #[inline]
    pub fn set_deadline(&mut self, deadline: Time) {
        let before = std::mem::replace(&mut self.tail_mut().deadline, deadline);
        if deadline < before {
            self.arm(timer_wheel::tick(deadline));
        }
    }

    /// Puts the flow where the wheel finds it once `tick` is over, unless it finds it earlier.
    #[inline(never)]
    fn arm(&mut self, tick: u64) {
        let slot = self.head().slot;
        if tick >= self.table.wheel.armed_tick(slot) {
            return;
        }
        let mut links = WheelLinks(&mut self.table.entries);
        if slot != UNARMED {
            self.table.wheel.disarm(&mut links, self.index);
        }
        let slot = self.table.wheel.arm(&mut links, self.index, tick);
        self.head_mut().slot = slot;
    }

    /// Notes that a packet of the flow arrived at `device` as the one with `stamp`, and says whether
    /// it is late: older than one of the same direction that was noted before. Stamps of different
    /// devices do not compare; they wrap around.
    #[inline]
    pub fn note_arrival(&mut self, forward: bool, device: DeviceId, stamp: u32) -> bool {
        let tail = self.tail_mut();
        let way = usize::from(!forward);
        let comparable = tail.devices[way] == device;
        let late = comparable && (stamp.wrapping_sub(tail.stamps[way]) as i32) < 0;
        if !late {
            tail.stamps[way] = stamp;
            tail.devices[way] = device;
        }
        late
    }

    /// What the entry holds of the flow now, for [`FlowMut::set_marks`] to go back to.
    #[inline]
    pub fn marks(&self) -> FlowMarks {
        let &Tail { deadline, stamps, devices, .. } = self.tail();
        FlowMarks { deadline, stamps, devices }
    }

    /// Lets the flow be again what it was when it had these marks.
    pub fn set_marks(&mut self, marks: FlowMarks) {
        let FlowMarks { deadline, stamps, devices } = marks;
        let tail = self.tail_mut();
        (tail.stamps, tail.devices) = (stamps, devices);
        self.set_deadline(deadline);
    }

    /// Says whether the flow may be ended to make room for another: one that is only half open. Those
    /// that may are kept in the order in which they were declared so.
    pub fn set_evictable(&mut self, evictable: bool) {
        let head = self.head_mut();
        if evictable == (head.flags & EVICTABLE != 0) {
            return;
        }
        head.flags ^= EVICTABLE;
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

    /// The bits of the states that are initialised.
    #[inline(always)]
    pub(super) fn initialised(&self) -> u8 {
        self.tail().initialised
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
        if self.tail().initialised & handle.bit() == 0 {
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
        self.tail_mut().initialised |= handle.bit();
        // SAFETY: just written; the borrow of the table makes the access exclusive.
        unsafe { place.as_mut() }
    }

    /// Takes the state behind `handle` out of the flow.
    #[inline]
    pub fn take<T: Send + 'static>(&mut self, handle: Handle<T>) -> Option<T> {
        handle.check(self.table.layout);
        let tail = self.tail_mut();
        if tail.initialised & handle.bit() == 0 {
            return None;
        }
        tail.initialised &= !handle.bit();
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
