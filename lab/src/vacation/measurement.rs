//! A case with real threads: workers of the runtime that share lanes, real sleeps, and the simulated NIC, which needs no
//! core and never sleeps.

mod latency_meter;

use std::hint::spin_loop;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rheostat_base::{Clock, ClockSource, Time};
use rheostat_functions::shipped;
use rheostat_io::{DrawnArrivals, Pacing, SimConfig, SimNic};
use rheostat_kernel::sleep::{SleepProfile, Sleeper, calibrate};
use rheostat_run::poll::{Busy, StepSleep};
use rheostat_run::{LanePolling, LoadReporting, Polling, Runtime, RuntimeConfig, Sample, Service};
use rheostat_state::FlowHasher;
use rheostat_traffic::{Limited, RateStep, Stepped};

use self::latency_meter::{LatencyMeter, VacationLatencies};
use super::observation::{LaneObservation, Observation, Vacations};
use super::simulation::{Policy, Simulation};
use crate::datagrams::Datagrams;
use crate::disturbance::Disturbance;
use crate::error::BenchError;
use crate::real::busy_work::{BusyWork, RoundTime};
use crate::real::intervals::{arrived, delivered, no_room};
use crate::testbed::dut::{self, Bounce};
use crate::testbed::{Cores, Loops, lanes};
use crate::worker_time::WorkersCpu;

/// Entries of the indirection table, and shards.
const BUCKETS: usize = 128;
/// Flows of what arrives.
const FLOWS: u16 = 1_024;
/// Sleeps of each duration that are measured before a case.
const SLEEPS: usize = 1_000;
/// Packets of a case at most: what is drawn of more takes more memory than a device draws ahead.
const MOST_PACKETS: f64 = 700_000.0;
/// How long loads are found out for, and how long before that.
const PILOT: Duration = Duration::from_millis(150);
/// What a packet takes beside its work: receiving it, and sending it back.
const HARNESS: Duration = Duration::from_nanos(150);

/// Runs cases on this machine.
#[derive(Debug)]
pub struct Measurement {
    round: RoundTime,
}

/// What there was to see at one moment.
struct VacationObservation {
    sample: Sample,
    cpu: WorkersCpu,
    disturbance: Disturbance,
}

impl VacationObservation {
    fn now(runtime: &Runtime) -> VacationObservation {
        VacationObservation {
            sample: runtime.view().sample(),
            cpu: WorkersCpu::now(),
            disturbance: Disturbance::read(),
        }
    }
}

impl Measurement {
    /// Finds out how fast this machine works.
    pub fn new() -> Measurement {
        Measurement { round: RoundTime::measure() }
    }

    /// How long sleeps take on this machine now, beside a CPU-bound program or without one.
    ///
    /// # Errors
    /// [`BenchError`] when a thread cannot be started.
    pub fn sleeps(&self, is_disturbed: bool) -> Result<SleepProfile, BenchError> {
        let _program = self.program(is_disturbed)?;
        // On a thread of its own: the caller keeps its timer slack.
        let thread = thread::Builder::new().name("calibration".into()).spawn(|| {
            let clock = Clock::new();
            calibrate(&Sleeper::new(clock.clone()), &clock, SLEEPS, || {})
        })?;
        Ok(thread.join().expect("a calibration does not panic"))
    }

    /// A CPU-bound program on all cores where lanes are to be disturbed, and none elsewhere.
    fn program(&self, is_disturbed: bool) -> Result<Loops, BenchError> {
        let mut program = Loops::default();
        if is_disturbed {
            for &core in Cores::available()?.as_slice() {
                program.start("busy-program", core, || {
                    spin_loop();
                    true
                })?;
            }
        }
        Ok(program)
    }

    /// Runs what `setup` describes with real threads, beside a CPU-bound program on all cores or without one. All lanes have
    /// the rates of the first; what the setup has on the costs of sleeps and polls counts for nothing. The measured part
    /// ends earlier where more than some 700,000 packets would arrive.
    ///
    /// # Errors
    /// [`BenchError`] when it cannot be run, an invariant broke, or the policy is none for measurements.
    pub fn run(&self, setup: &Simulation, is_disturbed: bool) -> Result<Observation, BenchError> {
        let (lanes, clock) = (setup.rates.len(), Clock::new());
        let length = length(setup);
        let steering = Arc::new(dut::steering(BUCKETS, BUCKETS)?);
        let hasher = FlowHasher::new([setup.seed; FlowHasher::SEED_WORDS]);
        let shards = dut::shards(&shipped::empty(), &steering, 1, (hasher, setup.seed))?;
        let descriptors = setup.descriptors.next_power_of_two() as u32;
        let pool = lanes::pool(3 * lanes as u32 * descriptors + 8_192)?;

        let mut config = SimConfig::new("load", lanes as u16, steering.clone());
        config.descriptors = descriptors;
        // One packet a second, times the rate.
        let source = Datagrams::new(FLOWS, setup.spacing, 1.0, setup.seed);
        let source = Stepped::new(source, steps(&setup.rates[0], lanes as f64))?;
        let source = Limited::new(source, None, Some(length));
        let within = length + Duration::from_millis(10);
        let drawn = DrawnArrivals::draw(&config, Box::new(source), &pool, within)?;

        let _program = self.program(is_disturbed)?;
        let origin = clock.now() + Duration::from_millis(2);
        config.pacing = Pacing::OpenLoop { origin: Some(origin) };
        let meter = LatencyMeter::new(clock.clone());
        let (from, until) = (origin + setup.warm_up, origin + length);
        meter.measure(from, until);
        let nic = SimNic::open_drawn(&config, &drawn, Arc::new(clock.clone()), |_| meter.sink())?;
        let runtime_config = RuntimeConfig {
            workers: Cores::available()?.bound(setup.workers),
            polling: polling(&setup.policy),
            handoff_capacity: 1 << 10,
            reporting: LoadReporting::Lanes,
            ..RuntimeConfig::new(lanes, pool, steering, hasher)
        };
        let rounds = self.round.rounds(setup.service.saturating_sub(HARNESS));
        let service = |_| Box::new(BusyWork::new(Box::new(Bounce), rounds)) as Box<dyn Service>;
        let runtime =
            Runtime::start(runtime_config, vec![Box::new(nic)], clock.clone(), service, shards)?;
        wait_until(&clock, from);
        let first = VacationObservation::now(&runtime);
        wait_until(&clock, until);
        let last = VacationObservation::now(&runtime);
        lanes::finish(runtime)?;
        Ok(observe(&first, &last, &meter.latencies()))
    }

    /// The same with rates by which lanes have the loads that they are to have: a packet takes longer than its work, the more
    /// the fewer there are in a burst. Found out by a short run.
    ///
    /// # Errors
    /// As [`Measurement::run`].
    pub fn at_load(
        &self,
        setup: &Simulation,
        is_disturbed: bool,
    ) -> Result<Simulation, BenchError> {
        let rate = setup.rates[0].last().map_or(0.0, |(_, rate)| *rate);
        if rate == 0.0 {
            return Ok(setup.clone());
        }
        let pilot = Simulation {
            rates: vec![vec![(Duration::ZERO, rate)]; setup.rates.len()],
            warm_up: PILOT,
            length: 2 * PILOT,
            ..setup.clone()
        };
        let seen = self.run(&pilot, is_disturbed)?;
        let factor = setup.service.as_secs_f64() / seen.service.max(1e-9);
        // What one stall did to a short run is not to make the load another one.
        let factor = factor.clamp(0.25, 2.0);
        let scaled = |rates: &Vec<(Duration, f64)>| {
            rates.iter().map(|(at, rate)| (*at, rate * factor)).collect()
        };
        let rates = setup.rates.iter().map(scaled).collect();
        Ok(Simulation { rates, ..setup.clone() })
    }
}

impl Default for Measurement {
    fn default() -> Measurement {
        Measurement::new()
    }
}

fn polling(policy: &Policy) -> Polling {
    match policy {
        Policy::Busy => Busy::polling(),
        Policy::Metronome(settings) => settings.polling(),
        Policy::StepSleep(most) => StepSleep::polling(*most),
    }
}

/// What the rate of one packet a second is multiplied by, so that all lanes have these rates. Nothing arrives before the first.
fn steps(rates: &[(Duration, f64)], lanes: f64) -> Vec<RateStep> {
    let steps = rates.iter().map(|&(at, rate)| RateStep { at, factor: rate * lanes });
    let starts_later = rates.first().is_none_or(|(at, _)| !at.is_zero());
    let nothing = starts_later.then_some(RateStep { at: Duration::ZERO, factor: 0.0 });
    nothing.into_iter().chain(steps).collect()
}

/// How long a case is, warm-up included.
fn length(setup: &Simulation) -> Duration {
    let most = setup.rates[0].iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let most = most * setup.rates.len() as f64;
    let fits = if most > 0.0 { MOST_PACKETS / most } else { f64::MAX };
    let length = setup.length.as_secs_f64().min(fits);
    Duration::from_secs_f64(length).max(setup.warm_up + Duration::from_millis(1))
}

fn wait_until(clock: &Clock, end: Time) {
    let now = clock.now();
    if end > now {
        thread::sleep(end.since(now));
    }
}

/// What came between two looks.
fn observe(
    first: &VacationObservation,
    last: &VacationObservation,
    latencies: &VacationLatencies,
) -> Observation {
    let seconds = (last.sample.seconds - first.sample.seconds).max(1e-9);
    let lanes = last.sample.lanes.len();
    let (came, lost) = (
        arrived(&last.sample) - arrived(&first.sample),
        no_room(&last.sample) - no_room(&first.sample),
    );
    let packets = delivered(&last.sample) - delivered(&first.sample);
    let mut busy = 0.0;
    let mut observed = Vec::with_capacity(lanes);
    for lane in 0..lanes {
        let work = last.sample.lanes[lane].since(&first.sample.lanes[lane]);
        let worked = work.busy_ns as f64 / 1e9;
        busy += worked;
        let (then, now) = (&first.sample.polling.lanes[lane], &last.sample.polling.lanes[lane]);
        let bins = bins_between(then, now);
        let square = bins.iter().map(|(most, count)| middle(*most).powi(2) * *count as f64);
        let count = now.vacations.count - then.vacations.count;
        let sum = |polling: &LanePolling| {
            polling.vacations.mean as f64 * polling.vacations.count as f64 / 1e9
        };
        observed.push(LaneObservation {
            rate: work.received as f64 / seconds,
            rho: worked / seconds,
            vacation_mean: (sum(now) - sum(then)) / count.max(1) as f64,
            vacation_mean_square: square.sum::<f64>() / 1e18 / count.max(1) as f64,
            vacations: count,
            won_by_other: now.won_by_other - then.won_by_other,
            tries: now.tries - then.tries,
            lost_tries: now.lost - then.lost,
            busy_mean: worked / count.max(1) as f64,
        });
    }
    let bins = bins_between(&first.sample.polling.lanes[0], &last.sample.polling.lanes[0]);
    let quantile = |q| latencies.histogram.quantile(q).map(|nanos| nanos as f64 / 1e9);
    let mean = latencies.sum as f64 / 1e9 / latencies.count.max(1) as f64;
    let disturbance = last.disturbance.since(first.disturbance);
    Observation {
        lanes: observed,
        vacations: Vacations::Binned(
            bins.iter().map(|(most, count)| (*most as f64 / 1e9, *count)).collect(),
        ),
        service: busy / packets.max(1) as f64,
        found: None,
        latency_mean: (latencies.count > 0).then_some(mean),
        latency_p50: quantile(0.5),
        latency_p99: quantile(0.99),
        packets,
        cpu_share: last.cpu.since(&first.cpu).as_secs_f64() / (seconds * lanes as f64),
        loss: lost as f64 / came.max(1) as f64,
        disturbance: Some((disturbance.run_delay, disturbance.steal)),
    }
}

/// The vacations between two samples, by the ends of bins in nanoseconds.
fn bins_between(then: &LanePolling, now: &LanePolling) -> Vec<(u64, u64)> {
    let before = |most| {
        let bin = then.vacations.bins.binary_search_by_key(most, |(end, _)| *end);
        bin.map_or(0, |place| then.vacations.bins[place].1)
    };
    let bins = now.vacations.bins.iter();
    let since = bins.map(|(most, count)| (*most, count - before(most)));
    since.filter(|(_, count)| *count > 0).collect()
}

/// The middle of the bin that ends with this value: bins are a thirty-second of their values wide, or less.
fn middle(most: u64) -> f64 {
    // Half of the mean width.
    most as f64 * (1.0 - 1.0 / 85.0)
}

#[cfg(test)]
mod tests;
