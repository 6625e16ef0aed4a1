//! `rheo sim rates`: use case III of Dyssect (thesis, 5.2.5), many small packets, up to what lanes can do and past it.
//!
//! Packets of a million flows by Zipf's law (exponent 1.1) arrive at eight lanes that can do 16 million per second; the rarest
//! flows, one packet in a thousand, are of the priority class. RSS++ has all eight lanes, Dyssect seven and one that
//! offloads; neither changes their number.

mod row;

use std::time::Duration;

use rheostat_measure::rounding::to_ten_thousandths;
use rheostat_packet::BURST;
use rheostat_steer::policy::dyssect::{Counts, Dyssect};
use rheostat_steer::policy::{Class, Latency, Objectives, Policy, Rsspp};
use thiserror::Error;

pub use self::row::RateRow;
use super::SimError;
use super::cases::NamedCase;
use super::parallel::in_parallel;
use super::slo::first_of_tail;
use super::trial::Trial;
use super::work::MeasuredWork;
use crate::costs::Costs;

/// Offered packets per microsecond.
pub const RATES: [f64; 8] = [2.0, 4.0, 8.0, 12.0, 14.0, 16.0, 18.0, 20.0];
const LANES: u16 = 8;
/// Of them Dyssect has one for offloading.
const COUNTS: Counts = Counts { working: 7, offloading: 1 };
/// All of a lane's time for a packet.
const PACKET: Duration = Duration::from_nanos(500);
const FLOWS: u32 = 1_000_000;
const ZIPF: f64 = 1.1;
const SHARDS: usize = 128;
/// The part of the packets that has priority.
const PRIORITY: f64 = 0.001;
/// What is not measured at the start.
const WARM_UP: Duration = Duration::from_millis(500);
/// Most packets per microsecond that are simulated.
const MOST: f64 = 100.0;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct RateBench<'a> {
    /// How long things take.
    pub costs: &'a Costs,
    /// Offered packets per microsecond.
    pub rates: Vec<f64>,
    /// How long each run takes, without half a second before.
    pub duration: Duration,
    /// What is random is drawn from it.
    pub seed: u64,
    /// How many runs to simulate at the same time.
    pub threads: usize,
}

/// Why there is no simulation.
#[derive(Debug, Error)]
pub enum RateError {
    /// No rate.
    #[error("{0} Mpps: above 0 and at most {MOST}")]
    Rate(f64),
    /// Nothing to measure.
    #[error("a run takes 100 ms or more, since plans are made that often")]
    Duration,
    /// The chain was not measured.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

impl RateBench<'_> {
    /// Simulates both policies. Rows are in the order of policies and rates.
    ///
    /// # Errors
    /// [`RateError`] when there is no such simulation.
    pub fn run(&self) -> Result<Vec<RateRow>, RateError> {
        if let Some(rate) = self.rates.iter().find(|rate| !(**rate > 0.0 && **rate <= MOST)) {
            return Err(RateError::Rate(*rate));
        }
        if self.duration < Duration::from_millis(100) {
            return Err(RateError::Duration);
        }
        let chain = self.costs.chain("firewall").ok_or(SimError::Chain("firewall"))?;
        let work = MeasuredWork::new(self.costs, chain, Duration::ZERO, f64::from(FLOWS));
        let rest = PACKET.as_nanos() as f64 - work.mean(1.0 / f64::from(LANES), BURST);
        let work = work.with_fixed(Duration::from_nanos(rest.max(0.0).round() as u64));
        let first_priority = first_of_tail(FLOWS, ZIPF, PRIORITY);
        let runs: Vec<(&str, f64)> = ["rsspp", "dyssect"]
            .into_iter()
            .flat_map(|policy| self.rates.iter().map(move |rate| (policy, *rate)))
            .collect();
        let row = |&(policy, rate): &(&str, f64)| {
            let trial = Trial {
                lanes: LANES,
                case: NamedCase::zipf("rates", ZIPF, 1, SHARDS),
                flows: FLOWS,
                first_priority,
                rate: rate * 1e6,
                warm_up: WARM_UP,
                duration: self.duration,
                seed: self.seed,
            };
            let outcome = trial.run(work.clone(), of_name(policy));
            let delivered = outcome.delivered_share();
            let mpps = outcome.delivered as f64 / self.duration.as_secs_f64() / 1e6;
            RateRow {
                simulated: true,
                policy: policy.to_owned(),
                offered_mpps: rate,
                mpps: to_ten_thousandths(mpps),
                dropped: to_ten_thousandths(1.0 - delivered),
                priority_p995_us: outcome.class_p995_us[Class::Priority.index()],
                regular_p995_us: outcome.class_p995_us[Class::Regular.index()],
                migrations: outcome.migrations,
                offloaded: outcome.offloaded,
                faults: outcome.faults,
            }
        };
        Ok(in_parallel(&runs, self.threads, row))
    }
}

fn of_name(policy: &str) -> Box<dyn Policy> {
    if policy == "rsspp" {
        return Box::new(Rsspp::default());
    }
    let waiting = Objectives::waiting(Duration::from_micros(100), Duration::from_micros(500));
    let mut policy = Dyssect::default();
    policy.objectives = Objectives { latency: Latency::Total, ..waiting };
    policy.offloading = COUNTS.offloading;
    policy.fixed = Some(COUNTS);
    Box::new(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench<'a>(costs: &'a Costs, rates: &[f64]) -> RateBench<'a> {
        let duration = Duration::from_millis(100);
        RateBench { costs, rates: rates.to_vec(), duration, seed: 1, threads: 2 }
    }

    #[test]
    fn packets_are_dropped_only_past_what_lanes_can_do() {
        let rows = bench(&Costs::built_in(), &[2.0, 20.0]).run().expect("rows");
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| row.faults == 0), "{rows:?}");
        for rows in rows.chunks(2) {
            assert_eq!(rows[0].dropped, 0.0, "{rows:?}");
            assert!(rows[1].dropped > 0.1 && rows[1].mpps > rows[0].mpps, "{rows:?}");
            assert!(rows.iter().all(|row| row.priority_p995_us.is_some()), "{rows:?}");
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let costs = Costs::built_in();
        for rate in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(matches!(bench(&costs, &[rate]).run(), Err(RateError::Rate(_))));
        }
        let short = RateBench { duration: Duration::ZERO, ..bench(&costs, &[1.0]) };
        assert!(matches!(short.run(), Err(RateError::Duration)));
    }
}
