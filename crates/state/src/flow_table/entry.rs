//! The fixed parts of a flow entry: what every packet reads and writes, at the start of its first line, and
//! what only the beginning and the end of a flow need, and second keys, at the end of its second. The
//! functions' states lie between them and behind. Each part is a structure of its own, so that no
//! reference spans a state.

use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{Family, FlowKey};

use crate::list::ListLink;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Where the states of the chain's functions start.
pub(super) const STATE_OFFSET: usize = size_of::<Hot>();

/// Where the [`Cold`] part starts: states before it that end within the first line are *hot*.
pub(super) const COLD_OFFSET: usize = 2 * LINE - size_of::<Cold>();

/// The keys an entry can be found under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum EntryKind {
    /// None: the entry is free. Zero, as untouched memory is.
    Free = 0,
    /// An IPv4 key.
    V4 = 1,
    /// An IPv4 key, and another one in the cold part.
    V4Alias = 2,
    /// An IPv6 key, of which three words lie in the cold part.
    V6 = 3,
    /// The second IPv6 key of the flow in another entry: one entry has no room for two.
    V6Alias = 4,
}

/// No other entry belongs to this one.
pub(super) const NO_PARTNER: u32 = u32::MAX;

/// The first bytes of line 0: what every packet reads and may write.
#[derive(Clone, Copy)]
#[repr(C, packed(2))]
pub(super) struct Hot {
    /// The key, or the first two words of one of IPv6; of a free entry, the first word names the next
    /// free one.
    pub(super) key: [u64; 2],
    /// When the flow ends, and what kind of entry it is.
    pub(super) ending: Ending,
    /// The latest arrival in each direction.
    pub(super) stamps: [u32; 2],
    /// The device it came from, [`DeviceId::NONE`] where nothing has arrived.
    pub(super) devices: [DeviceId; 2],
}

/// The last bytes of line 1.
#[repr(C, packed(4))]
pub(super) struct Cold {
    /// The rest of a key of IPv6, or the second key of a flow of IPv4.
    pub(super) more: [u64; 3],
    /// The neighbours in a slot of the timer wheel.
    pub(super) wheel: ListLink,
    /// The neighbours among the flows that may be evicted.
    pub(super) evict: ListLink,
    /// How many flows this entry has served and lost.
    pub(super) generation: u32,
    /// Of an entry with an IPv6 key, the entry with its flow's other key; [`NO_PARTNER`] if there is
    /// none.
    pub(super) partner: u32,
    /// The slot of the timer wheel.
    pub(super) slot: u16,
    /// One bit per function whose state is initialised.
    pub(super) initialised: u8,
}

const _: () = {
    assert!(size_of::<Hot>() == 34 && size_of::<Cold>() == 52);
    // Of line 0, 30 bytes are left for states, and 12 of line 1.
    assert!(STATE_OFFSET == 34 && COLD_OFFSET == 76);
    assert!(offset_of!(Cold, wheel) % align_of::<ListLink>() == 0);
};

/// A deadline, whose lowest byte is used for the kind of the entry and three marks. All zero is a free entry.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Ending(u64);

/// The bits of [`Ending`] that are not the deadline's.
const MARKS: u64 = 0xff;
const KIND: u64 = 7;
/// The flow can be evicted: it is in the list of those that may.
const EVICTABLE: u64 = 8;
/// All states of the layout are initialised.
const COMPLETE: u64 = 16;
/// Another lane works on the flow: its table finds nothing in the entry.
const DETACHED: u64 = 32;

impl Ending {
    /// That of an entry without a deadline.
    #[inline]
    pub(super) fn never(kind: EntryKind) -> Ending {
        Ending(!MARKS | kind as u64)
    }

    /// The deadline.
    #[inline(always)]
    pub(super) fn deadline(self) -> Time {
        match self.0 & !MARKS {
            NEVER => Time::NEVER,
            nanos => Time::from_nanos(nanos),
        }
    }

    /// Sets the deadline, rounded up to a multiple of 256 ns, and says whether it is earlier than before.
    #[inline(always)]
    pub(super) fn set_deadline(&mut self, deadline: Time) -> bool {
        let nanos = deadline.as_nanos().saturating_add(MARKS) & !MARKS;
        let before = self.0;
        self.0 = nanos | before & MARKS;
        nanos < before & !MARKS
    }

    /// The keys the entry can be found under; none while it is detached.
    #[inline(always)]
    pub(super) fn kind(self) -> EntryKind {
        match self.0 & (KIND | DETACHED) {
            1 => EntryKind::V4,
            2 => EntryKind::V4Alias,
            3 => EntryKind::V6,
            4 => EntryKind::V6Alias,
            _ => EntryKind::Free,
        }
    }

    pub(super) fn set_kind(&mut self, kind: EntryKind) {
        self.0 = self.0 & !KIND | kind as u64;
    }

    pub(super) fn set_detached(&mut self, detached: bool) {
        self.0 = self.0 & !DETACHED | if detached { DETACHED } else { 0 };
    }

    pub(super) fn is_evictable(self) -> bool {
        self.0 & EVICTABLE != 0
    }

    pub(super) fn set_evictable(&mut self, evictable: bool) {
        self.0 = self.0 & !EVICTABLE | if evictable { EVICTABLE } else { 0 };
    }

    /// Whether all states of the layout are known to be initialised.
    #[inline(always)]
    pub(super) fn is_complete(self) -> bool {
        self.0 & COMPLETE != 0
    }

    pub(super) fn set_complete(&mut self, complete: bool) {
        self.0 = self.0 & !COMPLETE | if complete { COMPLETE } else { 0 };
    }
}

/// The order of arrival of a flow's packets.
pub(super) struct EntryArrivals {
    pub(super) stamps: [u32; 2],
    pub(super) devices: [DeviceId; 2],
}

impl EntryArrivals {
    /// That of an entry.
    ///
    /// # Safety
    /// `hot` is the start of an entry whose stamps and devices nothing writes meanwhile.
    #[inline(always)]
    pub(super) unsafe fn read(hot: *const Hot) -> EntryArrivals {
        // SAFETY: the entry begins with a `Hot`, says the caller; no reference to the whole is made.
        unsafe {
            let stamps = (&raw const (*hot).stamps).read_unaligned();
            EntryArrivals { stamps, devices: (&raw const (*hot).devices).read_unaligned() }
        }
    }

    /// See [`FlowMut::note_arrival`](super::FlowMut::note_arrival).
    #[inline(always)]
    pub(super) fn note(&mut self, forward: bool, device: DeviceId, stamp: u32) -> bool {
        let way = usize::from(!forward);
        let comparable = self.devices[way] == device;
        let late = comparable && (stamp.wrapping_sub(self.stamps[way]) as i32) < 0;
        if !late {
            self.stamps[way] = stamp;
            self.devices[way] = device;
        }
        late
    }
}

/// What a lookup reads of the first line of an entry. It may be read while another lane works on the flow, which then changes
/// nothing of the key.
#[derive(Clone, Copy)]
pub(super) struct Name {
    key: [u64; 2],
    ending: Ending,
}

impl Name {
    /// That of the entry at `entry`.
    ///
    /// # Safety
    /// `entry` is an entry of a mapped table. Nothing writes its key meanwhile, and nothing writes its ending but atomically.
    #[inline(always)]
    pub(super) unsafe fn read(entry: NonNull<u8>) -> Name {
        let hot = entry.cast::<Hot>().as_ptr();
        // SAFETY: the entry begins with a `Hot`, says the caller; no reference to it is made, as others may write its stamps.
        let key = unsafe { (&raw const (*hot).key).read_unaligned() };
        // SAFETY: as above.
        Name { key, ending: unsafe { load_ending(entry) } }
    }

    /// The keys the entry can be found under.
    #[inline(always)]
    pub(super) fn kind(self) -> EntryKind {
        self.ending.kind()
    }
}

/// The ending of the entry at `entry`, which another lane may change.
///
/// # Safety
/// `entry` is an entry of a mapped table, whose ending nothing else writes but atomically.
#[inline(always)]
pub(super) unsafe fn load_ending(entry: NonNull<u8>) -> Ending {
    // SAFETY: entries are aligned to lines, so the ending, at a multiple of eight, is aligned; it is mapped, and others access it
    // atomically, says the caller.
    let ending = unsafe { AtomicU64::from_ptr(entry.as_ptr().add(ENDING_OFFSET).cast()) };
    Ending(ending.load(Ordering::Relaxed))
}

/// Changes the ending of the entry at `entry`, which another lane may read.
///
/// # Safety
/// As [`load_ending`], and nothing else writes it.
#[inline(always)]
pub(super) unsafe fn store_ending(entry: NonNull<u8>, value: Ending) {
    // SAFETY: as in `load_ending`.
    let ending = unsafe { AtomicU64::from_ptr(entry.as_ptr().add(ENDING_OFFSET).cast()) };
    ending.store(value.0, Ordering::Relaxed);
}

/// Where the ending lies in an entry.
const ENDING_OFFSET: usize = offset_of!(Hot, ending);

const _: () = assert!(ENDING_OFFSET.is_multiple_of(align_of::<u64>()));

/// The latest time that can be told in units of 256 ns stands for [`Time::NEVER`].
const NEVER: u64 = !MARKS;

/// The words and the family of the key that a flow was created under.
pub(super) fn primary(hot: &Hot, cold: &Cold) -> ([u64; 5], Family) {
    let [first, second] = hot.key;
    let [third, fourth, fifth] = cold.more;
    match hot.ending.kind() {
        EntryKind::V6 | EntryKind::V6Alias => ([first, second, third, fourth, fifth], Family::V6),
        _ => ([first, second, 0, 0, 0], Family::V4),
    }
}

/// The words of the second key of a flow, if it lies in its entry.
pub(super) fn alias(hot: &Hot, cold: &Cold) -> Option<[u64; 5]> {
    let [first, second, _] = cold.more;
    (hot.ending.kind() == EntryKind::V4Alias).then_some([first, second, 0, 0, 0])
}

/// Whether the entry serves a flow that can be found under `key`. An IPv4 flow found under its first key,
/// the common case, is told by line 0 alone.
#[inline(always)]
pub(super) fn matches<'a>(name: Name, cold: impl FnOnce() -> &'a Cold, key: &FlowKey) -> bool {
    let &[first, second, rest @ ..] = key.raw();
    let kind = name.kind();
    let starts = (name.key[0] ^ first) | (name.key[1] ^ second) == 0;
    if key.family() == Family::V4 {
        return (starts && matches!(kind, EntryKind::V4 | EntryKind::V4Alias))
            || (kind == EntryKind::V4Alias && {
                let [third, fourth, _] = cold().more;
                (third ^ first) | (fourth ^ second) == 0
            });
    }
    starts && matches!(kind, EntryKind::V6 | EntryKind::V6Alias) && { cold().more } == rest
}
