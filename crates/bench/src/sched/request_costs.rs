//! What requests cost on this machine: the file that `rheo sim sched --costs measured:FILE` reads.
//!
//! TCP in and out: one request is under way at a time, so that a burst shares no cost. The service is a [`Probe`], whose replies say when the
//! request was parsed, when the application had it and when its reply was encoded; the rig has noted when the lane received it, and when the
//! segment was handed over:
//!
//! ```text
//!  received ── TCP in ──► parse ──► application ──► encode, TCP out ──► handed over ── flush: the rest of the poll ──► next
//!                               └── way ──┘ └── way ──┘ (dispatcher)
//! ```
//!
//! Hand-offs: what `dispatcher-1:1` takes per request when there is always more to do, beyond one inline worker, is the network worker's
//! time to give a request and to take its reply; half of it is each. Behind it, each way has a latency, which the ways of the probe
//! tell with one request under way.
//!
//! Locks and steals: [`lock_costs`](super::lock_costs).

use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::clock::Cycles;
use rheostat_base::{Clock, CoreSet};
use rheostat_tcp::sched::{Outstanding, Scheduler};

use super::error::SchedBenchError;
use super::lock_costs::{LockCosts, measure_locks};
use super::probe::Probe;
use super::rig::{Plan, Stages};
use super::service::{RunningService, ServiceConfig};
use crate::costs::{Distribution, wakes};
use crate::record::{Build, Header};
use crate::sim::sched::{Cost, RequestCosts};

/// How long requests are made before they are looked at, and while they are.
const WARM_UP: Duration = Duration::from_millis(200);
const WINDOW: Duration = Duration::from_millis(500);
/// Requests that are looked at, at most.
const MOST: usize = 400_000;
const CONNECTIONS: u32 = 64;
/// Requests under way when there is always more to do.
const MANY: u32 = 64;
/// Readings of the clock of which the median counts.
const READINGS: usize = 10_001;

/// Measures costs, in some six seconds. What is not measured yet is as in the thesis's costs; `about` says what.
///
/// # Errors
/// [`SchedBenchError`] when a run cannot be made, or was not sound.
pub fn measure_request_costs(build: &Build) -> Result<RequestCosts, SchedBenchError> {
    let header = Header::new(build);
    let cores = u16::try_from(CoreSet::available()?.cores().len()).unwrap_or(u16::MAX);
    let alone = probe("inline-dfcfs", cores, Outstanding::ONE, 1)?;
    let spent = alone.tcp_in.median() + alone.parse.median() + alone.tcp_out.median();
    let mut costs = RequestCosts {
        about: String::new(),
        flush_ns: Cost::Constant((alone.worker_ns - spent).max(0.0).round()),
        tcp_in_ns: Cost::Measured(alone.tcp_in),
        parse_ns: Cost::Measured(alone.parse),
        tcp_out_ns: Cost::Measured(alone.tcp_out),
        wake_ns: Cost::Measured(wakes()),
        ..RequestCosts::thesis()
    };
    let mut measured = "TCP in and out, parsing, flush, one request at a time; waking".to_owned();
    let mut assumed = "what TCP in takes longer on another worker than the connection's last";
    if cores >= 2 {
        let inline = probe("inline-dfcfs", cores, Outstanding::ONE, MANY)?.worker_ns;
        // With one outstanding the network worker waits for the member, too; its own time is the same with two.
        let dispatcher = probe("dispatcher-1:1", cores, Outstanding::TWO, MANY)?.worker_ns;
        let each = ((dispatcher - inline) / 2.0).max(0.0).round();
        let ways = probe("dispatcher-1:1", cores, Outstanding::ONE, 1)?.ways.median();
        costs.handoff_give_k1_ns = Cost::Constant(each);
        costs.handoff_take_k1_ns = Cost::Constant(each);
        costs.handoff_give_k2_ns = Cost::Constant(each);
        costs.handoff_take_k2_ns = Cost::Constant(each);
        costs.handoff_latency_ns = Cost::Constant(((ways - 2.0 * each) / 2.0).max(0.0).round());
        measured += "; hand-offs, a member's own time as part of their latency";
        let locks = locks()?;
        costs.queue_lock_free_ns = Cost::Measured(locks.queue_free);
        costs.queue_lock_taken_ns = Cost::Measured(locks.queue_taken);
        costs.queue_lock_contended_ns = Cost::Constant(locks.queue_contended.round());
        costs.connection_lock_same_ns = Cost::Measured(locks.shard_same);
        costs.connection_lock_other_ns = Cost::Measured(locks.shard_other);
        costs.steal_ns = Cost::Constant(locks.steal.round());
        measured += "; locks of queues and of shards, with two workers; steals";
    } else {
        assumed = "hand-offs, locks, steals";
    }
    costs.about = format!(
        "measured by rheo {} ({}) on {}, {}: {measured}. Of the thesis's costs: {assumed}",
        header.commit, header.profile, header.machine, header.started
    );
    costs.header = Some(header);
    Ok(costs)
}

/// What queues and shards cost that two workers share.
fn locks() -> Result<LockCosts, SchedBenchError> {
    let clock = Clock::new();
    let cores = CoreSet::available()?;
    measure_locks(&clock, reading_ns(&clock), [cores.cores()[0], cores.cores()[1]])
}

/// What a probe found out.
struct Probed {
    /// Time of one lane per request, without the clients'.
    worker_ns: f64,
    tcp_in: Distribution,
    parse: Distribution,
    /// From parsing to the application, and from there to encoding.
    ways: Distribution,
    tcp_out: Distribution,
}

fn probe(
    name: &str,
    cores: u16,
    outstanding: Outstanding,
    under_way: u32,
) -> Result<Probed, SchedBenchError> {
    let scheduler = Scheduler::with_workers(name.parse()?, 1, cores)?;
    let clock = Clock::new();
    let config = ServiceConfig {
        scheduler,
        connections: CONNECTIONS,
        outstanding,
        records_stages: true,
        is_timed: false,
    };
    let service = RunningService::start(&config, Probe { clock: clock.clone() })?;
    service.clients.follow(Plan::Closed { under_way });
    thread::sleep(WARM_UP);
    service.clients.record_stages(MOST);
    let earlier = (Instant::now(), service.clients.totals());
    thread::sleep(WINDOW);
    let later = (Instant::now(), service.clients.totals());
    let stages = service.clients.take_stages();
    service.clients.follow(Plan::Idle);
    let done = later.1.since(&earlier.1);
    if done.replies == 0 || stages.is_empty() {
        return Err(service.silent());
    }
    let wall = later.0.duration_since(earlier.0).as_nanos() as f64 / done.replies as f64;
    let client = service.nanos(done.ticks) / done.replies as f64;
    service.stop(0)?;
    Ok(Probed::of(&stages, &clock, reading_ns(&clock), wall - client))
}

impl Probed {
    /// Of each time a reading of the clock, which takes `reading` nanoseconds, is taken off.
    fn of(stages: &[Stages], clock: &Clock, reading: f64, worker_ns: f64) -> Probed {
        let nanos = |ticks: u64| {
            let taken = clock.nanos_between(Cycles(0), Cycles(ticks));
            ((taken as f64 - reading).max(0.0), 1.0)
        };
        let times = |of: fn(&Stages) -> u64| {
            Distribution::of(&stages.iter().map(|stages| nanos(of(stages))).collect::<Vec<_>>())
        };
        Probed {
            worker_ns,
            tcp_in: times(Stages::tcp_in),
            parse: times(Stages::parse),
            ways: times(Stages::ways),
            tcp_out: times(Stages::tcp_out),
        }
    }
}

/// What it takes to read the clock.
fn reading_ns(clock: &Clock) -> f64 {
    let mut times: Vec<u64> = (0..READINGS)
        .map(|_| {
            let from = clock.cycles();
            clock.nanos_between(from, clock.cycles())
        })
        .collect();
    times.sort_unstable();
    times[READINGS / 2] as f64
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn stages_are_told_apart_without_the_clock() {
        let clock = Clock::new();
        let ticks = |nanos: u64| {
            let per = clock.nanos_between(Cycles(0), Cycles(1 << 30));
            (nanos as f64 * f64::from(1 << 30) / per as f64) as u64
        };
        let stages = Stages {
            received: 1_000,
            parsed: 1_000 + ticks(210),
            parse: ticks(40) as u32,
            handle: ticks(300) as u32,
            encode: ticks(30) as u32,
            sent: 1_000 + ticks(210 + 40 + 300 + 30 + 150),
        };
        let times = Probed::of(&[stages; 3], &clock, 10.0, 0.0);
        for (time, expected) in [
            (times.tcp_in, 200.0),
            (times.parse, 30.0),
            (times.ways, 320.0),
            (times.tcp_out, 140.0),
        ] {
            assert!((time.median() - expected).abs() <= 3.0, "{time:?}, not {expected}");
        }
    }
}
