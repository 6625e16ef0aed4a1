//! Packets that lie in several buffers.

use rheostat_packet::{Mbuf, PoolCache};

use super::counters::LaneCounters;

/// The packet whose parts come next.
#[derive(Default)]
pub(super) struct Assembly {
    /// Its start.
    begun: Option<Mbuf>,
    /// Whether the rest of a packet is to be thrown away.
    is_spoilt: bool,
}

impl Assembly {
    /// Adds the next part; `None` for a descriptor that cannot be. Returns the packet when `continues` says that it is whole.
    /// What cannot be put together is freed and counted once.
    #[inline]
    pub(super) fn add(
        &mut self,
        part: Option<Mbuf>,
        continues: bool,
        counters: &LaneCounters,
        pool: &mut PoolCache,
    ) -> Option<Mbuf> {
        let Some(part) = part else {
            counters.refused.increment();
            self.begun.take().into_iter().for_each(|begun| pool.free(begun));
            self.is_spoilt = continues;
            return None;
        };
        if self.is_spoilt {
            self.is_spoilt = continues;
            pool.free(part);
            return None;
        }
        let whole = match self.begun.take() {
            None => part,
            Some(mut begun) => match begun.append(part) {
                Ok(()) => begun,
                Err(part) => {
                    pool.free(part);
                    pool.free(begun);
                    counters.oversize.increment();
                    self.is_spoilt = continues;
                    return None;
                }
            },
        };
        if continues {
            self.begun = Some(whole);
            return None;
        }
        // Another core has just written both lines, and each packet's are needed soon after those of the one before.
        whole.prefetch_front();
        whole.prefetch();
        Some(whole)
    }
}
