//! A transmit queue of a lane, with the packets collected for it.

use rheostat_base::{DeviceId, DropReason, Time};
use rheostat_capture::LaneMirror;
use rheostat_io::{TxQueue, Unsent};
use rheostat_packet::{Burst, PoolCache};

use super::gathering::OwnOutbox;
use super::{Meter, end_stage};
use crate::account::LaneCounters;
use crate::stages::BurstStage;

pub(super) struct Port {
    pub(super) device: DeviceId,
    pub(super) queue: Box<dyn TxQueue>,
    pub(super) burst: Burst,
    /// What the queue has taken and not sent, as it was last counted.
    pub(super) unsent: Unsent,
    /// Packets that the queue has sent or lost.
    pub(super) left: u64,
    /// What has to leave before the burst.
    pub(super) outbox: Option<OwnOutbox>,
}

impl Port {
    pub(super) fn flush(
        &mut self,
        pool: &mut PoolCache,
        counters: &LaneCounters,
        now: Time,
        notes: (&mut LaneMirror, &mut Meter),
    ) {
        match self.outbox {
            None => self.give(pool, counters, now, notes),
            Some(_) => self.flush_gathered(pool, counters, now, notes),
        }
    }

    /// Gives the device the segments gathered, and then the burst; in one call, if both fit. They have left the outbox once the device
    /// sends them.
    fn flush_gathered(
        &mut self,
        pool: &mut PoolCache,
        counters: &LaneCounters,
        now: Time,
        (mirror, meter): (&mut LaneMirror, &mut Meter),
    ) {
        let Some(outbox) = self.outbox.take() else { return };
        let mut packets = outbox.own().lock();
        if let Some(packets) = &mut packets {
            let gathered = &mut packets.bursts[self.device.index()];
            let room = gathered.remaining_capacity().min(self.burst.len());
            gathered.extend(self.burst.drain(..room));
            std::mem::swap(gathered, &mut self.burst);
            if !gathered.is_empty() {
                self.give(pool, counters, now, (mirror, meter));
                std::mem::swap(gathered, &mut self.burst);
            }
        }
        if !self.burst.is_empty() {
            self.give_at_once(pool, counters, now, (mirror, meter));
        } else if self.unsent.waiting > 0 {
            self.account((0, 0), counters);
        }
        packets.into_iter().for_each(|packets| outbox.own().note_sent(&packets));
        self.outbox = Some(outbox);
    }

    /// Gives the device the burst, and has it sent: another lane may send the next segments through another queue. A device may put a
    /// full burst off, in expectation of another, until it is asked for the second time what it has not sent.
    pub(super) fn give_at_once(
        &mut self,
        pool: &mut PoolCache,
        counters: &LaneCounters,
        now: Time,
        notes: (&mut LaneMirror, &mut Meter),
    ) {
        let is_full = self.burst.is_full();
        self.give(pool, counters, now, notes);
        if is_full {
            self.account((0, 0), counters);
        }
    }

    /// Gives the device the burst.
    pub(super) fn give(
        &mut self,
        pool: &mut PoolCache,
        counters: &LaneCounters,
        now: Time,
        (mirror, meter): (&mut LaneMirror, &mut Meter),
    ) {
        if mirror.is_armed() {
            mirror.offer(self.device, &self.burst);
        }
        let offered: u64 = self.burst.iter().map(|packet| packet.len() as u64).sum();
        end_stage(meter, BurstStage::Emit);
        let taken = self.queue.send(&mut self.burst, pool, now);
        end_stage(meter, BurstStage::Transmit);
        if mirror.is_armed() {
            mirror.took(self.device, taken);
        }
        let left: u64 = self.burst.iter().map(|packet| packet.len() as u64).sum();
        self.account((taken as u64, offered - left), counters);
        for (place, packet) in self.burst.drain(..).enumerate() {
            let reason = self.queue.why_left(place, &packet);
            counters.dropped.add(reason, 1);
            if mirror.is_armed() {
                mirror.dropped(self.device, &packet, reason);
            }
            pool.free(packet);
        }
        end_stage(meter, BurstStage::Emit);
    }

    /// Counts as sent what the queue has taken, so many packets and bytes just now, less what it has not
    /// sent; and what the operating system refused as dropped. No counter goes back: a packet counts when
    /// its fate is known.
    #[inline]
    pub(super) fn account(&mut self, (packets, bytes): (u64, u64), counters: &LaneCounters) {
        let before = std::mem::replace(&mut self.unsent, self.queue.unsent());
        let after = self.unsent;
        let lost = after.lost() - before.lost();
        let sent = (packets + before.waiting).saturating_sub(after.waiting + lost);
        counters.sent.add(sent);
        self.left += sent + lost;
        counters.sent_bytes.add(bytes.saturating_sub(after.refused_bytes - before.refused_bytes));
        if lost > 0 {
            counters.dropped.add(DropReason::TransmitRefused, after.refused - before.refused);
            counters.dropped.add(DropReason::TooBig, after.too_big - before.too_big);
            counters.dropped.add(DropReason::LinkDown, after.link_down - before.link_down);
        }
        if after.waiting != before.waiting {
            let elsewhere = counters.transmitting.get() - before.waiting;
            counters.transmitting.set(elsewhere + after.waiting);
        }
    }
}
