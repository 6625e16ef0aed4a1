//! Scenarios on real lanes: threads on cores of their own, packets that arrive when they are due whether or
//! not a lane is ready, and real time.
//!
//! The simulated NIC's pumped driver needs no core for the source, so two cores run two lanes under an open
//! loop. Latency counts from the moment a packet was due to arrive, not from when a lane came round to it,
//! so nothing is left out where a lane falls behind.

pub(crate) mod busy_work;
pub(crate) mod intervals;
mod observer;
mod testbed;

use std::collections::HashMap;
use std::time::Duration;

use rheostat_io::DrawnArrivals;

use self::busy_work::RoundTime;
use self::testbed::{Arriving, RealTestbed};
use crate::error::BenchError;
use crate::record::RecordedRun;
use crate::scenario::{Scenario, policy_of};
use crate::testbed::Cores;

/// How long lanes are measured to find out what they can do.
const CALIBRATION: Duration = Duration::from_millis(600);
/// How often, near full load.
const PASSES: u32 = 4;
/// The load at which they are measured.
const NEAR_FULL: f64 = 0.85;

/// One policy, on so many lanes, under one load, with one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The policy's name.
    pub policy: String,
    /// Lanes, each on a core of its own.
    pub lanes: u16,
    /// The load, as a share of what all lanes can do together.
    pub load: f64,
    /// What everything random is drawn from.
    pub seed: u64,
}

/// The trials of a scenario. Policies alternate, so that a machine that slows down does so for all.
pub fn trials(scenario: &Scenario) -> Vec<Trial> {
    let mut trials = Vec::new();
    for &seed in &scenario.seeds {
        for &lanes in &scenario.lanes {
            for load in scenario.loads_on(lanes) {
                let of = |policy: &String| Trial { policy: policy.clone(), lanes, load, seed };
                trials.extend(scenario.policies.iter().map(of));
            }
        }
    }
    trials
}

/// Runs trials of a scenario on this machine.
#[derive(Debug)]
pub struct Real<'a> {
    scenario: &'a Scenario,
    round: RoundTime,
    cores: u16,
    /// What a lane can do, in packets per second, by lanes and rounds of work.
    capacities: HashMap<(u16, u32), f64>,
    /// What arrived last: trials that follow each other differ in the policy.
    drawn: Option<(RealArrivals, Option<DrawnArrivals>)>,
}

/// What decides what arrives in a scenario.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RealArrivals {
    lanes: u16,
    rate: u64,
    seed: u64,
    length: Duration,
}

impl<'a> Real<'a> {
    /// Finds out how fast this machine works.
    ///
    /// # Errors
    /// [`BenchError`] when it has not the cores that the scenario requests.
    pub fn new(scenario: &'a Scenario) -> Result<Real<'a>, BenchError> {
        let cores = Cores::available()?;
        let lanes = scenario.lanes.iter().copied().max().unwrap_or(1).into();
        if !scenario.shares_cores {
            cores.require(lanes)?;
        }
        let known = rheostat_steer::policy::NAMES;
        match scenario.policies.iter().find(|name| !known.contains(&policy_of(name))) {
            Some(name) => Err(BenchError::OnlySimulated(name.clone())),
            None => Ok(Real {
                scenario,
                round: RoundTime::measure(),
                cores: cores.count().try_into().unwrap_or(u16::MAX),
                capacities: HashMap::new(),
                drawn: None,
            }),
        }
    }

    /// What a lane can do under the trial's work, in packets per second: what a load of 1 means. Measured
    /// when first asked for, by what lanes do in their busy time near full load.
    ///
    /// # Errors
    /// [`BenchError`] when the run could not be made, or was not sound.
    pub fn capacity(&mut self, trial: &Trial) -> Result<f64, BenchError> {
        let rounds = self.rounds(trial)?;
        self.capacity_of(trial.lanes, rounds)
    }

    /// Runs a trial.
    ///
    /// # Errors
    /// [`BenchError`] when it could not be run, or an invariant broke.
    pub fn run(&mut self, trial: &Trial) -> Result<RecordedRun, BenchError> {
        let rounds = self.rounds(trial)?;
        let capacity = self.capacity_of(trial.lanes, rounds)?;
        let rate = self
            .scenario
            .rate
            .map_or(trial.load * self.at_once(trial.lanes) * capacity, |rate| rate as f64);
        self.run_at(trial, rounds, rate.max(1.0), capacity)
    }

    /// Runs a trial under another rate of arrival than its load states, in packets per second.
    ///
    /// # Errors
    /// As [`Real::run`].
    pub fn run_at_rate(&mut self, trial: &Trial, rate: f64) -> Result<RecordedRun, BenchError> {
        let rounds = self.rounds(trial)?;
        let capacity = self.capacity_of(trial.lanes, rounds)?;
        self.run_at(trial, rounds, rate, capacity)
    }

    fn run_at(
        &mut self,
        trial: &Trial,
        rounds: u32,
        rate: f64,
        capacity: f64,
    ) -> Result<RecordedRun, BenchError> {
        let Scenario { warm_up, duration, .. } = *self.scenario;
        let arriving = Arriving::OpenLoop(rate.round() as u64);
        let testbed = RealTestbed { scenario: self.scenario, trial, rounds, arriving, drawn: None };
        let testbed = RealTestbed { drawn: self.drawn(&testbed, warm_up + duration)?, ..testbed };
        let mut run = testbed.run(warm_up, duration)?;
        run.capacity = capacity;
        Ok(run)
    }

    /// Rounds of work per packet: what the scenario gives, or, at a fixed rate, what makes the load.
    fn rounds(&mut self, trial: &Trial) -> Result<u32, BenchError> {
        match (self.scenario.work, self.scenario.rate) {
            (Some(work), _) => Ok(self.round.rounds(work)),
            (None, rate) => {
                let rate = rate.unwrap_or(1) as f64;
                let each = self.at_once(trial.lanes) * trial.load / rate;
                let chain = self.capacity_of(trial.lanes, 0)?.recip();
                if each <= chain {
                    let load = chain * rate / self.at_once(trial.lanes);
                    return Err(BenchError::RateTooHigh { load: trial.load, least: load });
                }
                Ok(self.round.rounds(Duration::from_secs_f64(each - chain)))
            }
        }
    }

    /// How many of so many lanes work at the same time.
    fn at_once(&self, lanes: u16) -> f64 {
        lanes.min(self.cores).into()
    }

    fn capacity_of(&mut self, lanes: u16, rounds: u32) -> Result<f64, BenchError> {
        // A lane that shares its core shows what half a core can do.
        let lanes = lanes.min(self.cores);
        if let Some(capacity) = self.capacities.get(&(lanes, rounds)) {
            return Ok(*capacity);
        }
        // The work of lanes that do not wait for each other comes out too low by as much as the source makes them wait for each
        // other; near full load it is right. What disturbs a lane makes it slower only, so the fastest pass counts.
        let mut capacity = self.pace(lanes, rounds, Arriving::Lossless)?;
        for _ in 0..PASSES {
            let rate = NEAR_FULL * f64::from(lanes) * capacity;
            capacity = capacity.max(self.pace(lanes, rounds, Arriving::OpenLoop(rate as u64))?);
        }
        self.capacities.insert((lanes, rounds), capacity);
        Ok(capacity)
    }

    /// What arrives at a testbed in a run of this length; drawn before unless it did last time.
    fn drawn(
        &mut self,
        testbed: &RealTestbed<'_>,
        length: Duration,
    ) -> Result<Option<DrawnArrivals>, BenchError> {
        let Arriving::OpenLoop(rate) = testbed.arriving else { return Ok(None) };
        let Trial { lanes, seed, .. } = *testbed.trial;
        let arrivals = RealArrivals { lanes, rate, seed, length };
        match &self.drawn {
            Some((of, drawn)) if *of == arrivals => Ok(drawn.clone()),
            _ => {
                // Not two of them in memory.
                self.drawn = None;
                let drawn = testbed.draw(length)?;
                self.drawn = Some((arrivals, drawn.clone()));
                Ok(drawn)
            }
        }
    }

    /// Packets that a lane processes in a second of its busy time.
    fn pace(&mut self, lanes: u16, rounds: u32, arriving: Arriving) -> Result<f64, BenchError> {
        let seed = self.scenario.seeds[0];
        let trial = Trial { policy: "rss".into(), lanes, load: 1.0, seed };
        let testbed =
            RealTestbed { scenario: self.scenario, trial: &trial, rounds, arriving, drawn: None };
        let testbed =
            RealTestbed { drawn: self.drawn(&testbed, CALIBRATION / 2 + CALIBRATION)?, ..testbed };
        let run = testbed.run(CALIBRATION / 2, CALIBRATION)?;
        let busy: f64 = run.series.load.iter().flatten().map(|&share| f64::from(share)).sum();
        let processed: u64 = run.series.delivered.iter().sum();
        Ok(processed as f64 / (busy * run.series.interval))
    }
}
