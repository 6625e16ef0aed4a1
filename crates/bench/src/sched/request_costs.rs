//! What requests cost on this machine: the file that `rheo sim sched --costs measured:FILE` reads.
//!
//! TCP in and out: one request is under way at a time. The service is a [`Probe`], whose replies say when the request was parsed, when the
//! application had it and when its reply was encoded; the rig has noted when the lane received it, and when the segment was handed over:
//!
//! ```text
//!  received ── TCP in ──► parse ──► application ──► encode, TCP out ──► handed over ── the rest of the poll ──► next
//!                               └── way ──┘ └── way ──┘ (dispatcher)
//! ```
//!
//! Polls: what a request costs that is alone in its poll, beyond one of many, is what a poll costs ([`RequestCosts::flush_ns`]). The
//! distributions are scaled to what many cost.
//!
//! Sharing: what `inline-cfcfs` costs one worker beyond `inline-dfcfs`, less locks that it has to itself. With two workers, chance
//! decides which has a request; the time from one reply of a worker to its next, and to the one after that, is longer where the
//! connection comes from the other worker: by the other price of the shard's lock, and by what its state in another cache costs.
//!
//! Hand-offs: what `dispatcher-1:1` takes per request when there is always more to do, beyond one inline worker, is the network worker's
//! time to give a request and to take its reply, without that of the polls it makes for them; half of it is each. It may wait for its
//! member in between, so its time is that of polls that found something, which are counted. Behind it, each way has a latency, which
//! the ways of the probe tell with one request under way.
//!
//! Locks and steals: [`lock_costs`](super::lock_costs).

use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::clock::Cycles;
use rheostat_base::{Clock, CoreSet};
use rheostat_packet::BURST;
use rheostat_tcp::sched::{Outstanding, Scheduler};

use super::error::SchedBenchError;
use super::lock_costs::{LockCosts, measure_locks};
use super::members::lanes;
use super::probe::Probe;
use super::rig::{Plan, Stages};
use super::service::{RunningService, ServiceConfig};
use crate::costs::{Distribution, wakes};
use crate::record::{Build, Header};
use crate::sim::sched::{Cost, RequestCosts};

/// How long requests are made before they are looked at.
const WARM_UP: Duration = Duration::from_millis(200);
/// Windows in which they are; a median is not moved by those in which the machine pauses.
const WINDOWS: usize = 15;
const WINDOW: Duration = Duration::from_millis(50);
/// Requests that are looked at, at most.
const MOST: usize = 400_000;
const CONNECTIONS: u32 = 64;
/// Requests under way when there is always more to do.
const MANY: u32 = 64;
/// Readings of the clock of which the median counts.
const READINGS: usize = 10_001;

/// Measures costs, in some ten seconds. What cannot be measured is as in the thesis's costs; `about` says what.
///
/// # Errors
/// [`SchedBenchError`] when a run cannot be made, or was not sound.
pub fn measure_request_costs(build: &Build) -> Result<RequestCosts, SchedBenchError> {
    let header = Header::new(build);
    let cores = u16::try_from(CoreSet::available()?.cores().len()).unwrap_or(u16::MAX);
    let alone = probe("inline-dfcfs", (1, cores), Outstanding::ONE, 1)?;
    let many = probe("inline-dfcfs", (1, cores), Outstanding::ONE, MANY)?.worker_ns;
    let (each, poll) = split_poll(alone.worker_ns, many);
    let spent = alone.tcp_in.median() + alone.parse.median() + alone.tcp_out.median();
    let of_many = |cost: Distribution| Cost::Measured(cost).times(each / spent.max(1.0));
    let mut costs = RequestCosts {
        about: String::new(),
        flush_ns: Cost::Constant(poll.round()),
        poll_burst: BURST as u32,
        tcp_in_ns: of_many(alone.tcp_in),
        parse_ns: of_many(alone.parse),
        tcp_out_ns: of_many(alone.tcp_out),
        wake_ns: Cost::Measured(wakes()),
        ..RequestCosts::thesis()
    };
    let mut measured = "TCP in and out, parsing, polls; waking".to_owned();
    let mut assumed = String::new();
    if cores >= 2 {
        add_handoffs(&mut costs, cores, many)?;
        add_sharing(&mut costs, cores, many)?;
        measured += "; hand-offs, a member's own time as part of their latency; with two workers locks of queues and of shards, \
                     steals, connections that come from another worker";
    } else {
        assumed += ". Of the thesis's costs: hand-offs, locks, steals, connections that come from another worker";
    }
    costs.about = format!(
        "measured by rheo {} ({}) on {}, {}: {measured}{assumed}",
        header.commit, header.profile, header.machine, header.started
    );
    costs.header = Some(header);
    Ok(costs)
}

/// What a request costs of a poll with [`BURST`] of them, and what the poll costs beside: `alone` is a poll with one, `many` a request
/// in a full one.
fn split_poll(alone: f64, many: f64) -> (f64, f64) {
    let burst = BURST as f64;
    let poll = (alone - many).max(0.0) * burst / (burst - 1.0);
    (many - poll / burst, poll)
}

fn add_handoffs(costs: &mut RequestCosts, cores: u16, inline: f64) -> Result<(), SchedBenchError> {
    let constant = |ns: f64| Cost::Constant(ns.max(0.0).round());
    let alone = probe("dispatcher-1:1", (2, cores), Outstanding::ONE, 1)?;
    let one = probe("dispatcher-1:1", (2, cores), Outstanding::ONE, MANY)?;
    let two = probe("dispatcher-1:1", (2, cores), Outstanding::TWO, MANY)?;
    let poll = costs.flush_ns.mean_ns();
    let inline = inline - poll / BURST as f64;
    let each = |probed: &Probed| (probed.busy_ns - inline - probed.polls * poll) / 2.0;
    let (each_of_one, each_of_two) = (each(&one), each(&two));
    costs.handoff_give_k1_ns = constant(each_of_one);
    costs.handoff_take_k1_ns = constant(each_of_one);
    costs.handoff_give_k2_ns = constant(each_of_two);
    costs.handoff_take_k2_ns = constant(each_of_two);
    costs.handoff_latency_ns = constant((alone.ways.median() - 2.0 * each_of_one) / 2.0);
    Ok(())
}

fn add_sharing(costs: &mut RequestCosts, cores: u16, inline: f64) -> Result<(), SchedBenchError> {
    let locks = locks()?;
    let (same, other) = (locks.shard_same.median(), locks.shard_other.median());
    let shared = probe("inline-cfcfs", (1, cores), Outstanding::ONE, MANY)?.worker_ns;
    let own_locks = locks.queue_free.median() + 2.0 * same;
    costs.sharing_ns = Cost::Constant((shared - inline - own_locks).max(0.0).round());
    let both = probe("inline-cfcfs", (2, cores), Outstanding::ONE, MANY)?;
    costs.connection_move_ns = Cost::Constant((both.move_ns - (other - same)).max(0.0).round());
    costs.queue_lock_free_ns = Cost::Measured(locks.queue_free);
    costs.queue_lock_taken_ns = Cost::Measured(locks.queue_taken);
    costs.queue_lock_contended_ns = Cost::Constant(locks.queue_contended.round());
    costs.connection_lock_same_ns = Cost::Measured(locks.shard_same);
    costs.connection_lock_other_ns = Cost::Measured(locks.shard_other);
    costs.steal_ns = Cost::Constant(locks.steal.round());
    Ok(())
}

/// What queues and shards cost that two workers share.
fn locks() -> Result<LockCosts, SchedBenchError> {
    let clock = Clock::new();
    let cores = CoreSet::available()?;
    measure_locks(&clock, reading_ns(&clock), [cores.cores()[0], cores.cores()[1]])
}

/// What a probe found out.
struct Probed {
    /// Time of all lanes per request, without the clients'.
    worker_ns: f64,
    /// The part of it in which they had something to do.
    busy_ns: f64,
    /// Polls in which they had, per request.
    polls: f64,
    tcp_in: Distribution,
    parse: Distribution,
    /// From parsing to the application, and from there to encoding.
    ways: Distribution,
    tcp_out: Distribution,
    /// How much longer a worker takes for a request whose connection comes from another one.
    move_ns: f64,
}

fn probe(
    name: &str,
    (workers, cores): (u16, u16),
    outstanding: Outstanding,
    under_way: u32,
) -> Result<Probed, SchedBenchError> {
    let scheduler = Scheduler::with_workers(name.parse()?, workers, cores)?;
    let clock = Clock::new();
    let config = ServiceConfig {
        scheduler,
        connections: CONNECTIONS,
        outstanding,
        burst: 1,
        records_stages: true,
        is_timed: false,
    };
    let service = RunningService::start(&config, Probe { clock: clock.clone() })?;
    service.clients.follow(Plan::Closed { under_way });
    thread::sleep(WARM_UP);
    service.clients.record_stages(MOST);
    let sample = || (Instant::now(), service.clients.totals(), service.busy());
    let mut samples = vec![sample()];
    for _ in 0..WINDOWS {
        thread::sleep(WINDOW);
        samples.push(sample());
    }
    let stages = service.clients.take_stages();
    service.clients.follow(Plan::Idle);
    let (mut walls, mut busy, mut polls) = (Vec::new(), Vec::new(), Vec::new());
    for pair in samples.windows(2) {
        let [earlier, later] = pair else { continue };
        let done = later.1.since(&earlier.1);
        // The machine may pause for all of a window.
        if done.replies == 0 {
            continue;
        }
        let per_request = |ns: f64| ns / done.replies as f64;
        let client = per_request(service.nanos(done.ticks));
        let wall = later.0.duration_since(earlier.0).as_nanos() as f64 * lanes(scheduler) as f64;
        walls.push(per_request(wall) - client);
        busy.push(per_request((later.2.1 - earlier.2.1) as f64) - client);
        polls.push(per_request((later.2.0 - earlier.2.0) as f64));
    }
    let (Some(worker_ns), Some(busy_ns), Some(polls)) =
        (median(walls), median(busy), median(polls))
    else {
        return Err(service.silent());
    };
    if stages.iter().all(Vec::is_empty) {
        return Err(service.silent());
    }
    service.stop(0)?;
    Ok(Probed::of(&stages, &clock, reading_ns(&clock), [worker_ns, busy_ns, polls]))
}

impl Probed {
    /// Of each time a reading of the clock, which takes `reading` nanoseconds, is taken off.
    fn of(
        stages: &[Vec<Stages>],
        clock: &Clock,
        reading: f64,
        [worker_ns, busy_ns, polls]: [f64; 3],
    ) -> Probed {
        let nanos = |ticks: u64| {
            let taken = clock.nanos_between(Cycles(0), Cycles(ticks));
            ((taken as f64 - reading).max(0.0), 1.0)
        };
        let times = |of: fn(&Stages) -> u64| {
            let all = stages.iter().flatten().map(|stages| nanos(of(stages)));
            Distribution::of(&all.collect::<Vec<_>>())
        };
        Probed {
            worker_ns,
            busy_ns,
            polls,
            tcp_in: times(Stages::tcp_in),
            parse: times(Stages::parse),
            ways: times(Stages::ways),
            tcp_out: times(Stages::tcp_out),
            move_ns: move_ticks(stages) * clock.nanos_between(Cycles(0), Cycles(1 << 30)) as f64
                / f64::from(1 << 30),
        }
    }
}

fn median(mut of: Vec<f64>) -> Option<f64> {
    let middle = of.len() / 2;
    (!of.is_empty()).then(|| *of.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// How much longer workers take for a request whose connection comes from another one, in ticks, by their times from reply to reply:
/// the one that ends with its reply, where TCP in shows, and the next, where TCP out does. Medians, as chance decides which requests
/// those are and disturbances meet all alike; 0 where there are none of both kinds.
fn move_ticks(stages: &[Vec<Stages>]) -> f64 {
    let mut gaps = [const { [const { Vec::new() }; 2] }; 2];
    for worker in stages {
        for three in worker.windows(3) {
            let [before, this, after] = three else { continue };
            for (place, (from, to, other)) in
                [(before, this, before), (this, after, after)].into_iter().enumerate()
            {
                // What another move costs is not to be in it.
                if !other.has_moved {
                    let gap = to.sent.saturating_sub(from.sent) as f64;
                    gaps[place][usize::from(this.has_moved)].push(gap);
                }
            }
        }
    }
    let longer = gaps.into_iter().map(|[stayed, moved]| Some(median(moved)? - median(stayed)?));
    longer.sum::<Option<f64>>().unwrap_or(0.0)
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

    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

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
            has_moved: false,
        };
        let times = Probed::of(&[vec![stages; 3]], &clock, 10.0, [0.0, 0.0, 1.0]);
        for (time, expected) in [
            (times.tcp_in, 200.0),
            (times.parse, 30.0),
            (times.ways, 320.0),
            (times.tcp_out, 140.0),
        ] {
            assert!((time.median() - expected).abs() <= 3.0, "{time:?}, not {expected}");
        }
    }

    #[test]
    fn a_poll_is_told_from_its_requests() {
        let (each, poll) =
            split_poll(900.0 + 310.0, 900.0 + 10.0 * 31.0 / 31.0 - 10.0 + 310.0 / 32.0);
        assert!((each - 900.0).abs() < 1e-9 && (poll - 310.0).abs() < 1e-9, "{each} {poll}");
        assert_eq!(split_poll(500.0, 600.0), (600.0, 0.0), "disturbed");
    }

    #[test]
    fn a_move_takes_longer_until_its_own_reply_and_until_the_next() {
        let of = |moves: &[bool]| {
            let mut sent = 0;
            let mut last = false;
            let stages = |moves: &bool| {
                // TCP in of a moved connection takes 200 longer, TCP out 50.
                sent += 1_000 + if *moves { 200 } else { 0 } + if last { 50 } else { 0 };
                last = *moves;
                Stages {
                    received: 0,
                    parsed: 0,
                    parse: 0,
                    handle: 0,
                    encode: 0,
                    sent,
                    has_moved: *moves,
                }
            };
            moves.iter().map(stages).collect::<Vec<_>>()
        };
        let mut random = SmallRng::seed_from_u64(7);
        let mut moves: Vec<bool> = (0..400).map(|_| random.random()).collect();
        let workers = [of(&moves), of(&moves.split_off(200))];
        let found = move_ticks(&workers);
        assert_eq!(found, 250.0);
        assert_eq!(move_ticks(&[of(&[false; 9])]), 0.0);
    }
}
