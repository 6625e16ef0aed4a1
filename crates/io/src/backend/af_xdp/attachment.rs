//! What holds a device to its interface: program, sockets, rings and lent buffers, and the order in
//! which they are given up.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rheostat_base::QueueId;
use rheostat_kernel::Interface;
use rheostat_packet::{Mempool, PoolCache};
use rheostat_steer::IndirectionTable;

use super::busy_poll::BusyPoll;
use super::counters::{Counters, KernelDrops};
use super::frame_rings::FrameRings;
use super::open::{FrameRing, PacketRing};
use super::release::ReleaseProbe;
use super::ring::Gauge;
use super::transmit_state::{Flushed, TransmitState};
use crate::backend::bpf::{AttachMode, XdpProgram};
use crate::lock::lock;
use crate::sys::xdp_socket::{Transfer, XdpSocket};

/// How long the last packets have to get out when the device is closed.
const LAST_PACKETS: Duration = Duration::from_millis(100);
/// How long processors have to see that the program has stopped.
const LAST_PLACEMENTS: Duration = Duration::from_secs(1);

/// The sockets of one lane.
pub(super) struct LaneSockets {
    /// Those that it receives from, by hardware queue; of lanes that share RX rings, the first has them.
    pub(super) sockets: Vec<XdpSocket>,
    /// What waits to be received, by hardware queue.
    pub(super) waiting: Vec<Gauge<PacketRing>>,
    /// The one that it sends through, where it has none of the others.
    pub(super) sender: Option<XdpSocket>,
    pub(super) transmit: TransmitState,
    /// The hardware queue that the lane sends on.
    pub(super) transmit_queue: usize,
}

impl LaneSockets {
    /// The socket that the lane sends through.
    pub(super) fn transmit_socket(&self) -> &XdpSocket {
        self.sender.as_ref().unwrap_or_else(|| &self.sockets[self.transmit_queue])
    }

    /// All its sockets.
    pub(super) fn all(&self) -> impl Iterator<Item = &XdpSocket> {
        self.sockets.iter().chain(&self.sender)
    }
}

/// The device's hold on its interface. Queues share it; the last one to be dropped closes everything.
pub(super) struct Attachment {
    pub(super) interface: Interface,
    pub(super) index: u32,
    /// The longest packet that the interface carries, without the link header. Written by the follower of link events.
    pub(super) mtu: AtomicU32,
    /// Present until closed.
    pub(super) program: Option<XdpProgram>,
    /// Where lanes poll the driver's queues.
    pub(super) busy_poll: Option<BusyPoll>,
    pub(super) mode: AttachMode,
    pub(super) transfer: Transfer,
    /// Where the driver works in the process's memory: what finds out, at the end, whether it has let go, by hardware queue.
    pub(super) probes: Vec<ReleaseProbe>,
    /// Whether packets may lie in several buffers.
    pub(super) pieces: bool,
    /// By hardware queue.
    pub(super) queues: Vec<FrameRings<FrameRing>>,
    pub(super) lanes: Vec<LaneSockets>,
    /// How many lanes in a row receive from the same RX rings.
    pub(super) claimants: usize,
    pub(super) counters: Arc<Counters>,
    pub(super) pool: Mempool,
    /// How many packets lanes have taken, modulo 2^32: where in the order of arrival a burst stands.
    pub(super) stamps: Arc<AtomicU32>,
}

impl Attachment {
    /// The table that places buckets on lanes.
    pub(super) fn table(&self) -> Option<Arc<dyn IndirectionTable>> {
        self.program.as_ref().map(XdpProgram::table)
    }

    /// Whether packets come with the hash that the program computed.
    #[inline]
    pub(super) fn reports_hashes(&self) -> bool {
        self.program.as_ref().is_some_and(XdpProgram::reports_hashes)
    }

    /// The sockets from whose RX rings a lane receives, by hardware queue.
    #[inline]
    pub(super) fn receive_sockets(&self, lane: usize) -> &[XdpSocket] {
        &self.lanes[lane - lane % self.claimants].sockets
    }

    /// Leaves every packet to the kernel from now on, and waits until no processor can still be placing
    /// one.
    pub(super) fn stop(&self) {
        if self.counters.stopped.load(Ordering::Acquire) {
            return;
        }
        if let Some(program) = &self.program {
            let fence = program.stop();
            let timeout = Instant::now() + LAST_PLACEMENTS;
            while !fence.passed() && Instant::now() < timeout {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        // Release: pairs with the Acquire of the check whether all is received; every packet that was placed is in its ring.
        self.counters.stopped.store(true, Ordering::Release);
    }

    /// Packets that wait in the rings of all lanes.
    pub(super) fn backlog(&self) -> usize {
        let waiting = self.lanes.iter().flat_map(|lane| &lane.waiting);
        waiting.map(|ring| ring.waiting() as usize).sum()
    }

    /// Looks whether the interface is still there. When it is gone, or was replaced by another of its
    /// name, it will not come back for these sockets.
    pub(super) fn look_for_interface(&self) -> bool {
        let there = self.interface.index().is_ok_and(|index| index == self.index);
        if !there {
            self.counters.gone.store(true, Ordering::Relaxed);
        }
        there
    }

    /// What the kernel has dropped so far.
    pub(super) fn kernel_drops(&self) -> KernelDrops {
        let mut drops = KernelDrops::default();
        let mut dropped = 0;
        for lanes in self.lanes.chunks(self.claimants) {
            let mut full = 0;
            let sockets = lanes.iter().flat_map(LaneSockets::all);
            for statistics in sockets.filter_map(|socket| socket.statistics().ok()) {
                full += statistics.rx_ring_full.unwrap_or(0);
                dropped += statistics.rx_dropped;
                drops.invalid += statistics.rx_invalid_descs + statistics.tx_invalid_descs;
            }
            drops.queue_full.push(full);
        }
        // All sockets of a hardware queue have its FILL ring, and each states what was missed on that. Drivers miss buffers
        // without losing a packet, too.
        let sockets = self.lanes.first().map_or(&[][..], |lane| &lane.sockets);
        let statistics = sockets.iter().filter_map(|socket| socket.statistics().ok());
        // Kernels before 5.9 do not state it.
        let missed = statistics.map(|counts| counts.rx_fill_ring_empty_descs.unwrap_or(u64::MAX));
        let missed = missed.fold(0, u64::saturating_add);
        drops.fill_empty = dropped.min(missed);
        drops.too_long = dropped - drops.fill_empty;
        drops
    }

    /// The hardware queue that `lane` sends on.
    pub(super) fn transmit_queue(lane: QueueId, queues: usize) -> usize {
        lane.index() % queues
    }

    /// Lets what waits to be sent get out, for as long as there is hope.
    fn drain(&self) {
        let mut cache = PoolCache::new(self.pool.clone());
        let timeout = Instant::now() + LAST_PACKETS;
        loop {
            let mut hopeless = false;
            for lane in &self.lanes {
                if lane.transmit.has_ended() {
                    continue;
                }
                let flushed = lane.transmit.flush(lane.transmit_socket());
                hopeless |= flushed == Flushed::Hopeless;
            }
            self.queues.iter().for_each(|queue| while queue.reap(&mut cache) > 0 {});
            let lent: u64 = self.counters.lanes.iter().map(|lane| lane.lent.get()).sum();
            let completed: u64 = self.queues.iter().map(FrameRings::completed).sum();
            if hopeless || completed >= lent || Instant::now() >= timeout {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.stop();
        // Before the program: instances of virtual interfaces go with it.
        drop(self.busy_poll.take());
        // Takes the program off the interface.
        drop(self.program.take());
        self.drain();
        let drops = self.kernel_drops();
        *lock(&self.counters.at_close) = Some(drops);
        // The mappings first: each keeps its socket, and with it the queue, from being released. Those
        // of the lanes went with the lanes' queues, which hold this attachment.
        let loans: Vec<_> =
            std::mem::take(&mut self.queues).into_iter().map(FrameRings::close).collect();
        drop(std::mem::take(&mut self.lanes));
        let mut probes = std::mem::take(&mut self.probes).into_iter();
        for loans in loans {
            // A driver that works in our memory may do so for a moment longer. If it does not stop, its buffers are lost: another
            // user of them would share them with the driver.
            if probes.next().is_some_and(|probe| !probe.wait()) {
                continue;
            }
            // SAFETY: the sockets are closed, with which the kernel's copying ends (`xsk_release`
            // waits for receivers), and a driver has released the queue.
            unsafe { loans.call_in() };
        }
    }
}
