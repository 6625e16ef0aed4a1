//! The ring through which the kernel hands over frames: blocks that it fills and we give back
//! (TPACKET_V3, Documentation/networking/packet_mmap.rst).
#![allow(unsafe_code)]

use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, mem};

use libc::{tpacket_block_desc, tpacket_hdr_v1, tpacket_hdr_variant1, tpacket3_hdr};
use memmap2::{MmapOptions, MmapRaw};

use crate::backend::intake::Frame;
use crate::segmentation::{Offload, OffloadError, VNET_HEADER};
use crate::sys::packet_socket::{PacketSocket, RingShape};

/// Bytes of a block. The shorter blocks are, the more a ring has of them, and the longer sparse packets, of which each may take a block
/// for itself, find room while no lane polls. A frame of 64 KiB, as segmentation offload makes them, fits with its headers.
const BLOCK: usize = 128 * 1024;

// Where fields lie in the header of a block.
const BLOCK_STATUS: usize =
    offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, block_status);
const BLOCK_PACKETS: usize =
    offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, num_pkts);
const BLOCK_FIRST: usize =
    offset_of!(tpacket_block_desc, hdr) + offset_of!(tpacket_hdr_v1, offset_to_first_pkt);
// And in that of a frame.
const NEXT: usize = offset_of!(tpacket3_hdr, tp_next_offset);
const HELD: usize = offset_of!(tpacket3_hdr, tp_snaplen);
const LEN: usize = offset_of!(tpacket3_hdr, tp_len);
const STATUS: usize = offset_of!(tpacket3_hdr, tp_status);
const MAC: usize = offset_of!(tpacket3_hdr, tp_mac);
const VLAN_CONTROL: usize =
    offset_of!(tpacket3_hdr, hv1) + offset_of!(tpacket_hdr_variant1, tp_vlan_tci);
const VLAN_TYPE: usize =
    offset_of!(tpacket3_hdr, hv1) + offset_of!(tpacket_hdr_variant1, tp_vlan_tpid);

/// The memory of a ring, and how far its lane has come.
pub(super) struct RingMemory {
    memory: MmapRaw,
    blocks: usize,
    /// The block that is read, or waited for. Written by the lane.
    current: AtomicU32,
    /// Frames of that block that are done. Written by the lane.
    done: AtomicU32,
}

/// A ring, in the hands of the one lane that reads it.
pub(super) struct BlockRing {
    shared: Arc<RingMemory>,
    /// Where the next frame of the current block starts, while the block is ours.
    next: Option<usize>,
    /// Frames that are done, of all blocks.
    taken: u64,
}

impl RingMemory {
    /// Gives `socket` a ring of `blocks` blocks.
    pub(super) fn new(socket: &PacketSocket, blocks: u32) -> io::Result<RingMemory> {
        let shape = RingShape { block_size: BLOCK as u32, blocks, hand_over_ms: 1 };
        socket.set_ring(&shape)?;
        let blocks = blocks as usize;
        let fd = socket.as_fd().as_raw_fd();
        let memory = MmapOptions::new().len(blocks * BLOCK).map_raw(fd)?;
        Ok(RingMemory { memory, blocks, current: AtomicU32::new(0), done: AtomicU32::new(0) })
    }

    /// A word in the header of a block.
    fn word(&self, block: usize, at: usize) -> &AtomicU32 {
        assert!(block < self.blocks && at + mem::size_of::<u32>() <= BLOCK);
        // SAFETY: the address lies inside the mapping, which lives as long as `self`, and is aligned:
        // blocks are, and so are the words of their headers.
        unsafe { AtomicU32::from_ptr(self.memory.as_mut_ptr().add(block * BLOCK + at).cast()) }
    }

    /// Whether the kernel has handed the block over.
    fn is_ours(&self, block: usize) -> bool {
        // Acquire: pairs with the kernel's barrier before it sets the status; frames are whole.
        self.word(block, BLOCK_STATUS).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Frames that wait, those of the block included that the kernel still fills. Of a moment: the lane
    /// goes on meanwhile.
    pub(super) fn backlog(&self) -> usize {
        // Relaxed: a moment's figure, exact once nothing arrives and the lane rests.
        let current = self.current.load(Ordering::Relaxed) as usize;
        let done = self.done.load(Ordering::Relaxed) as usize;
        let mut waiting = 0;
        for place in 0..self.blocks {
            let block = (current + place) % self.blocks;
            waiting += self.word(block, BLOCK_PACKETS).load(Ordering::Relaxed) as usize;
            if !self.is_ours(block) {
                break;
            }
        }
        waiting.saturating_sub(done)
    }
}

impl BlockRing {
    /// The one reader of a ring.
    pub(super) fn new(shared: Arc<RingMemory>) -> BlockRing {
        BlockRing { shared, next: None, taken: 0 }
    }

    pub(super) fn memory(&self) -> &RingMemory {
        &self.shared
    }

    /// The next frame, the same until [`BlockRing::advance`]. `None` when there is none, or what the
    /// kernel wrote cannot be: such a block is given back.
    pub(super) fn frame(&mut self) -> Option<Frame<'_>> {
        let block = self.shared.current.load(Ordering::Relaxed) as usize;
        if self.next.is_none() {
            if !self.shared.is_ours(block) {
                return None;
            }
            self.next = Some(self.shared.word(block, BLOCK_FIRST).load(Ordering::Relaxed) as usize);
        }
        let (at, has_more) = (self.next?, self.remaining(block) > 0);
        if !has_more || frame_at(self.bytes(block), at).is_none() {
            self.give_back(block);
            return None;
        }
        frame_at(self.bytes(block), at)
    }

    /// Frames that are done since the start.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Is done with the frame.
    pub(super) fn advance(&mut self) {
        self.taken += 1;
        let block = self.shared.current.load(Ordering::Relaxed) as usize;
        let Some(at) = self.next else { return };
        let distance = u32_at(self.bytes(block), at + NEXT).unwrap_or(0) as usize;
        // Relaxed: see `backlog`.
        let done = self.shared.done.load(Ordering::Relaxed) + 1;
        self.shared.done.store(done, Ordering::Relaxed);
        if self.remaining(block) == 0 || distance == 0 {
            self.give_back(block);
        } else {
            self.next = Some(at + distance);
        }
    }

    /// Frames of a block of ours that are not done.
    fn remaining(&self, block: usize) -> u32 {
        let packets = self.shared.word(block, BLOCK_PACKETS).load(Ordering::Relaxed);
        packets.saturating_sub(self.shared.done.load(Ordering::Relaxed))
    }

    /// The bytes of a block of ours.
    fn bytes(&self, block: usize) -> &[u8] {
        assert!(block < self.shared.blocks);
        debug_assert!(self.shared.is_ours(block));
        // SAFETY: the block lies inside the mapping. It is ours, so the kernel does not write to it until
        // it is given back, which takes `&mut self` and so ends this borrow.
        unsafe { slice::from_raw_parts(self.shared.memory.as_ptr().add(block * BLOCK), BLOCK) }
    }

    fn give_back(&mut self, block: usize) {
        self.next = None;
        let shared = &self.shared;
        // Nothing waits in it, until the kernel opens it anew.
        shared.word(block, BLOCK_PACKETS).store(0, Ordering::Relaxed);
        shared.done.store(0, Ordering::Relaxed);
        // Release: pairs with the kernel's reading of the status; we have read all frames.
        shared.word(block, BLOCK_STATUS).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        shared.current.store(((block + 1) % shared.blocks) as u32, Ordering::Relaxed);
    }
}

/// The frame whose header lies at `at` of a block.
fn frame_at(block: &[u8], at: usize) -> Option<Frame<'_>> {
    let header = block.get(at..)?;
    let (held, len) = (u32_at(header, HELD)?, u32_at(header, LEN)?);
    let start = usize::from(u16_at(header, MAC)?);
    let bytes = header.get(start..)?.get(..held as usize)?;
    let is_cut_short = held < len;
    let offload = match start.checked_sub(VNET_HEADER).and_then(|at| header.get(at..start)) {
        Some(vnet) if !is_cut_short => Offload::parse(vnet.first_chunk()?),
        _ => Err(OffloadError::Layout),
    };
    let status = u32_at(header, STATUS)?;
    let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| {
        let kind = match u16_at(header, VLAN_TYPE) {
            Some(kind) if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 => kind,
            _ => libc::ETH_P_8021Q as u16,
        };
        let control = u32_at(header, VLAN_CONTROL).unwrap_or(0) as u16;
        let ([a, b], [c, d]) = (kind.to_be_bytes(), control.to_be_bytes());
        [a, b, c, d]
    });
    Some(Frame { bytes, is_cut_short, offload, tag })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|word| u16::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_lies_in_a_block_nothing_panics(
            words in proptest::collection::vec(any::<u16>(), 0..120),
            at in 0_usize..300,
        ) {
            let block: Vec<u8> = words.iter().flat_map(|word| (word & 0xff).to_ne_bytes()).collect();
            if let Some(frame) = frame_at(&block, at) {
                prop_assert!(frame.bytes.len() <= block.len());
            }
        }
    }
}
