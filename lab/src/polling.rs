//! `rheo bench polling`: what polling policies cost, lose and delay, from no load to the full one.
//!
//! Lanes stand behind a simulated NIC that needs no core of its own and whose packets are drawn before each trial, so
//! that processor time of workers is theirs and that of a source whose cost is measured alone. It is read from the
//! threads' own clocks. Busy polling runs twice at every load, first and last: what the two differ by is chance.

mod aims;
mod chain;
mod competitor;
mod row;
mod slices;
mod stopwatch;
mod testbed;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::time::Duration;

use rheostat_base::Clock;
use rheostat_io::DrawnArrivals;
use rheostat_kernel::core_set::pin_current_thread;
use rheostat_kernel::priority::{Priority, RaisedPriority};
use rheostat_kernel::sleep::{SleepProfile, Sleeper, calibrate};
use rheostat_measure::quantiles::median;
use rheostat_measure::rounding::rounded;
use rheostat_run::Polling;
use rheostat_run::poll::metronome::{Goal, LatencyGoal, LatencyOf, MetronomeSettings, ModeRules};
use rheostat_run::poll::{Busy, Interrupt, StepSleep};

use self::competitor::Competitor;
use self::slices::{LEAST, SliceObservation};
use self::testbed::{PollingTestbed, TestbedSpan};
use crate::error::BenchError;
use crate::noise::Noise;
use crate::testbed::Cores;
pub use aims::{Aim, Costs, aims};
pub use chain::PollingChain;
pub use competitor::{COMPETITOR, compete};
pub use row::PollingRow;

/// Packets of a trial at most: they lie in memory, and drawing them takes time.
const PACKETS: f64 = 6e6;
/// How long lanes poll without packets before they block: the default of a run.
const SPIN: Duration = Duration::from_micros(20);
/// Sleeps of each duration that the cost of one is measured by.
const SLEEPS: usize = 100;
/// How often it is.
const CALIBRATIONS: usize = 5;
/// How often a trial is tried that the machine disturbed so much that its packets were used up.
const ATTEMPTS: usize = 4;
/// Trials that are run again because hardly any of them was quiet: a bound on the time that the bench takes.
const REPEATS: usize = 12;
/// The nice value that workers get beside a program that gives way.
const FAVOURED: i8 = -20;

/// A policy that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyUnderTest {
    /// Never sleeps. Runs twice.
    Busy,
    /// Metronome with a target vacation.
    Metronome,
    /// Metronome with a target latency of 99 % of the packets.
    MetronomeLatency,
    /// Blocks until packets come.
    Interrupt,
    /// Sleeps a microsecond longer after each poll of few packets, up to the target vacation.
    StepSleep,
    /// Metronome with the p99 of step-sleep as its target latency; without packets, with vacations as long as the sleeps of
    /// step-sleep.
    MetronomeEqual,
}

impl PolicyUnderTest {
    /// All of them.
    pub const ALL: [PolicyUnderTest; 6] = [
        PolicyUnderTest::Busy,
        PolicyUnderTest::Metronome,
        PolicyUnderTest::MetronomeLatency,
        PolicyUnderTest::Interrupt,
        PolicyUnderTest::StepSleep,
        PolicyUnderTest::MetronomeEqual,
    ];

    /// The name, as the command line and rows have it.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyUnderTest::Busy => "busy",
            PolicyUnderTest::Metronome => "metronome",
            PolicyUnderTest::MetronomeLatency => "metronome-p99",
            PolicyUnderTest::Interrupt => "interrupt",
            PolicyUnderTest::StepSleep => "step-sleep",
            PolicyUnderTest::MetronomeEqual => "metronome-equal",
        }
    }

    const fn is_metronome(self) -> bool {
        match self {
            PolicyUnderTest::Metronome
            | PolicyUnderTest::MetronomeLatency
            | PolicyUnderTest::MetronomeEqual => true,
            PolicyUnderTest::Busy | PolicyUnderTest::Interrupt | PolicyUnderTest::StepSleep => {
                false
            }
        }
    }
}

/// What is measured: every policy under every load.
#[derive(Clone, Debug)]
pub struct PollingBench {
    /// The policies; without busy polling, there is no A/A pair to hold losses against.
    pub policies: Vec<PolicyUnderTest>,
    /// Loads, as shares of what busy polling can do.
    pub loads: Vec<f64>,
    /// V̄ of metronome, and the longest sleep of step-sleep.
    pub target: Duration,
    /// What 99 of 100 packets are to be sent within, of [`PolicyUnderTest::MetronomeLatency`].
    pub latency: Duration,
    /// Workers of metronome, which share the lanes; of other policies, at most as many as there are lanes.
    pub workers: usize,
    /// Lanes.
    pub lanes: usize,
    /// What lanes do with packets.
    pub chain: PollingChain,
    /// Nice values of programs that compute on the same cores; without any, lanes are alone.
    pub beside: Vec<i8>,
    /// What is not measured at the start of a trial.
    pub warm_up: Duration,
    /// What is measured of each trial; less at rates of millions of packets.
    pub window: Duration,
    /// What everything random is drawn from.
    pub seed: u64,
}

/// A policy, in one trial.
struct Contender {
    policy: PolicyUnderTest,
    name: String,
    /// Lanes of metronome never wait for an interrupt.
    is_awake: bool,
}

impl PollingBench {
    /// Measures what the machine makes possible.
    ///
    /// # Errors
    /// [`BenchError`] when lanes cannot be run.
    pub fn prepare(&self) -> Result<Prepared<'_>, BenchError> {
        let testbed = PollingTestbed::new(self.chain, self.lanes, self.seed)?;
        let noise = Noise::measure(Duration::from_millis(500))?;
        let profile = sleeps(self.target)?;
        let source_ns = testbed.source_ns()?;
        let per_lane = capacity(&testbed, self.lanes)?;
        let drawn = testbed.draw(0.0, SHORT)?;
        let idle = |polling| testbed.run((polling, self.lanes), (&drawn, SHORT), None);
        let busy = idle(Busy::polling())?.sum;
        let empty_poll_us = busy.cpu * 1e6 / busy.idle_polls.max(1) as f64;
        let asleep = idle(StepSleep::polling(self.target))?.sum;
        let period_us = asleep.seconds * 1e6 * self.lanes as f64 / asleep.wake_ups.max(1) as f64;
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let costs = Costs {
            capacity_pps: (per_lane * self.lanes as f64).round(),
            source_ns: rounded(source_ns, 1e1),
            sleep_cycle_us: rounded(us(profile.cpu_of(self.target)), 1e3),
            empty_poll_us: rounded(empty_poll_us, 1e4),
            step_sleep_period_us: rounded(period_us, 1e2),
            shortest_sleep_us: rounded(us(profile.shortest()), 1e3),
            noise_p99_us: rounded(noise.floor_us(0.99), 1e1),
        };
        Ok(Prepared { bench: self, testbed, costs, repeats: Cell::new(REPEATS) })
    }

    fn polling(&self, contender: &Contender, equal: Goal) -> Polling {
        let default = MetronomeSettings::default();
        let rules = match contender.is_awake {
            true => ModeRules { idle_after: None, ..default.rules },
            false => default.rules,
        };
        let metronome = |goal| MetronomeSettings { goal, rules, ..default }.polling();
        match contender.policy {
            PolicyUnderTest::Busy => Busy::polling(),
            PolicyUnderTest::Metronome => metronome(Goal::Vacation(self.target)),
            PolicyUnderTest::MetronomeLatency => metronome(p99_of(self.latency)),
            PolicyUnderTest::MetronomeEqual => metronome(equal),
            PolicyUnderTest::Interrupt => Interrupt::polling(SPIN),
            PolicyUnderTest::StepSleep => StepSleep::polling(self.target),
        }
    }

    fn workers_of(&self, policy: PolicyUnderTest) -> usize {
        if policy.is_metronome() { self.workers } else { self.workers.min(self.lanes) }
    }

    /// What runs at a load, busy polling first and last.
    fn contenders(&self, load: f64) -> Vec<Contender> {
        let mut contenders = Vec::new();
        for &policy in &self.policies {
            let name = policy.name().to_owned();
            // Without packets, lanes of metronome are in one of two modes, and each has its cost.
            if policy == PolicyUnderTest::Metronome && load == 0.0 {
                contenders.push(Contender { policy, name: name.clone(), is_awake: true });
            }
            contenders.push(Contender { policy, name, is_awake: false });
        }
        if self.policies.contains(&PolicyUnderTest::Busy) {
            let policy = PolicyUnderTest::Busy;
            let name = crate::scenario::again(policy.name());
            contenders.push(Contender { policy, name, is_awake: false });
        }
        contenders
    }
}

/// A bench that knows its machine.
pub struct Prepared<'a> {
    bench: &'a PollingBench,
    testbed: PollingTestbed,
    costs: Costs,
    /// Trials that may still be run again because the machine disturbed them.
    repeats: Cell<usize>,
}

impl Prepared<'_> {
    /// What the machine makes possible.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }

    /// Measures; `each` is told every row.
    ///
    /// # Errors
    /// [`BenchError`] when a trial could not be run, or an invariant broke in it.
    pub fn run(&self, mut each: impl FnMut(&PollingRow)) -> Result<Vec<PollingRow>, BenchError> {
        let bench = self.bench;
        let beside: Vec<_> = match bench.beside.as_slice() {
            [] => vec![None],
            values => values.iter().copied().map(Some).collect(),
        };
        let mut rows = Vec::new();
        for &load in &bench.loads {
            let rate = load * self.costs.capacity_pps;
            let span = TestbedSpan { warm_up: bench.warm_up, window: bench.window };
            let span = span.within(PACKETS, rate);
            let drawn = self.testbed.draw(rate, span)?;
            for &nice in &beside {
                let start = rows.len();
                for contender in bench.contenders(load) {
                    let equal = self.equal(&rows[start..]);
                    let row = self.row((&contender, equal), load, (&drawn, span), nice)?;
                    each(&row);
                    rows.push(row);
                }
            }
        }
        Ok(rows)
    }

    /// What [`PolicyUnderTest::MetronomeEqual`] goes for beside these rows.
    fn equal(&self, rows: &[PollingRow]) -> Goal {
        let us = |us: f64| Duration::from_secs_f64(us / 1e6);
        let step_sleep = rows.iter().find(|row| row.policy == PolicyUnderTest::StepSleep.name());
        match step_sleep.and_then(|row| row.p99_us) {
            Some(p99) => p99_of(us(p99)),
            None => Goal::Vacation(us(self.costs.step_sleep_period_us)),
        }
    }

    fn row(
        &self,
        (contender, equal): (&Contender, Goal),
        load: f64,
        (drawn, span): (&DrawnArrivals, TestbedSpan),
        nice: Option<i8>,
    ) -> Result<PollingRow, BenchError> {
        let workers = self.bench.workers_of(contender.policy);
        let polling = (self.bench.polling(contender, equal), workers);
        let Some(nice) = nice else {
            let seen = self.quietest(|| self.testbed.run(polling.clone(), (drawn, span), None))?;
            return Ok(self.row_of((contender, equal), load, &seen));
        };
        let mut competitor = Competitor::start(&self.testbed.cores(polling.1), nice)?;
        let alone = competitor.rate_alone(span.window)?;
        // Workers inherit it. Where the process may not, both are equal.
        let raised = (nice > 0).then(|| RaisedPriority::new(Priority::Nice(FAVOURED)).ok());
        let raised = raised.flatten();
        let seen =
            patiently(|| self.testbed.run(polling.clone(), (drawn, span), Some(&mut competitor)))?;
        let own = if raised.is_some() { FAVOURED } else { 0 };
        let rate = seen.sum.beside.map_or(0.0, competitor::CompetitorProgress::rate);
        Ok(PollingRow {
            beside: Some(format!("nice:{nice}/{own}")),
            beside_slowdown: (rate > 0.0).then(|| rounded(alone / rate - 1.0, 1e4)),
            ..self.row_of((contender, equal), load, &seen)
        })
    }

    /// A trial, run again while hardly any of it was quiet and there are repeats left.
    fn quietest(
        &self,
        mut trial: impl FnMut() -> Result<SliceObservation, BenchError>,
    ) -> Result<SliceObservation, BenchError> {
        let mut best = patiently(&mut trial)?;
        while best.quiet < LEAST && self.repeats.get() > 0 {
            self.repeats.set(self.repeats.get() - 1);
            let again = patiently(&mut trial)?;
            if again.quiet > best.quiet {
                best = again;
            }
        }
        Ok(best)
    }

    fn row_of(
        &self,
        (contender, equal): (&Contender, Goal),
        load: f64,
        seen: &SliceObservation,
    ) -> PollingRow {
        let bench = self.bench;
        let policy = contender.policy;
        let lanes = bench.lanes as f64;
        let sum = &seen.sum;
        let source = self.costs.source_ns * sum.delivered as f64 / 1e9 / sum.seconds / lanes;
        let cpu = sum.cpu / sum.seconds / lanes;
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let latency = |share| seen.latency_us(share).map(|us| rounded(us, 1e2));
        PollingRow {
            policy: contender.name.clone(),
            chain: bench.chain.name().to_owned(),
            workers: bench.workers_of(policy),
            lanes: bench.lanes,
            load,
            rate_pps: (sum.arrived as f64 / sum.seconds).round(),
            // What a packet costs in larger bursts may be less than what was measured alone.
            cpu_share: rounded((cpu - source).max(0.0), 1e5),
            source_cpu_share: rounded(source, 1e5),
            loss: rounded(sum.lost as f64 / sum.arrived.max(1) as f64, 1e8),
            p50_us: latency(0.5),
            p99_us: latency(0.99),
            target_us: match policy {
                PolicyUnderTest::MetronomeLatency => us(bench.latency),
                PolicyUnderTest::MetronomeEqual => match equal {
                    Goal::Vacation(target) => rounded(us(target), 1e2),
                    Goal::Latency(LatencyGoal { limit, .. }) => rounded(us(limit), 1e2),
                },
                _ => us(bench.target),
            },
            vacation_mean_us: seen.vacation_us().map(|us| rounded(us, 1e2)),
            mode: match policy {
                PolicyUnderTest::StepSleep => policy.name().to_owned(),
                _ => seen.mode().to_string(),
            },
            lost_tries: (sum.tries > 0)
                .then(|| rounded(sum.lost_tries as f64 / sum.tries as f64, 1e5)),
            wake_ups_per_s: (sum.wake_ups as f64 / sum.seconds).round(),
            seconds: rounded(sum.seconds, 1e3),
            quiet: rounded(seen.quiet, 1e3),
            run_delay_ms: rounded(sum.disturbance.run_delay.as_secs_f64() * 1e3, 1e2),
            steal_ms: sum.disturbance.steal.as_secs_f64() * 1e3,
            beside: None,
            beside_slowdown: None,
        }
    }
}

/// The promise that 99 of 100 packets are sent within `limit`.
fn p99_of(limit: Duration) -> Goal {
    Goal::Latency(LatencyGoal { limit, of: LatencyOf::Share(0.99) })
}

/// A trial that only finds something out.
const SHORT: TestbedSpan =
    TestbedSpan { warm_up: Duration::from_millis(50), window: Duration::from_millis(200) };

/// Packets per second and lane that busy polling delivers under more load than it can bear: the median of some trials.
fn capacity(testbed: &PollingTestbed, lanes: usize) -> Result<f64, BenchError> {
    let busy = |rate: f64| {
        let rate = rate * lanes as f64;
        let span = SHORT.within(PACKETS, rate);
        let drawn = testbed.draw(rate, span)?;
        patiently(|| testbed.run((Busy::polling(), lanes), (&drawn, span), None))
    };
    // Larger bursts cost less per packet, so the load is raised by what was seen.
    let mut estimate = 250e3;
    for _ in 0..3 {
        let seen = busy(0.8 * estimate)?;
        estimate = seen.sum.delivered as f64 / seen.sum.busy.max(1e-9);
    }
    let delivered =
        |_| busy(1.3 * estimate).map(|seen| seen.sum.delivered as f64 / seen.sum.seconds);
    let delivered = (0..3).map(delivered).collect::<Result<Vec<_>, _>>()?;
    Ok(median(delivered) / lanes as f64)
}

/// What sleeps take on a core of a worker: of some calibrations that in which they cost least, so that it is the machine's
/// and not that of what disturbed it.
fn sleeps(target: Duration) -> Result<SleepProfile, BenchError> {
    let core = Cores::available()?.first();
    // On a thread of its own: the caller's keeps its cores and its slack.
    let measure = move || {
        pin_current_thread(core)?;
        let clock = Clock::new();
        let sleeper = Sleeper::new(clock.clone());
        let profiles = (0..CALIBRATIONS).map(|_| calibrate(&sleeper, &clock, SLEEPS, || {}));
        Ok(profiles.min_by_key(|profile| profile.cpu_of(target)).expect("there is one"))
    };
    std::thread::spawn(measure).join().expect("sleeping does not panic")
}

/// Runs a trial again whose packets were used up because the machine stood still.
fn patiently<T>(mut trial: impl FnMut() -> Result<T, BenchError>) -> Result<T, BenchError> {
    for _ in 1..ATTEMPTS {
        match trial() {
            Err(BenchError::LateWindow) => {}
            result => return result,
        }
    }
    trial()
}
