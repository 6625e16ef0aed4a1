//! `rheo bench offload`: what it costs that flows are away from their lane, and that it costs no packet.
//!
//! Three runs, one behind the other. In the first, thousands of flows leave and come home while shards move between two working
//! lanes, and packets are counted where they leave, by the numbers that they got where they arrived. The second and the third have
//! one working and one offloading lane, each on a core of its own: one measures how long packets take from lane to lane, at a rate
//! at which none waits for another; one what packets cost the lanes at the highest rate.

mod costs;
mod feed;
pub mod heavy;
mod hops;
pub mod lookups;
mod numbers;
mod row;
mod sabotage;
mod testbed;
mod transitions;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::BenchError;
pub use row::OffloadRow;
pub use sabotage::Sabotage;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct OffloadBench {
    /// How often flows leave or come home, at least.
    pub transitions: u64,
    /// Packets that arrive per second meanwhile.
    pub packets_per_second: u64,
    /// Decides about the packets, and what moves when.
    pub seed: u64,
    /// When to give up.
    pub limit: Duration,
    /// How long hops are measured.
    pub window: Duration,
    /// What is done wrong where packets leave, to show that it is noticed.
    pub sabotage: Option<Sabotage>,
}

/// What came of packets while flows left and came home.
#[derive(Clone, Debug, PartialEq)]
struct Transitions {
    transitions: u64,
    lost: u64,
    duplicated: u64,
    reordered: u64,
    dropped: BTreeMap<&'static str, u64>,
    migrations: u64,
    offloaded: u64,
    refused: u64,
    packets: u64,
}

/// Nanoseconds that half, 99 % and 99.5 % of packets did not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quantiles {
    p50: u64,
    p99: u64,
    p995: u64,
}

/// How long packets take.
#[derive(Clone, Debug, PartialEq)]
struct Hops {
    /// From lane to lane.
    hop: Quantiles,
    /// From when the working lane was given a packet until it left the offloading lane.
    trip: Quantiles,
    /// The same of packets of flows that are at home.
    home: Quantiles,
    hops: u64,
    run_delay_ms: f64,
    steal_ms: f64,
}

/// What packets cost lanes, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
struct Costs {
    home_ns: f64,
    sender_ns: f64,
    receiver_ns: f64,
    marked_percent: f64,
    home_mpps: f64,
    mpps: f64,
}

/// The length of a window in which costs are measured, of the length of that for hops.
const COST_WINDOW: u32 = 20;

impl OffloadBench {
    /// Measures everything; `say` is called with what comes next.
    ///
    /// # Errors
    /// [`BenchError`] when there are not two cores, a run cannot start, an invariant breaks, or the time is up.
    pub fn run(&self, mut say: impl FnMut(&str)) -> Result<OffloadRow, BenchError> {
        say("flows leave and come home");
        let transitions = transitions::run(self)?;
        say("packets go from lane to lane");
        let hops = hops::measure(self.window)?;
        say("packets cost lanes time");
        let costs = costs::measure(self.window / COST_WINDOW)?;
        Ok(OffloadRow::of(transitions, &hops, &costs))
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads, clock.

    use std::num::NonZeroU32;

    use super::*;

    fn bench(sabotage: Option<Sabotage>) -> OffloadBench {
        OffloadBench {
            transitions: 400,
            packets_per_second: 100_000,
            seed: 3,
            limit: Duration::from_secs(300),
            window: Duration::from_millis(200),
            sabotage,
        }
    }

    fn found(sabotage: Option<Sabotage>) -> (bool, bool, bool) {
        let found = transitions::run(&bench(sabotage)).expect("a run");
        assert!(found.transitions >= 400 && found.offloaded > 0, "{found:?}");
        (found.lost > 0, found.duplicated > 0, found.reordered > 0)
    }

    #[test]
    fn lanes_that_do_as_they_should_are_not_named() {
        assert_eq!(found(None), (false, false, false));
    }

    #[test]
    fn what_is_lost_doubled_or_reordered_is_counted_as_such() {
        let every = NonZeroU32::new(7).expect("seven");
        assert_eq!(found(Some(Sabotage::Lose(every))), (true, false, false));
        assert_eq!(found(Some(Sabotage::Double(every))), (false, true, false));
        assert_eq!(found(Some(Sabotage::Reverse(NonZeroU32::MIN))), (false, false, true));
    }

    #[test]
    fn a_row_has_all_figures() {
        if crate::testbed::Cores::available().expect("cores").count() < 2 {
            return;
        }
        let row = bench(None).run(|_| {}).expect("a row");
        assert!(row.is_sound(), "{row:?}");
        assert!(0 < row.hop_ns_p50 && row.hop_ns_p50 <= row.hop_ns_p99, "{row:?}");
        assert!(row.hop_ns_p99 <= row.hop_ns_p995 && row.trip_ns_p50 > 0, "{row:?}");
        assert!(row.mpps > 0.0 && row.home_ns > 0.0 && row.sender_ns > 0.0, "{row:?}");
    }
}
