//! What is known of a packet beside its bytes: one line per buffer, in an array of the pool.

use std::mem::offset_of;
use std::ptr::NonNull;
use std::time::Duration;

use rheostat_base::{DeviceId, Time};

use super::pool::PoolInner;
use super::{Mbuf, NO_SEGMENT};

/// What the first bytes of a packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum LinkType {
    /// An Ethernet header (IEEE 802.3, DLT 1).
    #[default]
    Ethernet,
    /// An IPv4 or IPv6 header at once (DLT 101, 12, 14, 228, 229).
    Raw,
    /// BSD loopback: a four-byte address family in the byte order of the capturing host (DLT 0), or
    /// in network order (DLT 108).
    Null,
    /// Linux cooked capture, 16 bytes (DLT 113).
    LinuxCooked,
    /// Linux cooked capture version 2, 20 bytes (DLT 276).
    LinuxCooked2,
}

impl LinkType {
    /// All of them, each in the place that its number as `u8` states.
    pub const ALL: [LinkType; 5] = [
        LinkType::Ethernet,
        LinkType::Raw,
        LinkType::Null,
        LinkType::LinuxCooked,
        LinkType::LinuxCooked2,
    ];
}

/// What a device hashed a packet over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum HashKind {
    /// Nothing: the device found no IP header, or does not hash.
    #[default]
    None,
    /// The addresses.
    Addresses,
    /// The addresses and the ports.
    Ports,
}

impl HashKind {
    /// By their numbers as `u8`, of two bits.
    const ALL: [HashKind; 4] =
        [HashKind::None, HashKind::Addresses, HashKind::Ports, HashKind::None];
}

/// One cache line for each buffer of a pool, valid while a handle owns the buffer.
///
/// Code outside this module never gets one by `&mut`: two that were swapped would belong to each other's buffers.
#[repr(C, align(64))]
pub(super) struct MbufHead {
    /// The first byte of the packet.
    pub(super) data: NonNull<u8>,
    pub(super) pool: NonNull<PoolInner>,
    timestamp: Time,
    stamp: u32,
    /// Room for the upper half of the stamp.
    _stamp_rest: u32,
    pub(super) next: u32,
    /// Bytes of all segments together.
    pub(super) total: u32,
    hash: u32,
    wire_len: u32,
    /// By how many nanoseconds the stamp lies behind the time of the replay; zero of most. Room for what a device of another
    /// kind states about the flow: the number of its entry.
    lag: f32,
    /// Bytes of the first segment.
    pub(super) len: u16,
    /// Room for the size of the segments that a device makes of the packet.
    _segment_size: u16,
    /// Room for the receive queue.
    _queue: u16,
    /// Room for where a device computes a checksum, and where it puts it.
    _checksum: [u8; 2],
    device: DeviceId,
    /// Room for the class of service.
    _class: u8,
    mark: u8,
    kinds: Kinds,
}

const _: () = assert!(size_of::<MbufHead>() == 64 && align_of::<MbufHead>() == 64);
const _: () = assert!(offset_of!(MbufHead, data) == 0 && offset_of!(MbufHead, stamp) == 24);
const _: () = assert!(offset_of!(MbufHead, next) == 32 && offset_of!(MbufHead, lag) == 48);
const _: () = assert!(offset_of!(MbufHead, len) == 52 && offset_of!(MbufHead, _queue) == 56);
const _: () = assert!(offset_of!(MbufHead, device) == 60 && offset_of!(MbufHead, kinds) == 63);

impl MbufHead {
    /// The head of a packet of `len` bytes from `data`, in one buffer of `pool`.
    #[inline]
    pub(super) fn new(data: NonNull<u8>, pool: NonNull<PoolInner>, len: u16) -> MbufHead {
        let total = u32::from(len);
        MbufHead {
            data,
            pool,
            timestamp: Time::ZERO,
            stamp: 0,
            _stamp_rest: 0,
            next: NO_SEGMENT,
            total,
            hash: 0,
            wire_len: total,
            lag: 0.0,
            len,
            _segment_size: 0,
            _queue: 0,
            _checksum: [0; 2],
            device: DeviceId::default(),
            _class: 0,
            mark: 0,
            kinds: Kinds::default(),
        }
    }
}

/// The link type in the lowest three bits, what the hash covers in two, and whether the packet is returning.
#[derive(Clone, Copy, Default)]
struct Kinds(u8);

const LINK: u8 = 0b111;
const HASH_SHIFT: u32 = 3;
const HASH: u8 = 0b11 << HASH_SHIFT;
const REINJECTED: u8 = 1 << 5;
/// Ethernet, hashed over addresses and ports.
const PLAIN: u8 = LinkType::Ethernet as u8 | (HashKind::Ports as u8) << HASH_SHIFT;

impl Kinds {
    fn link(self) -> LinkType {
        LinkType::ALL[usize::from(self.0 & LINK)]
    }

    fn hash(self) -> HashKind {
        HashKind::ALL[usize::from((self.0 & HASH) >> HASH_SHIFT)]
    }
}

/// What a device reports of a packet beside its bytes.
impl Mbuf {
    /// Whether the packet has an Ethernet header, was hashed over addresses and ports, and is not traced. Asked at once, as it
    /// is asked of every packet and true of most.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        let head = self.head();
        head.mark == 0 && head.kinds.0 & (LINK | HASH) == PLAIN
    }

    /// Whether the packet has an Ethernet header.
    #[inline(always)]
    pub fn is_ethernet(&self) -> bool {
        self.head().kinds.0 & LINK == LinkType::Ethernet as u8
    }

    /// When the packet arrived.
    #[inline]
    pub fn timestamp(&self) -> Time {
        self.head().timestamp
    }

    /// Sets when the packet arrived.
    #[inline]
    pub fn set_timestamp(&mut self, timestamp: Time) {
        self.head_mut().timestamp = timestamp;
    }

    /// The time of a replay at the packet's arrival: that of its stamp, or later, where a packet before it was stamped later.
    #[inline]
    pub fn replay_time(&self) -> Time {
        let head = self.head();
        match head.lag {
            0.0 => head.timestamp,
            lag => head.timestamp + Duration::from_nanos(lag as u64),
        }
    }

    /// Puts the packet, whose stamp is set, no earlier than `time` in a replay. It may come to lie later than both, by at most
    /// 2^-23 of how far its stamp lies behind: the distance is kept in four bytes.
    pub fn set_replay_time(&mut self, time: Time) {
        let behind = time.since(self.timestamp()).as_nanos() as u64;
        let lag = behind as f32;
        self.head_mut().lag = if (lag as u64) < behind { lag.next_up() } else { lag };
    }

    /// The place of the packet in the order of arrival at its device, modulo 2^32.
    #[inline]
    pub fn stamp(&self) -> u32 {
        self.head().stamp
    }

    /// Gives the packet its place in the order of arrival.
    #[inline]
    pub fn set_stamp(&mut self, stamp: u32) {
        self.head_mut().stamp = stamp;
    }

    /// The device the packet arrived on.
    #[inline]
    pub fn device(&self) -> DeviceId {
        self.head().device
    }

    /// Sets which device the packet arrived on.
    #[inline]
    pub fn set_device(&mut self, device: DeviceId) {
        self.head_mut().device = device;
    }

    /// Bytes the frame had on the wire; more than the packet holds when a capture cut it short.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        self.head().wire_len
    }

    /// Sets how many bytes the frame had on the wire.
    #[inline]
    pub fn set_wire_len(&mut self, wire_len: u32) {
        self.head_mut().wire_len = wire_len;
    }

    /// The device's hash of the fields that [`Mbuf::hash_kind`] names, after the device's orientation.
    #[inline]
    pub fn hash(&self) -> u32 {
        self.head().hash
    }

    /// What the device's hash covers.
    #[inline]
    pub fn hash_kind(&self) -> HashKind {
        self.head().kinds.hash()
    }

    /// Notes the device's hash, and what it covers.
    #[inline]
    pub fn set_hash(&mut self, hash: u32, kind: HashKind) {
        let head = self.head_mut();
        head.hash = hash;
        head.kinds.0 = head.kinds.0 & !HASH | (kind as u8) << HASH_SHIFT;
    }

    /// What the first bytes of the packet are.
    #[inline]
    pub fn link(&self) -> LinkType {
        self.head().kinds.link()
    }

    /// Sets what the first bytes of the packet are.
    #[inline]
    pub fn set_link(&mut self, link: LinkType) {
        let kinds = &mut self.head_mut().kinds;
        kinds.0 = kinds.0 & !LINK | link as u8;
    }

    /// Whether the packet comes from the lane itself, and not from a device.
    #[inline]
    pub fn is_reinjected(&self) -> bool {
        self.head().kinds.0 & REINJECTED != 0
    }

    /// Marks the packet as one of the lane itself: no device received it as it is now.
    #[inline]
    pub fn set_reinjected(&mut self) {
        self.head_mut().kinds.0 |= REINJECTED;
    }

    /// The mark of a packet that is traced; zero for one that is not.
    #[inline]
    pub fn mark(&self) -> u8 {
        self.head().mark
    }

    /// Marks the packet, or takes its mark away.
    #[inline]
    pub fn set_mark(&mut self, mark: u8) {
        self.head_mut().mark = mark;
    }

    /// Takes over what the device reported of another packet.
    pub fn describe_as(&mut self, other: &Mbuf) {
        let MbufHead { timestamp, stamp, lag, hash, wire_len, device, mark, kinds, .. } =
            *other.head();
        let head = self.head_mut();
        (head.timestamp, head.lag, head.stamp, head.hash) = (timestamp, lag, stamp, hash);
        (head.wire_len, head.device, head.mark, head.kinds) = (wire_len, device, mark, kinds);
    }
}
