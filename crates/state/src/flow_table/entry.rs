//! The fixed part of a flow entry: a line that is written rarely and the start of the lines that
//! packets write. They are separate structures, so that no reference spans both.

use std::mem::offset_of;

use rheostat_base::{DeviceId, Time};
use rheostat_packet::{Family, FlowKey};

use crate::list::Link;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Where the states of the chain's functions start.
pub(super) const STATE_OFFSET: usize = LINE + size_of::<Tail>();

/// The keys an entry can be found under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// None: the entry is free. Zero, as untouched memory is.
    Free = 0,
    /// An IPv4 key, in words 0 and 1.
    V4 = 1,
    /// An IPv4 key, and another one in words 2 and 3.
    V4Alias = 2,
    /// An IPv6 key.
    V6 = 3,
    /// The second IPv6 key of the flow in another entry: two do not fit into one line.
    V6Alias = 4,
}

/// No other entry belongs to this one.
pub(super) const NO_PARTNER: u32 = u32::MAX;

/// The flow can be evicted: it is in the list of those that may.
pub(super) const EVICTABLE: u8 = 1;

/// Line 0: what a lookup reads.
#[repr(C, align(64))]
pub(super) struct Head {
    /// One or two keys, as `kind` says; of a free entry, the first word names the next free one.
    pub(super) key: [u64; 5],
    /// The neighbours in a slot of the timer wheel.
    pub(super) wheel: Link,
    /// The neighbours among the flows that may be evicted.
    pub(super) evict: Link,
    /// How many flows this entry has served and lost.
    pub(super) generation: u32,
    /// The slot of the timer wheel.
    pub(super) slot: u16,
    pub(super) kind: Kind,
    pub(super) flags: u8,
}

/// The first bytes of line 1: what every packet may write. The functions' states follow.
#[repr(C)]
pub(super) struct Tail {
    pub(super) deadline: Time,
    /// The latest arrival in each direction.
    pub(super) stamps: [u32; 2],
    /// The device it came from, [`DeviceId::NONE`] where nothing has arrived.
    pub(super) devices: [DeviceId; 2],
    /// One bit per function whose state is initialised.
    pub(super) initialised: u8,
    /// Of an entry with an IPv6 key, the entry with its flow's other key; [`NO_PARTNER`] if there is
    /// none.
    pub(super) partner: u32,
}

const _: () = {
    assert!(size_of::<Head>() == LINE && align_of::<Head>() == LINE);
    assert!(offset_of!(Head, wheel) == 40 && offset_of!(Head, evict) == 48);
    assert!(offset_of!(Head, generation) == 56 && offset_of!(Head, flags) == 63);
    assert!(size_of::<Tail>() == 24 && align_of::<Tail>() == 8);
    // Line 1 has 40 bytes left for states.
    assert!(STATE_OFFSET == 88);
};

impl Head {
    /// Whether the entry serves a flow that can be found under `key`. Written so that an IPv4 flow
    /// found under its first key, the common case, takes three predictable branches.
    #[inline]
    pub(super) fn matches(&self, key: &FlowKey) -> bool {
        let [first, second, ..] = *key.raw();
        let (own, kind) = (&self.key, self.kind);
        if key.family() == Family::V4 {
            let is = |at: usize| (own[at] ^ first) | (own[at + 1] ^ second) == 0;
            return (is(0) && (kind == Kind::V4 || kind == Kind::V4Alias))
                || (kind == Kind::V4Alias && is(2));
        }
        // Without a call, as a comparison of arrays would be.
        let differs = own.iter().zip(key.raw()).fold(0, |bits, (own, other)| bits | (own ^ other));
        (kind == Kind::V6 || kind == Kind::V6Alias) && differs == 0
    }

    /// The words and the family of the key the flow was created under.
    pub(super) fn primary(&self) -> ([u64; 5], Family) {
        match self.kind {
            Kind::V6 | Kind::V6Alias => (self.key, Family::V6),
            _ => ([self.key[0], self.key[1], 0, 0, 0], Family::V4),
        }
    }

    /// The words of the second key, if it lies here.
    pub(super) fn alias(&self) -> Option<[u64; 5]> {
        (self.kind == Kind::V4Alias).then(|| [self.key[2], self.key[3], 0, 0, 0])
    }
}
