//! The lane's part when a pool works for its service: see [`crate::pool`].

use super::Lane;

impl Lane {
    /// Packets for which a pool works.
    pub(crate) fn at_pool(&self) -> u64 {
        self.counters.at_pool.get()
    }

    /// Lets the service go on with the packets whose replies have come. Returns how many.
    #[inline]
    pub(super) fn complete(&mut self) -> usize {
        let Some(client) = self.service.pool_client() else { return 0 };
        let ready = client.collect();
        if ready == 0 {
            return 0;
        }
        self.service.complete(&mut self.shards, &mut self.out, self.latest);
        if self.out.has_reinjected() {
            self.reinject();
            self.process();
            while !self.fragments.is_empty() {
                self.track_fragments();
            }
        }
        ready
    }

    /// Lets the pool know of the tasks that this poll gave it.
    #[inline]
    pub(super) fn ring_desk(&mut self) {
        if let Some(client) = self.service.pool_client() {
            client.ring();
            self.counters.at_pool.set(client.packets() as u64);
        }
    }
}
