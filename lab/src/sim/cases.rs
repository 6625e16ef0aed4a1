//! `rheo sim cases`: how much of a load near the capacity of all lanes each policy gets through, where flows are unequal (Dyssect's
//! use case II), come in bursts, or change their weight; and how far `auto` is from the best of the others.
//!
//! Each packet takes the firewall's measured time and a fixed one on top, ten microseconds together, so that all policies can be
//! simulated in a minute. All lanes work throughout; nothing has an objective.

mod packets;
mod row;

use std::time::Duration;

use rheostat_steer::policy::{self, Settings, UnknownPolicy};
use thiserror::Error;

pub use self::row::{CaseRow, Gap, gaps};

pub(super) use self::packets::CasePackets;
use self::packets::Heavy;
use super::SimError;
use super::parallel::in_parallel;
use super::trial::Trial;
use super::work::MeasuredWork;
use crate::costs::Costs;
use rheostat_measure::rounding::to_ten_thousandths;

/// All of a lane's time for a packet.
const PACKET: Duration = Duration::from_micros(10);
/// The load as a share of what all lanes can do.
const LOAD: f64 = 0.95;
const FLOWS: u32 = 100_000;
/// What is not measured at the start: policies settle.
const WARM_UP: Duration = Duration::from_secs(2);

/// What arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NamedCase {
    /// Its name in rows.
    pub name: &'static str,
    /// The exponent of Zipf's law.
    zipf: f64,
    /// Packets of a flow that come in a row.
    burst: u32,
    /// Shards.
    pub(super) shards: usize,
    /// A flow beside these.
    heavy: Heavy,
    /// What rewriting the device's table takes; as measured if zero.
    rewrite: Duration,
}

/// What rewriting its table takes a ConnectX-4 (thesis, 5.2.3).
const SLOW_TABLE: Duration = Duration::from_millis(359);

impl NamedCase {
    pub(super) const fn zipf(
        name: &'static str,
        zipf: f64,
        burst: u32,
        shards: usize,
    ) -> NamedCase {
        NamedCase { name, zipf, burst, shards, heavy: Heavy::None, rewrite: Duration::ZERO }
    }

    /// All of them: use case II of Dyssect with 128 shards and with 16, an elephant over mice, a flow whose weight changes every
    /// second, and a device whose table is expensive to rewrite.
    pub const ALL: [NamedCase; 11] = [
        NamedCase::zipf("zipf-0.7", 0.7, 1, 128),
        NamedCase::zipf("zipf-0.9", 0.9, 1, 128),
        NamedCase::zipf("zipf-1.1", 1.1, 1, 128),
        NamedCase::zipf("zipf-1.1-burst-4", 1.1, 4, 128),
        NamedCase::zipf("zipf-1.1-burst-16", 1.1, 16, 128),
        NamedCase::zipf("zipf-1.1-burst-32", 1.1, 32, 128),
        NamedCase::zipf("zipf-0.7-16-shards", 0.7, 1, 16),
        NamedCase::zipf("zipf-1.1-16-shards", 1.1, 1, 16),
        NamedCase { heavy: Heavy::Always, ..NamedCase::zipf("elephant", 0.7, 1, 128) },
        NamedCase { heavy: Heavy::EverySecondSecond, ..NamedCase::zipf("changing", 0.7, 1, 128) },
        NamedCase { rewrite: SLOW_TABLE, ..NamedCase::zipf("slow-table", 0.9, 1, 128) },
    ];
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct CaseBench<'a> {
    /// How long things take.
    pub costs: &'a Costs,
    /// Lanes, from 3 to 64.
    pub lanes: u16,
    /// Each of [`policy::NAMES`].
    pub policies: Vec<String>,
    /// What arrives, one after the other.
    pub cases: Vec<NamedCase>,
    /// How long each run takes, without the two seconds before.
    pub duration: Duration,
    /// What is random is drawn from it.
    pub seed: u64,
    /// How many runs to simulate at the same time.
    pub threads: usize,
}

/// Why there is no simulation.
#[derive(Debug, Error)]
pub enum CaseError {
    /// Too few lanes to offload.
    #[error("{0} lanes: from 3 to 64 are simulated")]
    Lanes(u16),
    /// A policy has no known name.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// The chain was not measured.
    #[error(transparent)]
    Simulation(#[from] SimError),
}

impl CaseBench<'_> {
    /// Simulates each policy in each case. Rows are in the order of cases and policies.
    ///
    /// # Errors
    /// [`CaseError`] when there is no such simulation.
    pub fn run(&self) -> Result<Vec<CaseRow>, CaseError> {
        if !(3..=64).contains(&self.lanes) {
            return Err(CaseError::Lanes(self.lanes));
        }
        for name in &self.policies {
            policy::by_name(name)?;
        }
        let chain = self.costs.chain("firewall").ok_or(SimError::Chain("firewall"))?;
        let work = MeasuredWork::new(self.costs, chain, Duration::ZERO, f64::from(FLOWS));
        let share = 1.0 / f64::from(self.lanes);
        let rest = PACKET.as_nanos() as f64 - work.mean(share, rheostat_packet::BURST);
        let work = work.with_fixed(Duration::from_nanos(rest.max(0.0).round() as u64));
        let runs: Vec<(NamedCase, &String)> = self
            .cases
            .iter()
            .copied()
            .flat_map(|case| self.policies.iter().map(move |policy| (case, policy)))
            .collect();
        let row = |&(case, policy): &(NamedCase, &String)| self.run_case(case, policy, &work);
        Ok(in_parallel(&runs, self.threads, row))
    }

    fn run_case(&self, case: NamedCase, policy: &str, work: &MeasuredWork) -> CaseRow {
        let lanes = usize::from(self.lanes);
        let work = match case.rewrite {
            Duration::ZERO => work.clone(),
            rewrite => work.clone().with_fence(rewrite),
        };
        let settings = Settings { offloading: lanes / 3, ..Settings::default() };
        let capacity = 1e9 / work.mean(1.0 / lanes as f64, rheostat_packet::BURST);
        let trial = Trial {
            lanes: self.lanes,
            case,
            flows: FLOWS,
            first_priority: u32::MAX,
            rate: LOAD * capacity * lanes as f64,
            warm_up: WARM_UP,
            duration: self.duration,
            seed: self.seed,
        };
        let of_name = policy::with_settings(policy, &settings).expect("a known policy");
        let outcome = trial.run(work, of_name);
        CaseRow {
            simulated: true,
            case: case.name.to_owned(),
            policy: policy.to_owned(),
            shards: case.shards,
            delivered: to_ten_thousandths(outcome.delivered_share()),
            mpps: to_ten_thousandths(outcome.delivered as f64 / self.duration.as_secs_f64() / 1e6),
            p995_us: outcome.p995_us,
            migrations: outcome.migrations,
            offloaded: outcome.offloaded,
            faults: outcome.faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_lose_no_packet_and_balancing_helps() {
        let costs = Costs::built_in();
        let policies = ["rss", "rsspp", "auto"].map(str::to_owned).to_vec();
        let duration = Duration::from_millis(500);
        let cases = vec![NamedCase::ALL[1], NamedCase::ALL[9]];
        let (lanes, seed, threads) = (3, 1, 2);
        let bench = CaseBench { costs: &costs, lanes, policies, cases, duration, seed, threads };
        let rows = bench.run().expect("rows");
        assert_eq!(rows.len(), 6);
        assert!(rows.iter().all(|row| row.faults == 0 && row.mpps > 0.0), "{rows:?}");
        let of = |case: &str, policy: &str| {
            let row = rows.iter().find(|row| row.case == case && row.policy == policy);
            row.expect("a row").delivered
        };
        assert!(of("zipf-0.9", "rsspp") >= of("zipf-0.9", "rss"), "{rows:?}");
        assert_eq!(gaps(&rows).len(), 2);
    }

    #[test]
    fn unknown_policies_and_too_few_lanes_are_refused() {
        let costs = Costs::built_in();
        let duration = Duration::from_millis(1);
        let bench = |lanes, policy: &str| {
            let policies = vec![policy.to_owned()];
            let (cases, seed, threads) = (NamedCase::ALL.to_vec(), 1, 1);
            CaseBench { costs: &costs, lanes, policies, cases, duration, seed, threads }.run()
        };
        assert!(matches!(bench(2, "rss"), Err(CaseError::Lanes(2))));
        assert!(matches!(bench(4, "best"), Err(CaseError::Policy(_))));
    }
}
