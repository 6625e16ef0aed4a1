//! The ring through which the kernel hands over frames: slots that it fills one by one and we give back
//! (TPACKET_V2, Documentation/networking/packet_mmap.rst).
//!
//! A frame is handed over, and wakes the lane, as soon as it is in its slot: blocks of frames (TPACKET_V3) are handed over when
//! they are full or after a millisecond. Of a frame that is longer than a slot, the slot has the beginning, and the whole frame waits
//! in the socket, in the order of the slots.
#![allow(unsafe_code)]

use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, mem};

use libc::tpacket2_hdr;
use memmap2::{MmapOptions, MmapRaw};

use crate::backend::intake::{Frame, FrameLoss};
use crate::segmentation::{Offload, OffloadError, VNET_HEADER};
use crate::sys::packet_socket::{PacketSocket, RingShape};

/// Bytes of a slot: a frame of 1,500 bytes of IP fits with its tags and headers. Longer ones cost a system call each.
const SLOT: usize = 2_048;
/// Slots of a block, which the kernel allocates in one piece, or page by page where it has none of the size.
const SLOTS_PER_BLOCK: u32 = 64;
/// Bytes of the longest frame that waits in the socket, with its virtio header.
const LONGEST: usize = 128 << 10;

// Where fields lie in the header of a slot.
const STATUS: usize = offset_of!(tpacket2_hdr, tp_status);
const LEN: usize = offset_of!(tpacket2_hdr, tp_len);
const HELD: usize = offset_of!(tpacket2_hdr, tp_snaplen);
const MAC: usize = offset_of!(tpacket2_hdr, tp_mac);
const VLAN_CONTROL: usize = offset_of!(tpacket2_hdr, tp_vlan_tci);
const VLAN_TYPE: usize = offset_of!(tpacket2_hdr, tp_vlan_tpid);

/// The memory of a ring, and how far its lane has come.
pub(super) struct RingMemory {
    memory: MmapRaw,
    slots: usize,
    /// The slot that is read, or waited for. Written by the lane.
    current: AtomicU32,
}

/// A ring, in the hands of the one lane that reads it.
pub(super) struct SlotRing {
    shared: Arc<RingMemory>,
    /// Frames that are done.
    taken: u64,
    /// The frame at hand with its virtio header, if it is longer than its slot, and how many bytes of it there are.
    long: Box<[u8]>,
    received: Option<usize>,
}

impl RingMemory {
    /// Gives `socket` a ring of at least so many slots, and as many bytes again for frames that are longer than a slot.
    pub(super) fn new(socket: &PacketSocket, slots: u32) -> io::Result<RingMemory> {
        let blocks = slots.div_ceil(SLOTS_PER_BLOCK);
        let slots = (blocks * SLOTS_PER_BLOCK) as usize;
        socket.set_ring(&RingShape {
            slot: SLOT as u32,
            slots_per_block: SLOTS_PER_BLOCK,
            blocks,
        })?;
        // The kernel counts the memory of a frame, which may be twice its length.
        socket.set_receive_buffer(2 * slots * SLOT)?;
        let fd = socket.as_fd().as_raw_fd();
        let memory = MmapOptions::new().len(slots * SLOT).map_raw(fd)?;
        Ok(RingMemory { memory, slots, current: AtomicU32::new(0) })
    }

    /// The status of a slot.
    fn status(&self, slot: usize) -> &AtomicU32 {
        assert!(slot < self.slots);
        // SAFETY: the address lies inside the mapping, which lives as long as `self`, and is aligned: slots are, and the status is
        // the first word of their headers.
        unsafe { AtomicU32::from_ptr(self.memory.as_mut_ptr().add(slot * SLOT + STATUS).cast()) }
    }

    /// Whether the kernel has handed the slot over.
    #[inline]
    fn is_ours(&self, slot: usize) -> bool {
        // Acquire: pairs with the kernel's barrier before it sets the status; the frame is whole.
        self.status(slot).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Frames that can be received. Of a moment: the lane goes on meanwhile. Reads one slot where there is none.
    pub(super) fn backlog(&self) -> usize {
        // Relaxed: a moment's figure, exact once nothing arrives and the lane rests.
        let current = self.current.load(Ordering::Relaxed) as usize;
        let waits = |place: usize| self.is_ours((current + place) % self.slots);
        // Slots are filled in order, so those that wait follow each other.
        let (mut least, mut most) = (0, if waits(0) { self.slots } else { 0 });
        while least < most {
            let middle = least.midpoint(most);
            if waits(middle) {
                least = middle + 1;
            } else {
                most = middle;
            }
        }
        least
    }
}

impl SlotRing {
    /// The one reader of a ring.
    pub(super) fn new(shared: Arc<RingMemory>) -> SlotRing {
        let long = vec![0; LONGEST].into_boxed_slice();
        SlotRing { shared, taken: 0, long, received: None }
    }

    pub(super) fn memory(&self) -> &RingMemory {
        &self.shared
    }

    /// The next frame, the same until [`SlotRing::advance`]. `socket` is the ring's.
    #[inline]
    pub(super) fn frame(&mut self, socket: &PacketSocket) -> Option<Frame<'_>> {
        let slot = self.shared.current.load(Ordering::Relaxed) as usize;
        if !self.shared.is_ours(slot) {
            return None;
        }
        let is_long = self.shared.status(slot).load(Ordering::Relaxed) & libc::TP_STATUS_COPY != 0;
        if is_long && self.received.is_none() {
            self.received = Some(socket.receive(&mut self.long));
        }
        let slot = self.bytes(slot);
        Some(match self.received {
            Some(len) => long_frame(slot, &self.long, len),
            None => frame_in(slot).unwrap_or(MALFORMED),
        })
    }

    /// Frames that are done since the start.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Is done with the frame, and gives its slot back.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.taken += 1;
        self.received = None;
        let shared = &self.shared;
        let slot = shared.current.load(Ordering::Relaxed) as usize;
        // Release: pairs with the kernel's reading of the status; we have read the frame.
        shared.status(slot).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        let next = if slot + 1 == shared.slots { 0 } else { slot + 1 };
        shared.current.store(next as u32, Ordering::Relaxed);
    }

    /// The bytes of a slot of ours.
    fn bytes(&self, slot: usize) -> &[u8] {
        assert!(slot < self.shared.slots);
        debug_assert!(self.shared.is_ours(slot));
        // SAFETY: the slot lies inside the mapping. It is ours, so the kernel does not write to it until it is given back, which
        // takes `&mut self` and so ends this borrow.
        unsafe { slice::from_raw_parts(self.shared.memory.as_ptr().add(slot * SLOT), SLOT) }
    }
}

/// What stands for a frame whose header cannot be.
const MALFORMED: Frame<'_> =
    Frame { bytes: &[], lost: None, offload: Err(OffloadError::Layout), tag: None };

/// The frame in a slot, if its header can be.
fn frame_in(slot: &[u8]) -> Option<Frame<'_>> {
    let (held, len) = (u32_at(slot, HELD)?, u32_at(slot, LEN)?);
    let start = usize::from(u16_at(slot, MAC)?);
    let bytes = slot.get(start..)?.get(..held as usize)?;
    // Longer than a slot, and there was no room for it in the socket.
    let lost = (held < len).then_some(FrameLoss::NoRoom);
    let offload = match start.checked_sub(VNET_HEADER).and_then(|at| slot.get(at..start)) {
        Some(vnet) if lost.is_none() => Offload::parse(vnet.first_chunk()?),
        _ => Err(OffloadError::Layout),
    };
    Some(Frame { bytes, lost, offload, tag: tag(slot) })
}

/// A frame that is longer than its slot: received into `buffer`, and `len` bytes long with its virtio header.
fn long_frame<'a>(slot: &[u8], buffer: &'a [u8], len: usize) -> Frame<'a> {
    let lost = (len > buffer.len()).then_some(FrameLoss::TooLong);
    let (offload, bytes) = match buffer[..len.min(buffer.len())].split_first_chunk::<VNET_HEADER>()
    {
        Some((header, bytes)) => (Offload::parse(header), bytes),
        None => (Err(OffloadError::Layout), &[][..]),
    };
    Frame { bytes, lost, offload, tag: tag(slot) }
}

/// The VLAN tag that the kernel has taken out of a frame.
fn tag(slot: &[u8]) -> Option<[u8; 4]> {
    let status = u32_at(slot, STATUS).filter(|status| status & libc::TP_STATUS_VLAN_VALID != 0)?;
    let kind = match u16_at(slot, VLAN_TYPE) {
        Some(kind) if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 => kind,
        _ => libc::ETH_P_8021Q as u16,
    };
    let control = u16_at(slot, VLAN_CONTROL)?;
    let ([a, b], [c, d]) = (kind.to_be_bytes(), control.to_be_bytes());
    Some([a, b, c, d])
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_ne_bytes(*word))
}

const _: () = assert!(STATUS == 0 && SLOT.is_multiple_of(mem::align_of::<tpacket2_hdr>()));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_lies_in_a_slot_nothing_panics(
            words in proptest::collection::vec(any::<u16>(), 0..120),
            len in 0_usize..400,
        ) {
            let slot: Vec<u8> = words.iter().flat_map(|word| (word & 0xff).to_ne_bytes()).collect();
            if let Some(frame) = frame_in(&slot) {
                prop_assert!(frame.bytes.len() <= slot.len());
            }
            let frame = long_frame(&slot, &slot, len);
            prop_assert!(frame.bytes.len() <= len);
            prop_assert_eq!(frame.lost == Some(FrameLoss::TooLong), len > slot.len());
        }
    }
}
