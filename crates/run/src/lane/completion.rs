//! The lane's part when a pool works for its service: see [`crate::pool`].

use rheostat_base::Time;
use rheostat_packet::BURST;

use super::{Lane, pool_client};

/// What a poll has found.
#[derive(Default)]
pub(super) struct Found {
    /// Packets from devices, and the bursts that they came in.
    pub(super) received: usize,
    pub(super) bursts: usize,
    /// Replies of a pool.
    pub(super) completed: usize,
}

impl Lane {
    /// Receives, and goes on with what a pool has done; again, if it had done something. Members that are given one task at a time
    /// answer it meanwhile, so what a poll costs is shared by several, up to [`BURST`].
    pub(super) fn receive_and_complete(&mut self, now: Time) -> Found {
        let mut found = Found::default();
        loop {
            let (packets, bursts) = self.receive(now);
            // Again if some were hairpins.
            while !self.fragments.is_empty() {
                self.track_fragments();
            }
            let completed = self.complete();
            found.received += packets;
            found.bursts += bursts;
            found.completed += completed;
            if completed == 0 || found.completed >= BURST || found.received >= BURST {
                return found;
            }
            self.ring_desk();
            self.out.flush();
        }
    }

    /// Packets for which a pool works.
    pub(crate) fn at_pool(&self) -> u64 {
        self.counters.at_pool.get()
    }

    /// Lets the service go on with what the pool has done. Returns how much that was.
    #[inline]
    pub(super) fn complete(&mut self) -> usize {
        let Some(client) = pool_client(&mut *self.service) else { return 0 };
        let ready = client.collect();
        if ready == 0 {
            return 0;
        }
        let completed = match self.shards.is_joint() {
            true => self.complete_jointly(),
            false => {
                // The last packet may have come long before.
                self.out.set_now(self.latest);
                if let Some(work) = self.service.deferred() {
                    work.settle(&mut self.shards, &mut self.out);
                }
                ready
            }
        };
        if self.out.has_reinjected() {
            self.reinject();
            self.process();
            while !self.fragments.is_empty() {
                self.track_fragments();
            }
        }
        completed
    }

    /// Lets the pool know of the tasks that this poll gave it.
    #[inline]
    pub(super) fn ring_desk(&mut self) {
        if let Some(client) = pool_client(&mut *self.service) {
            client.ring();
            self.counters.at_pool.set(client.packets() as u64);
        }
    }
}
