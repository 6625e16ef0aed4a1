//! `rheo sim`: scenarios on as many lanes as one likes, in virtual time.
//!
//! The controller, the estimator, the policies, the dispatchers, the hash and the sources are those of a run. What is
//! simulated are lanes and queues, and the time that lanes take, which was measured on a machine: [`crate::costs`].
//! `docs/simulator.md` states what is modelled, what is not, and how that was checked.

pub mod cases;
mod class_meter;
mod flow_numbers;
mod lane;
mod ledger;
mod machine;
mod offloading;
mod packet;
mod parallel;
mod pauses;
mod phase_meter;
pub mod queues;
pub mod rates;
pub mod sched;
mod series_meter;
mod shard_moves;
mod simulation;
pub mod slo;
mod stretch;
pub mod throughput;
mod trial;
mod work;

#[cfg(test)]
mod queueing;
#[cfg(test)]
mod sabotage;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rheostat_base::{Clock, LaneId, Time};
use rheostat_control::Balancer;
use rheostat_steer::policy::{LaneBounds, Scaling};
use rheostat_steer::{Steering, SteeringError, dispatch, policy};
use thiserror::Error;

use self::ledger::Ledger;
use self::machine::{CorePlacement, SimMachine, Size};
use self::packet::Packets;
use self::pauses::Pauses;
use self::series_meter::{INTERVAL, SeriesMeter};
use self::simulation::Simulation;
use self::stretch::Stretch;
use self::work::MeasuredWork;
use crate::costs::Costs;
use crate::error::BenchError;
use crate::plans::{PlanLog, WatchedPlan};
use crate::record::RecordedRun;
use crate::scenario::{ChainName, Scenario, Traffic, policy_of};

/// Packets that all runs of a seed are fed before the next ones are made.
const BATCH: usize = 1 << 13;
/// Packets among which flows are counted.
const SAMPLE: usize = 200_000;
/// How often progress is reported.
const TELL: Duration = Duration::from_millis(200);
/// Packets per second of a source whose time is stretched anyway: few, so that nanoseconds are fine enough.
const REFERENCE_RATE: u64 = 100_000;

/// Simulates the runs of a scenario.
pub struct Simulator<'a> {
    /// What is run.
    pub scenario: &'a Scenario,
    /// How long things take.
    pub costs: &'a Costs,
    /// Whether lanes stop now and then as they did on the machine that the costs are from.
    pub noisy: bool,
    /// Reports how long plans take, in real time.
    pub stopwatch: Clock,
    /// How many runs to simulate at the same time.
    pub threads: usize,
}

/// Why there is no simulation.
#[derive(Debug, Error)]
pub enum SimError {
    /// Packets cannot be made.
    #[error(transparent)]
    Traffic(#[from] BenchError),
    /// The steering does not fit.
    #[error(transparent)]
    Steering(#[from] SteeringError),
    /// The chain was not measured.
    #[error("the file of costs has no chain `{0}`: measure it with `rheo bench costs`")]
    Chain(&'static str),
    /// What a scenario is about exists on real lanes only.
    #[error("`{0}` exists on real lanes only: use `rheo bench run`")]
    OnlyReal(&'static str),
    /// The source ends before the runs do.
    #[error("the traffic ends {0:.1} s into the run: take a longer capture, or a shorter duration")]
    Short(f64),
}

/// A policy on so many lanes under a load.
#[derive(Clone, Debug)]
struct SimCase {
    policy: String,
    lanes: u16,
    load: f64,
    /// Packets per second.
    rate: f64,
    work: MeasuredWork,
    /// Packets per second that a lane can process.
    capacity: f64,
}

/// Cases that are fed by one source.
struct Job<'a> {
    seed: u64,
    /// Of the source.
    rate: u64,
    traffic: Traffic,
    cases: Vec<&'a SimCase>,
}

impl Simulator<'_> {
    /// Runs everything. `done` is called with each run as it ends, `progress` now and then with how much is done,
    /// between 0 and 1. The runs are returned in the order of the scenario.
    ///
    /// # Errors
    /// [`SimError`]; runs that ended before were given to `done`.
    pub fn run(
        &self,
        mut done: impl FnMut(&RecordedRun),
        mut progress: impl FnMut(f64),
    ) -> Result<Vec<RecordedRun>, SimError> {
        let Scenario { offloading, goals, shares_cores, .. } = self.scenario;
        let only_real = [
            ("offloading", offloading.is_some()),
            ("slo", goals.is_some()),
            ("shares_cores", *shares_cores),
        ];
        if let Some((key, _)) = only_real.into_iter().find(|(_, is_set)| *is_set) {
            return Err(SimError::OnlyReal(key));
        }
        let steering = self.scenario.steering()?;
        let cases = self.cases(&steering)?;
        let jobs = self.jobs(&cases);
        let (next, over) = (AtomicUsize::new(0), jobs.iter().map(|_| AtomicU64::new(0)));
        let over: Vec<AtomicU64> = over.collect();
        let (sender, receiver) = mpsc::channel();
        let mut runs = Vec::new();
        let outcome = thread::scope(|scope| {
            for _ in 0..self.threads.clamp(1, jobs.len()) {
                let (sender, jobs, next, over, steering) =
                    (sender.clone(), &jobs, &next, &over, &steering);
                // Relaxed: each number is taken once, and nothing else hangs on it.
                scope.spawn(move || {
                    while let Some((job, over)) = {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        jobs.get(index).zip(over.get(index))
                    } {
                        // The receiver is gone once another job has failed.
                        if sender.send(self.run_job(job, steering, over)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            loop {
                match receiver.recv_timeout(TELL) {
                    Ok(Ok(finished)) => {
                        finished.iter().for_each(&mut done);
                        runs.extend(finished);
                    }
                    Ok(Err(error)) => {
                        next.store(usize::MAX / 2, Ordering::Relaxed);
                        return Err(error);
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        let of_job =
                            |over: &AtomicU64| f64::from_bits(over.load(Ordering::Relaxed));
                        progress(over.iter().map(of_job).sum::<f64>() / over.len() as f64);
                    }
                    Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
        });
        outcome?;
        let place = |run: &RecordedRun| {
            let same = |case: &SimCase| {
                (&case.policy, case.lanes, case.load.to_bits())
                    == (&run.policy, run.lanes, run.load.to_bits())
            };
            (cases.iter().position(same), run.seed)
        };
        runs.sort_by_key(place);
        Ok(runs)
    }

    fn cases(&self, steering: &Steering) -> Result<Vec<SimCase>, SimError> {
        let scenario = self.scenario;
        let name = match scenario.chain {
            ChainName::Firewall => "firewall",
            ChainName::Empty => "empty",
        };
        let chain = self.costs.chain(name).ok_or(SimError::Chain(name))?;
        let mut cases = Vec::new();
        for &lanes in &scenario.lanes {
            let flows = self.flows(steering, lanes)?;
            let share = 1.0 / f64::from(lanes);
            for load in scenario.loads_on(lanes) {
                let fixed = scenario.work.unwrap_or_default();
                let work = MeasuredWork::new(self.costs, chain, fixed, flows);
                let work = match scenario.rate {
                    None => work,
                    // All of a lane's time for a packet, of which the chain takes a part.
                    Some(rate) => {
                        let all = f64::from(lanes) * load / rate as f64 * 1e9;
                        let rest = (all - work.mean(share, rheostat_packet::BURST)).max(0.0);
                        work.with_fixed(Duration::from_nanos(rest.round() as u64))
                    }
                };
                let capacity = 1e9 / work.mean(share, rheostat_packet::BURST);
                let rate = load * f64::from(lanes) * capacity;
                for policy in &scenario.policies {
                    let (policy, work) = (policy.clone(), work.clone());
                    cases.push(SimCase { policy, lanes, load, rate, work, capacity });
                }
            }
        }
        Ok(cases)
    }

    /// How many flows are met at a time.
    fn flows(&self, steering: &Steering, lanes: u16) -> Result<f64, SimError> {
        let traffic = self.scenario.traffic_on(lanes);
        let source = traffic.source(REFERENCE_RATE, self.scenario.seeds[0])?;
        let mut packets = Vec::new();
        Packets::new(source, steering, 0, 0).fill(&mut packets, SAMPLE);
        let mut hashes: Vec<u32> = packets.iter().map(|packet| packet.hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Ok(hashes.len() as f64)
    }

    /// Cases of one seed are fed by the same source, as far as that is possible, and as many threads as there are
    /// have something to do.
    fn jobs<'a>(&self, cases: &'a [SimCase]) -> Vec<Job<'a>> {
        let stretches = self.scenario.traffic.stretches();
        let source_of = |case: &SimCase| {
            let rate = if stretches { REFERENCE_RATE } else { case.rate.round() as u64 };
            (rate, self.scenario.traffic_on(case.lanes))
        };
        let mut sources: Vec<(u64, Traffic)> = Vec::new();
        for source in cases.iter().map(source_of) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        let groups = sources.len() * self.scenario.seeds.len();
        let parts = self.threads.div_ceil(groups);
        let mut jobs = Vec::new();
        for &seed in &self.scenario.seeds {
            for source in &sources {
                let fed: Vec<&SimCase> =
                    cases.iter().filter(|case| source_of(case) == *source).collect();
                let part = fed.len().div_ceil(parts);
                let job = |cases: &[&'a SimCase]| {
                    let (rate, traffic) = source.clone();
                    Job { seed, rate, traffic, cases: cases.to_vec() }
                };
                jobs.extend(fed.chunks(part).map(job));
            }
        }
        jobs
    }

    fn run_job(
        &self,
        job: &Job<'_>,
        steering: &Steering,
        over: &AtomicU64,
    ) -> Result<Vec<RecordedRun>, SimError> {
        let source = job.traffic.source(job.rate, job.seed)?;
        let most = job.cases.iter().map(|case| u64::from(case.lanes)).max().unwrap_or(1);
        let in_flight = most * (u64::from(self.scenario.queue) + 2 * Size::RING as u64);
        let mut packets = Packets::new(source, steering, job.seed, in_flight);
        let mut running: Vec<_> = job.cases.iter().map(|case| self.simulation(case, job)).collect();
        let (mut batch, mut runs) = (Vec::with_capacity(BATCH), Vec::new());
        while !running.is_empty() {
            packets.fill(&mut batch, BATCH);
            let mut least = 1.0_f64;
            let mut still = Vec::with_capacity(running.len());
            for mut simulation in running {
                let share = simulation.feed(&batch);
                if share >= 1.0 {
                    runs.push(simulation.finish());
                } else if batch.is_empty() {
                    return Err(SimError::Short(simulation.tick as f64 / 1e9));
                } else {
                    least = least.min(share);
                    still.push(simulation);
                }
            }
            running = still;
            over.store(least.to_bits(), Ordering::Relaxed);
        }
        Ok(runs)
    }

    fn simulation(&self, case: &SimCase, job: &Job<'_>) -> Simulation<MeasuredWork> {
        let scenario = self.scenario;
        let (warm_up, lanes) = (scenario.warm_up, case.lanes);
        let start = warm_up.as_nanos() as u64;
        let end = start + scenario.duration.as_nanos() as u64;
        let size = Size::of(lanes, scenario.shards, scenario.queue as usize);
        let pauses = |lane: LaneId| match self.noisy {
            true => Pauses::of(&self.costs.noise, job.seed << 16 | u64::from(lane.0)),
            false => Pauses::none(),
        };
        let placement = match dispatch::by_name(policy_of(&case.policy)) {
            Ok(dispatch) => CorePlacement::Dispatch(dispatch),
            Err(_) => CorePlacement::Table,
        };
        let balancer =
            policy::with_scaling(policy_of(&case.policy), Scaling::default()).ok().map(|policy| {
                let log = PlanLog::default();
                let policy = WatchedPlan::new(policy, self.stopwatch.clone(), log.clone());
                let sizes = (lanes.into(), scenario.shards);
                let mut balancer = Balancer::new(Box::new(policy), None, sizes, Time::ZERO);
                let max = usize::from(lanes);
                let min = scenario.min_lanes.map_or(max, usize::from);
                balancer.set_bounds(LaneBounds { min, max });
                (balancer, log)
            });
        let ledger = Ledger::new(start..end);
        let machine = SimMachine::new(size, case.work.clone(), placement, pauses, ledger);
        Simulation {
            machine,
            balancer,
            stretch: Stretch::new(case.rate / job.rate as f64, &scenario.steps, warm_up),
            meter: SeriesMeter::new(lanes, warm_up),
            end,
            due: 0,
            tick: INTERVAL,
            run: RecordedRun {
                scenario: scenario.name.clone(),
                policy: case.policy.clone(),
                lanes,
                load: case.load,
                seed: job.seed,
                simulated: true,
                seconds: scenario.duration.as_secs_f64(),
                capacity: case.capacity,
                ..RecordedRun::default()
            },
        }
    }
}
