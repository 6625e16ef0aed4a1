//! Costs as they are drawn while requests are simulated.

use rand::Rng;
use rand::rngs::SmallRng;

use super::costs::{Cost, RequestCosts};
use crate::sim::pauses::Pauses;

/// A cost in picoseconds: one value, or equally likely ones.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    first: u64,
    /// A power of two of them; empty for a constant.
    values: Vec<u64>,
}

impl Drawn {
    fn of(cost: &Cost) -> Drawn {
        let mut values = cost.ranks();
        let first = values[0];
        if values.iter().all(|value| *value == first) {
            values.clear();
        }
        Drawn { first, values }
    }

    fn draw(&self, random: &mut SmallRng) -> u64 {
        if self.values.is_empty() {
            return self.first;
        }
        let rank = random.random::<u32>() as usize % self.values.len();
        self.values[rank]
    }
}

macro_rules! drawn_costs {
    ($($name:ident: $($field:ident)|+),* $(,)?) => {
        /// What things cost, in picoseconds, and the random numbers that decide it.
        #[derive(Debug)]
        pub(super) struct DrawnCosts {
            random: SmallRng,
            $($name: [Drawn; [$(stringify!($field)),+].len()],)*
        }

        impl DrawnCosts {
            pub(super) fn new(costs: &RequestCosts, random: SmallRng) -> DrawnCosts {
                DrawnCosts { random, $($name: [$(Drawn::of(&costs.$field)),+],)* }
            }

            $(pub(super) fn $name(&mut self) -> u64 {
                let random = &mut self.random;
                self.$name.iter().map(|cost| cost.draw(random)).sum()
            })*
        }
    };
}

drawn_costs! {
    tcp_in: tcp_in_ns | parse_ns,
    tcp_out: tcp_out_ns,
    network: tcp_in_ns | parse_ns | tcp_out_ns | flush_ns,
    flush: flush_ns,
    give_k1: handoff_give_k1_ns,
    take_k1: handoff_take_k1_ns,
    give_k2: handoff_give_k2_ns,
    take_k2: handoff_take_k2_ns,
    member: handoff_member_ns,
    latency: handoff_latency_ns,
    wake: wake_ns,
    queue_free: queue_lock_free_ns,
    queue_taken: queue_lock_taken_ns,
    queue_contended: queue_lock_contended_ns,
    connection_same: connection_lock_same_ns,
    connection_other: connection_lock_other_ns,
    connection_move: connection_move_ns,
    sharing: sharing_ns,
    steal: steal_ns,
}

/// The moments in which the machine lets a worker not run.
#[derive(Debug)]
pub(super) struct Stalls {
    /// By worker; empty on a machine that always runs.
    pub(super) workers: Vec<Pauses>,
}

impl Stalls {
    /// When a worker is done that does `work` picoseconds from `start` on.
    pub(super) fn end(&mut self, worker: usize, start: u64, work: u64) -> u64 {
        let Some(pauses) = self.workers.get_mut(worker) else {
            return start + work;
        };
        let (from, length) = (start / 1_000, work / 1_000);
        let begun = pauses.start(from);
        start + work + (pauses.end(begun, length) - from - length) * 1_000
    }
}
