//! How long lanes take.

use std::time::Duration;

use crate::costs::{ChainCosts, Costs};

/// How long lanes take for what they do, in nanoseconds.
pub(super) trait SimWork {
    /// To process a packet: `luck` decides how much work it happens to be, `flows` among how many flows it is
    /// looked up, as [`SimWork::working_set`] numbers them.
    fn packet(&self, luck: u32, flows: usize) -> u64;

    /// What a packet of so many bytes takes for these.
    fn bytes(&self, _bytes: u16) -> u64 {
        0
    }

    /// The number by which [`SimWork::packet`] knows the flows of a lane that has this share of all shards.
    fn working_set(&self, share: f64) -> usize;

    /// What else there is to do.
    fn overhead(&self) -> Overhead;
}

/// What a lane does beside processing packets, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Overhead {
    /// For every poll that finds something.
    pub(super) poll: u64,
    /// To hand a packet to another lane, both sides together: one half each.
    pub(super) handoff: u64,
    /// To give a shard away.
    pub(super) release: u64,
    /// To take it in.
    pub(super) install: u64,
    /// To wake a parked lane.
    pub(super) wake: u64,
    /// From the rewriting of the table until it is in force.
    pub(super) fence: u64,
    /// For a packet that a core only dispatches, beside handing it over.
    pub(super) dispatch: u64,
}

/// Work as it was measured: a fixed time per packet, and the chain's.
#[derive(Clone, Debug)]
pub(super) struct MeasuredWork {
    fixed: u64,
    /// Nanoseconds for a thousand bytes.
    kilobyte: u64,
    /// By working set, each twice the one before: the chain's time for each rank of luck.
    tables: Vec<Vec<u32>>,
    /// Flows of the whole load.
    flows: f64,
    overhead: Overhead,
}

/// Ranks of luck that are distinguished.
const RANKS: usize = 1 << 10;
/// Flows of the smallest working set.
const FEWEST: f64 = 256.0;
/// Working sets: up to four million flows.
const SETS: usize = 15;

impl MeasuredWork {
    /// The chain with these costs and a fixed time on every packet, under a load of `flows` flows.
    pub(super) fn new(
        costs: &Costs,
        chain: &ChainCosts,
        fixed: Duration,
        flows: f64,
    ) -> MeasuredWork {
        let table = |set: usize| {
            let flows = FEWEST * f64::from(1_u32 << set);
            let rank = |rank: usize| chain.nanos((rank as f64 + 0.5) / RANKS as f64, flows) as u32;
            (0..RANKS).map(rank).collect()
        };
        let nanos = |of: f64| of.round() as u64;
        MeasuredWork {
            fixed: fixed.as_nanos() as u64,
            kilobyte: 0,
            tables: (0..SETS).map(table).collect(),
            flows,
            overhead: Overhead {
                poll: nanos(chain.poll_ns),
                handoff: nanos(costs.handoff_ns.median()),
                release: nanos(costs.release_ns.median()),
                install: nanos(costs.install_ns.median()),
                wake: nanos(costs.wake_ns.median()),
                fence: nanos(costs.fence_ns.median()),
                dispatch: nanos(costs.dispatched().mean(FEWEST)),
            },
        }
    }

    /// What a packet takes on average, its part of a poll of `burst` packets included, on a lane with this share of
    /// the flows.
    pub(super) fn mean(&self, share: f64, burst: usize) -> f64 {
        let table = &self.tables[self.working_set(share)];
        let chain = table.iter().map(|ns| f64::from(*ns)).sum::<f64>() / table.len() as f64;
        self.fixed as f64 + chain + self.overhead.poll as f64 / burst as f64
    }

    /// The same with so many nanoseconds for every thousand bytes of a packet.
    pub(super) fn with_kilobyte(self, kilobyte: u64) -> MeasuredWork {
        MeasuredWork { kilobyte, ..self }
    }

    /// The same where rewriting the device's table takes so long.
    pub(super) fn with_fence(self, fence: Duration) -> MeasuredWork {
        let overhead = Overhead { fence: fence.as_nanos() as u64, ..self.overhead };
        MeasuredWork { overhead, ..self }
    }

    /// The same with another fixed time.
    pub(super) fn with_fixed(self, fixed: Duration) -> MeasuredWork {
        MeasuredWork { fixed: fixed.as_nanos() as u64, ..self }
    }
}

impl SimWork for MeasuredWork {
    #[inline]
    fn packet(&self, luck: u32, flows: usize) -> u64 {
        self.fixed + u64::from(self.tables[flows][luck as usize >> (u32::BITS - RANKS.ilog2())])
    }

    #[inline]
    fn bytes(&self, bytes: u16) -> u64 {
        self.kilobyte * u64::from(bytes) / 1_000
    }

    fn working_set(&self, share: f64) -> usize {
        let doublings = (self.flows * share / FEWEST).max(1.0).log2().round();
        (doublings as usize).min(SETS - 1)
    }

    fn overhead(&self) -> Overhead {
        self.overhead
    }
}
