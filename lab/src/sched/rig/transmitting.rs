//! The end of a queue that lanes send through. The moment at which packets are handed over is when replies leave.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rheostat_base::{Clock, Time};
use rheostat_io::TxQueue;
use rheostat_packet::{Burst, Mbuf, PoolCache};
use rheostat_serve::work::WorkReply;
use rheostat_traffic::clients::frame::Received;

use super::counters::RigCounters;
use super::poll::millis;
use super::population::{Population, QueueShare, lock};
use super::samples::RigSample;
use super::stages::Stages;
use crate::sched::probe::ProbeMoments;

/// A transmit queue.
pub(super) struct Transmitting {
    all: Arc<Population>,
    queue: usize,
    ticks: Clock,
    /// For frames in several buffers.
    joined: Vec<u8>,
}

impl Transmitting {
    pub(super) fn new(all: &Arc<Population>, queue: usize, ticks: &Clock) -> Transmitting {
        Transmitting { all: all.clone(), queue, ticks: ticks.clone(), joined: Vec::new() }
    }
}

impl TxQueue for Transmitting {
    fn send(&mut self, burst: &mut Burst, pool: &mut PoolCache, _: Time) -> usize {
        let from = self.ticks.cycles();
        // Not the time of the poll: this is when replies leave.
        let left = self.all.clock.now();
        let Transmitting { all, queue, joined, .. } = self;
        let share = &all.queues[*queue];
        let counters = &share.transmitting;
        let mut samples = lock(&share.samples);
        let sent = burst.len();
        for packet in burst.drain(..) {
            counters.sent_bytes.add(packet.len() as u64);
            take(all, frame_of(&packet, joined), left, counters, |reply| {
                samples.record(RigSample::new(
                    reply.number,
                    left.as_nanos(),
                    reply.class,
                    reply.took,
                ));
                if all.config.records_stages {
                    record_stages(share, &reply, from.0);
                }
            });
            pool.free(packet);
        }
        counters.sent.add(sent as u64);
        counters.sends.add(u64::from(sent > 0));
        counters.ticks.add(self.ticks.cycles().0.wrapping_sub(from.0));
        sent
    }
}

fn frame_of<'a>(packet: &'a Mbuf, joined: &'a mut Vec<u8>) -> &'a [u8] {
    if !packet.is_chained() {
        return packet.data();
    }
    joined.clear();
    packet.segments().for_each(|part| joined.extend_from_slice(part));
    joined
}

fn record_stages(share: &QueueShare, reply: &WorkReply, sent: u64) {
    let mut stages = lock(&share.stages);
    if stages.len() < stages.capacity() {
        let received = share.received_at.load(Ordering::Relaxed);
        stages.push(Stages::new(received, ProbeMoments::of(reply), sent));
    }
}

/// The client of a frame takes it.
fn take(
    all: &Population,
    frame: &[u8],
    left: Time,
    counters: &RigCounters,
    mut on_reply: impl FnMut(WorkReply),
) {
    let found = Received::parse(frame)
        .and_then(|segment| Some((all.find(segment.client, segment.server)?, segment)));
    let Some((number, segment)) = found else {
        counters.stray.increment();
        return;
    };
    let mut replies = 0;
    let outcome = all.client(number).handle(&segment, millis(left), |reply| {
        replies += 1;
        on_reply(reply);
    });
    let share = &all.queues[usize::from(all.queue_of[number as usize])];
    if replies > 0 {
        counters.replies.add(replies);
        // Relaxed: numbers alone.
        share.under_way.fetch_sub(replies as i64, Ordering::Relaxed);
    }
    if outcome.opened {
        counters.opened.increment();
        share.opened.fetch_add(1, Ordering::Relaxed);
    }
    counters.broken.add(outcome.broken.into());
    counters.repeated.add(outcome.repeated.into());
    if outcome.sends {
        all.announce(number);
    }
}
