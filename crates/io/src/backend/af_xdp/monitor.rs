//! What can be asked of a device while its queues run elsewhere.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use super::attachment::Attachment;
use super::counters::{Counters, KernelDrops, LaneCounters};
use super::frame_rings::FrameRings;
use super::open::LONGEST_LINK_HEADER;
use crate::backend::bpf::{AttachMode, XdpProgram};
use crate::backend::interface_state;
use crate::backend::shared_ring::Claimants;
use crate::device::{DeviceCounters, DeviceMonitor, InterfaceMonitor};
use crate::lock::lock;
use crate::sharing::SharingCounters;
use crate::sys::xdp_socket::Transfer;

/// Sees the device as long as it is there, and remembers what it counted when it is gone.
pub(super) struct XdpMonitor {
    interface: String,
    counters: Arc<Counters>,
    attachment: Weak<Attachment>,
}

impl XdpMonitor {
    pub(super) fn new(interface: String, attachment: &Arc<Attachment>) -> XdpMonitor {
        XdpMonitor {
            interface,
            counters: attachment.counters.clone(),
            attachment: Arc::downgrade(attachment),
        }
    }

    fn kernel_drops(&self) -> KernelDrops {
        match self.attachment.upgrade() {
            Some(attachment) => attachment.kernel_drops(),
            None => lock(&self.counters.at_close).clone().unwrap_or_default(),
        }
    }

    fn sum(&self, count: impl Fn(&LaneCounters) -> u64) -> u64 {
        self.counters.lanes.iter().map(count).sum()
    }
}

impl DeviceMonitor for XdpMonitor {
    fn counters(&self) -> DeviceCounters {
        let drops = self.kernel_drops();
        let received = self.sum(|lane| lane.received.get());
        let oversize = self.sum(|lane| lane.oversize.get()) + drops.too_long;
        let malformed = self.sum(|lane| lane.refused.get());
        let full: u64 = drops.queue_full.iter().sum();
        DeviceCounters {
            // The kernel counts what it drops and lanes what they get; the rest waits in rings, and is
            // counted when it is taken out.
            arrived: received + oversize + malformed + drops.fill_empty + full,
            arrived_bytes: self.sum(|lane| lane.received_bytes.get()),
            queue_full: drops.queue_full,
            // Lanes get buffers by the FILL ring alone.
            no_buffer: 0,
            fill_empty: drops.fill_empty,
            oversize,
            malformed,
            sent: self.sum(|lane| lane.taken.get().saturating_sub(lane.unsent.get())),
            sent_bytes: self
                .sum(|lane| lane.taken_bytes.get().saturating_sub(lane.unsent_bytes.get())),
            copied: self.sum(|lane| lane.copied.get()),
            send_calls: self.sum(|lane| lane.send_calls.get()),
        }
    }

    fn is_exhausted(&self) -> bool {
        // Acquire: pairs with the Release in `stop`; what was placed is in the rings.
        let Some(attachment) = self.attachment.upgrade() else { return true };
        self.counters.stopped.load(Ordering::Acquire) && attachment.backlog() == 0
    }

    fn stop(&self) {
        if let Some(attachment) = self.attachment.upgrade() {
            attachment.stop();
        }
    }

    fn sharing(&self) -> Vec<SharingCounters> {
        let of_group = |rings: &Vec<Claimants>| {
            let mut sum = SharingCounters::default();
            rings.iter().for_each(|ring| sum.add(&ring.sample()));
            sum
        };
        self.counters.claimants.iter().map(of_group).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let attachment = self.attachment.upgrade();
        let there = attachment.as_ref().is_none_or(|attachment| attachment.look_for_interface());
        if !there || self.counters.gone.load(Ordering::Relaxed) {
            warnings.push(interface_state::gone(&self.interface));
        }
        if let Some(attachment) = attachment.as_ref().filter(|_| there) {
            warnings.extend(interface_state::down(&self.interface, &attachment.interface));
        }
        let invalid = self.kernel_drops().invalid;
        if invalid > 0 {
            warnings.push(format!("the kernel refused {invalid} descriptors"));
        }
        let refused: u64 =
            attachment.iter().flat_map(|a| &a.queues).map(FrameRings::refused).sum::<u64>()
                + self.sum(|lane| lane.refused.get());
        if refused > 0 {
            warnings.push(format!("the kernel gave back {refused} buffers that it did not have"));
        }
        warnings
    }

    fn notes(&self) -> Vec<String> {
        let Some(attachment) = self.attachment.upgrade() else { return Vec::new() };
        let mode = match attachment.mode {
            AttachMode::Generic => "generic",
            AttachMode::Native | AttachMode::Auto => "native",
        };
        let transfer = match attachment.transfer {
            Transfer::Zero => "without a copy",
            Transfer::Copy => "with a copy",
        };
        let polled = match attachment.busy_poll {
            Some(_) => ", lanes poll the driver",
            None => "",
        };
        let pieces = if attachment.pieces { ", long packets in several buffers" } else { "" };
        let shared = match attachment.claimants {
            1 => String::new(),
            claimants => format!(", {claimants} to a queue"),
        };
        vec![format!(
            "AF_XDP on `{}` in {mode} mode, {transfer}{pieces}{polled}: {} hardware queue(s), {} lane(s){shared}",
            self.interface,
            attachment.queues.len(),
            attachment.lanes.len(),
        )]
    }

    fn interface(&self) -> Option<&dyn InterfaceMonitor> {
        Some(self)
    }
}

impl InterfaceMonitor for XdpMonitor {
    fn let_go(&self) {
        // First, so that lanes neither send nor wait to.
        self.counters.gone.store(true, Ordering::Relaxed);
        self.stop();
    }

    fn is_detached(&self) -> bool {
        let Some(attachment) = self.attachment.upgrade() else { return false };
        // Relaxed: one that is being stopped is detached a moment later, which is no loss.
        !self.counters.stopped.load(Ordering::Relaxed)
            && attachment.program.as_ref().is_some_and(XdpProgram::is_detached)
    }

    fn set_mtu(&self, mtu: u32) {
        if let Some(attachment) = self.attachment.upgrade() {
            // Relaxed: a figure.
            attachment.mtu.store(mtu, Ordering::Relaxed);
        }
    }

    fn longest_packet(&self) -> Option<u32> {
        let attachment = self.attachment.upgrade().filter(|attachment| !attachment.pieces)?;
        let area = attachment.pool.area();
        Some((area.stride - area.headroom).saturating_sub(LONGEST_LINK_HEADER) as u32)
    }
}
