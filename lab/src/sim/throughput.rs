//! `rheo sim throughput`: use case II of Dyssect (thesis, 5.2.4), what eight lanes deliver of a load as high as their capacity.
//!
//! 36 Gb/s of packets of 1001 bytes arrive, of a million flows by Zipf's law, in bursts of one flow. Eight lanes can do just that
//! where a packet of a chain of two functions is looked up once (state disaggregation); RSS and RSS++ look it up once per
//! function. Dyssect balances seven working lanes and an offloading one, as in the thesis; `balance` is its model with eight working
//! lanes.

mod row;

use std::time::Duration;

use rheostat_measure::rounding::to_ten_thousandths;
use rheostat_packet::BURST;
use rheostat_steer::policy::dyssect::{Counts, Dyssect, Goal};
use rheostat_steer::policy::{Load, Policy, Rss, Rsspp, SquaredLoad};
use thiserror::Error;

pub use self::row::{Gain, ThroughputRow, gains};
use super::SimError;
use super::cases::NamedCase;
use super::parallel::in_parallel;
use super::trial::Trial;
use super::work::MeasuredWork;
use crate::costs::Costs;

/// Exponents of Zipf's law, as in the thesis.
pub const ZIPF: [f64; 5] = [0.7, 0.8, 0.9, 1.0, 1.1];
/// Packets of a flow in a row, as in the thesis.
pub const BURSTS: [u32; 4] = [1, 4, 16, 32];
/// Dyssect's shards in the thesis, and those of RSS++.
pub const SHARDS: [usize; 2] = [16, 128];
const LANES: u16 = 8;
/// Of them Dyssect has one for offloading.
const OFFLOADING: Counts = Counts { working: 7, offloading: 1 };
/// Or none.
const WORKING: Counts = Counts { working: 8, offloading: 0 };
const BITS_PER_SECOND: f64 = 36e9;
const BYTES: f64 = 1_001.0;
const FLOWS: u32 = 1_000_000;
/// What one more lookup takes in a table of a million flows (docs/offloading.md, one lookup for all functions): 69.31 - 48.69 ns.
const LOOKUP: Duration = Duration::from_nanos(21);
/// A change of Dyssect's has to lower the sum of squared loads by as much as moving one percent of a lane over a difference of
/// two does.
const PRICE: SquaredLoad = SquaredLoad::of(Load::from_percent(1), Load::from_percent(2));
/// What is not measured at the start.
const WARM_UP: Duration = Duration::from_millis(500);

/// What shares packets out, and how often each is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    Rss,
    Rsspp,
    /// RSS with one lookup for all functions.
    Disaggregation,
    /// Dyssect's model for balance alone: no flow leaves.
    Balance,
    Dyssect,
}

impl System {
    const ALL: [System; 5] =
        [System::Rss, System::Rsspp, System::Disaggregation, System::Balance, System::Dyssect];

    fn name(self) -> &'static str {
        match self {
            System::Rss => "rss",
            System::Rsspp => "rsspp",
            System::Disaggregation => "disaggregation",
            System::Balance => "balance",
            System::Dyssect => "dyssect",
        }
    }

    fn policy(self) -> Box<dyn Policy> {
        match self {
            System::Rss | System::Disaggregation => Box::new(Rss),
            System::Rsspp => Box::new(Rsspp::default()),
            System::Balance => Box::new(balancing(WORKING)),
            System::Dyssect => Box::new(balancing(OFFLOADING)),
        }
    }

    fn looks_up_once(self) -> bool {
        !matches!(self, System::Rss | System::Rsspp)
    }
}

/// Dyssect with Table 5.4 as its goal and these numbers of lanes.
fn balancing(counts: Counts) -> Dyssect {
    let mut policy = Dyssect::default();
    policy.goal = Goal::Balance(PRICE);
    policy.offloading = counts.offloading;
    policy.fixed = Some(counts);
    policy
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct ThroughputBench<'a> {
    /// How long things take.
    pub costs: &'a Costs,
    /// Exponents of Zipf's law.
    pub zipf: Vec<f64>,
    /// Packets of a flow in a row.
    pub bursts: Vec<u32>,
    /// How long each run takes, without half a second before.
    pub duration: Duration,
    /// What is random is drawn from it.
    pub seed: u64,
    /// How many runs to simulate at the same time.
    pub threads: usize,
}

/// Why there is no simulation.
#[derive(Debug, Error)]
pub enum ThroughputError {
    /// No exponent.
    #[error("exponent {0}: above 0 and at most 2")]
    Zipf(f64),
    /// No packet.
    #[error("a burst has a packet or more")]
    Burst,
    /// Nothing to measure.
    #[error("a run takes 100 ms or more, since plans are made that often")]
    Duration,
    /// The chain was not measured.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

impl ThroughputBench<'_> {
    /// Simulates all systems. Rows are in the order of exponents, bursts, systems and shards.
    ///
    /// # Errors
    /// [`ThroughputError`] when there is no such simulation.
    pub fn run(&self) -> Result<Vec<ThroughputRow>, ThroughputError> {
        if let Some(zipf) = self.zipf.iter().find(|zipf| !(**zipf > 0.0 && **zipf <= 2.0)) {
            return Err(ThroughputError::Zipf(*zipf));
        }
        if self.bursts.contains(&0) {
            return Err(ThroughputError::Burst);
        }
        if self.duration < Duration::from_millis(100) {
            return Err(ThroughputError::Duration);
        }
        let chain = self.costs.chain("firewall").ok_or(SimError::Chain("firewall"))?;
        let rate = BITS_PER_SECOND / 8.0 / BYTES;
        let packet = f64::from(LANES) / rate * 1e9;
        let work = MeasuredWork::new(self.costs, chain, Duration::ZERO, f64::from(FLOWS));
        let rest = packet - work.mean(1.0 / f64::from(LANES), BURST);
        let fixed = Duration::from_nanos(rest.max(0.0).round() as u64);
        let once = work.clone().with_fixed(fixed);
        let each = work.with_fixed(fixed + LOOKUP);
        let mut runs = Vec::new();
        for &zipf in &self.zipf {
            for &burst in &self.bursts {
                for system in System::ALL {
                    runs.extend(SHARDS.map(|shards| (zipf, burst, system, shards)));
                }
            }
        }
        let row = |&(zipf, burst, system, shards): &(f64, u32, System, usize)| {
            let trial = Trial {
                lanes: LANES,
                case: NamedCase::zipf("throughput", zipf, burst, shards),
                flows: FLOWS,
                first_priority: u32::MAX,
                rate,
                warm_up: WARM_UP,
                duration: self.duration,
                seed: self.seed,
            };
            let work = if system.looks_up_once() { &once } else { &each };
            let outcome = trial.run(work.clone(), system.policy());
            let bits = outcome.delivered as f64 * BYTES * 8.0;
            ThroughputRow {
                simulated: true,
                system: system.name().to_owned(),
                shards,
                zipf,
                burst,
                gbps: to_ten_thousandths(bits / self.duration.as_secs_f64() / 1e9),
                delivered: to_ten_thousandths(outcome.delivered_share()),
                migrations: outcome.migrations,
                offloaded: outcome.offloaded,
                faults: outcome.faults,
            }
        };
        Ok(in_parallel(&runs, self.threads, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(costs: &Costs, zipf: f64, burst: u32) -> ThroughputBench<'_> {
        let (zipf, bursts) = (vec![zipf], vec![burst]);
        let duration = Duration::from_millis(100);
        ThroughputBench { costs, zipf, bursts, duration, seed: 1, threads: 2 }
    }

    #[test]
    fn one_lookup_and_moves_help_and_no_packet_is_lost() {
        let rows = bench(&Costs::built_in(), 0.9, 1).run().expect("rows");
        assert_eq!(rows.len(), 10);
        assert!(rows.iter().all(|row| row.faults == 0), "{rows:?}");
        let of = |system: &str, shards| {
            let row = rows.iter().find(|row| row.system == system && row.shards == shards);
            row.expect("a row").gbps
        };
        assert!(of("disaggregation", 16) > of("rss", 16), "{rows:?}");
        assert!(of("rsspp", 128) > of("rss", 128), "{rows:?}");
        assert!(rows.iter().any(|row| row.system == "dyssect" && row.offloaded > 0), "{rows:?}");
        let gains = gains(&rows);
        assert_eq!(gains.len(), 1);
        assert!((gains[0].throughput - of("dyssect", 16) / of("rsspp", 128)).abs() < 1e-9);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let costs = Costs::built_in();
        assert!(matches!(bench(&costs, 0.0, 1).run(), Err(ThroughputError::Zipf(_))));
        assert!(matches!(bench(&costs, f64::NAN, 1).run(), Err(ThroughputError::Zipf(_))));
        assert!(matches!(bench(&costs, 1.0, 0).run(), Err(ThroughputError::Burst)));
        let short = ThroughputBench { duration: Duration::ZERO, ..bench(&costs, 1.0, 1) };
        assert!(matches!(short.run(), Err(ThroughputError::Duration)));
    }
}
