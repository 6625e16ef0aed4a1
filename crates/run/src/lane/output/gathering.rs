//! Segments that a lane gathers while it has joint shards, and what it sends for other lanes: see [`crate::joint_shards`].

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Time;
use rheostat_packet::Burst;

use super::Output;
use crate::joint_shards::{JointShards, Outbox, Unsent};

/// A poll of another lane that began so long ago, and has not sent what it gathered, is at work that takes long: this lane sends it.
const LONGEST_GATHERING: Duration = Duration::from_micros(50);

/// The outboxes of the claimants, and which one is the lane's own.
#[derive(Clone)]
pub(super) struct OwnOutbox {
    pub(super) all: Arc<JointShards>,
    pub(super) number: usize,
}

impl OwnOutbox {
    #[inline]
    pub(super) fn own(&self) -> &Outbox {
        &self.all.outboxes()[self.number]
    }
}

impl Output {
    /// Gathers what is sent for joint shards in this outbox ([`Output::gather`]).
    pub(in crate::lane) fn gather_in(&mut self, (all, number): (Arc<JointShards>, usize)) {
        let outbox = OwnOutbox { all, number };
        if let Some(mut packets) = outbox.own().lock() {
            packets.bursts.resize_with(self.ports.len(), Burst::new);
        }
        self.ports.iter_mut().for_each(|port| port.outbox = Some(outbox.clone()));
        self.outbox = Some(outbox);
    }

    /// A visit of joint shards ends: moves what it sends to the outbox, from where other lanes can send it. Returns what to mark the
    /// shards with, if anything was sent. It leaves with the next [`Output::flush`].
    #[inline]
    pub(in crate::lane) fn gather(&mut self) -> Option<Unsent> {
        let outbox = self.outbox.as_ref()?;
        if self.ports.iter().all(|port| port.burst.is_empty()) {
            return None;
        }
        let own = outbox.own();
        let mut packets = own.lock()?;
        let mut is_full = false;
        for (port, gathered) in self.ports.iter_mut().zip(&mut packets.bursts) {
            if port.burst.len() <= gathered.remaining_capacity() {
                gathered.extend(port.burst.drain(..));
            } else {
                is_full = true;
            }
        }
        let unsent = own.note_gathered(&packets, outbox.number, self.polled);
        drop(packets);
        if is_full {
            self.flush();
        }
        Some(unsent)
    }

    /// Sends what another claimant has gathered, unless it does so itself at the moment.
    #[cold]
    pub(in crate::lane) fn send_for(&mut self, claimant: usize) {
        let Output { ports, pool, counters, polled, mirror, meter, outbox, .. } = self;
        let Some(outbox) = outbox else { return };
        let theirs = &outbox.all.outboxes()[claimant];
        let Some(mut packets) = theirs.try_lock() else { return };
        let mut taken = 0;
        for (port, gathered) in ports.iter_mut().zip(&mut packets.bursts) {
            if gathered.is_empty() {
                continue;
            }
            taken += gathered.len() as u64;
            // What this lane collects is of other shards.
            std::mem::swap(&mut port.burst, gathered);
            port.give_at_once(pool, counters, *polled, (mirror, meter));
            std::mem::swap(&mut port.burst, gathered);
        }
        counters.handoff_in.add(taken);
        theirs.note_taken(taken);
        theirs.note_sent(&packets);
    }

    /// Sends what other claimants gathered before they began with work that takes long.
    pub(in crate::lane) fn send_for_late(&mut self) {
        let limit = Time::from_nanos(
            self.polled.as_nanos().saturating_sub(LONGEST_GATHERING.as_nanos() as u64),
        );
        for claimant in 0.. {
            let Some(outbox) = &self.outbox else { return };
            let Some(other) = outbox.all.outboxes().get(claimant) else { return };
            if claimant != outbox.number && other.waits_since(limit) {
                self.send_for(claimant);
            }
        }
    }

    /// Whether other claimants have gathered segments. A lane that sees so does not sleep: it may have to send them.
    pub(in crate::lane) fn do_others_gather(&self) -> bool {
        self.outbox.as_ref().is_some_and(|outbox| {
            let others = outbox.all.outboxes().iter().enumerate();
            others
                .filter(|(claimant, _)| *claimant != outbox.number)
                .any(|(_, other)| other.waits())
        })
    }

    /// Whether the lane's outbox has segments.
    #[inline]
    pub(in crate::lane) fn has_gathered(&self) -> bool {
        self.outbox.as_ref().is_some_and(|outbox| !outbox.own().is_empty())
    }
}
