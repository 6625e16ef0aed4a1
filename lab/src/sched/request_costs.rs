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
//! decides which has a request. Half of all connections then come from the other worker, with packets that it has received: what a
//! request costs two workers beyond one, less the other price of locks, is half of a move. The application works for longer than all
//! else takes, so that workers seldom wait for each other.
//!
//! Hand-offs: what `dispatcher-1:1` takes per request when there is always more to do, beyond one inline worker, is the network worker's
//! time to give a request and to take its reply, without that of the polls it makes for them; half of it is each. It may wait for its
//! member in between, so its time is that of polls that found something, which are counted. Behind it, each way has a latency, which
//! the ways of the probe tell with one request under way.
//!
//! Locks and steals: [`lock_costs`](super::lock_costs).
//!
//! Hand-offs, sharing and locks are of the distance that the first two cores have from one another ([`core_to_core`](super::core_to_core)).
//! If it changes while they are measured, they are measured again.

use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::Clock;
use rheostat_base::clock::Cycles;
use rheostat_measure::quantiles::{Sorted, median};
use rheostat_measure::record::{Build, Header};
use rheostat_packet::BURST;
use rheostat_tcp::sched::{Outstanding, Scheduler};

use super::core_to_core::{are_like, core_to_core_ns, first_two, range};
use super::error::SchedBenchError;
use super::lock_costs::{LockCosts, measure_locks, reading_ns};
use super::members::lanes;
use super::probe::SchedProbe;
use super::rig::{Plan, Stages};
use super::service::{RunningService, ServiceConfig};
use crate::costs::{Distribution, wakes};
use crate::sim::sched::{Cost, RequestCosts};
use crate::testbed::Cores;

/// How long requests are made before they are looked at.
const WARM_UP: Duration = Duration::from_millis(200);
/// Windows in which they are looked at.
const WINDOW: Duration = Duration::from_millis(50);
/// Requests that are looked at, at most.
const MOST: usize = 400_000;
const CONNECTIONS: u32 = 64;
/// Requests under way when there is always more to do.
const MANY: u32 = 64;
/// Nanoseconds for which the application works on a request where workers are not to wait for each other.
const WORK: u64 = 2_000;

/// How long costs are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostsEffort {
    /// Windows in which each service is looked at; a median is not moved by those in which the machine pauses.
    windows: usize,
    /// How often one worker and two are measured in turn for what a move costs.
    turns: u32,
    /// What passes between cores is measured again until their distance stays the same meanwhile, unless this time has passed.
    patience: Duration,
}

impl CostsEffort {
    /// For a file of costs: some fifteen seconds, up to a minute and a half where the distance of the first two cores changes.
    pub const THOROUGH: CostsEffort =
        CostsEffort { windows: 15, turns: 5, patience: Duration::from_secs(75) };
    /// For costs that are measured because somebody waits for an answer: some ten seconds, at most twenty.
    pub const BRIEF: CostsEffort =
        CostsEffort { windows: 6, turns: 3, patience: Duration::from_secs(9) };
}

/// Measures costs for as long as `effort` states; `progress` is called before each step. What cannot be measured is as in
/// the thesis's costs; `about` says what.
///
/// # Errors
/// [`SchedBenchError`] when a run cannot be made, or was not sound.
pub fn measure_request_costs(
    build: &Build,
    effort: CostsEffort,
    mut progress: impl FnMut(&str),
) -> Result<RequestCosts, SchedBenchError> {
    let begun = Instant::now();
    let header = Header::new(build);
    let cores = u16::try_from(Cores::available()?.count()).unwrap_or(u16::MAX);
    let probes = Probes { cores, windows: effort.windows };
    progress("TCP in and out, parsing, polls, waking");
    let alone = probes.probe("inline-dfcfs", 1, Outstanding::ONE, 1)?;
    let many = probes.probe("inline-dfcfs", 1, Outstanding::ONE, MANY)?.worker_ns;
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
    if let Some(pair) = first_two()? {
        loop {
            let before = core_to_core_ns(pair)?;
            progress("hand-offs to members of a dispatcher");
            probes.add_handoffs(&mut costs, many)?;
            progress("locks, steals, connections that change workers");
            let locks = measure_locks(&Clock::new(), pair)?;
            probes.add_sharing(&mut costs, locks, many, effort.turns)?;
            costs.core_to_core_ns = range(&[before, core_to_core_ns(pair)?]);
            if costs.core_to_core_ns.is_some_and(are_like) || begun.elapsed() > effort.patience {
                break;
            }
            progress("the distance of the cores has changed: again");
        }
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

fn constant(ns: f64) -> Cost {
    Cost::Constant(ns.max(0.0).round())
}

/// Services that are looked at.
struct Probes {
    cores: u16,
    windows: usize,
}

impl Probes {
    fn add_handoffs(&self, costs: &mut RequestCosts, inline: f64) -> Result<(), SchedBenchError> {
        let alone = self.probe("dispatcher-1:1", 2, Outstanding::ONE, 1)?;
        let one = self.probe("dispatcher-1:1", 2, Outstanding::ONE, MANY)?;
        let two = self.probe("dispatcher-1:1", 2, Outstanding::TWO, MANY)?;
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

    fn add_sharing(
        &self,
        costs: &mut RequestCosts,
        locks: LockCosts,
        inline: f64,
        turns: u32,
    ) -> Result<(), SchedBenchError> {
        let (same, other) = (locks.shard_same.median(), locks.shard_other.median());
        let shared = self.probe("inline-cfcfs", 1, Outstanding::ONE, MANY)?.worker_ns;
        let own_locks = locks.queue_free.median() + 2.0 * same;
        costs.sharing_ns = constant(shared - inline - own_locks);
        let mut beyond_one = Vec::new();
        for _ in 0..turns {
            let [one, two] = [1, 2].map(|workers| self.working_probe("inline-cfcfs", workers));
            beyond_one.push(two?.worker_ns - one?.worker_ns);
        }
        let beyond_one = median(beyond_one);
        let locks_of_two =
            (locks.queue_taken.median() - locks.queue_free.median() + other - same) / 2.0;
        costs.connection_move_ns = constant(2.0 * (beyond_one - locks_of_two));
        costs.queue_lock_free_ns = Cost::Measured(locks.queue_free);
        costs.queue_lock_taken_ns = Cost::Measured(locks.queue_taken);
        costs.queue_lock_contended_ns = Cost::Constant(locks.queue_contended.round());
        costs.connection_lock_same_ns = Cost::Measured(locks.shard_same);
        costs.connection_lock_other_ns = Cost::Measured(locks.shard_other);
        costs.steal_ns = Cost::Constant(locks.steal.round());
        Ok(())
    }

    fn probe(
        &self,
        name: &str,
        workers: u16,
        outstanding: Outstanding,
        under_way: u32,
    ) -> Result<Probed, SchedBenchError> {
        self.probe_at_work(name, workers, outstanding, under_way, 0)
    }

    /// With many requests under way, on which the application works.
    fn working_probe(&self, name: &str, workers: u16) -> Result<Probed, SchedBenchError> {
        self.probe_at_work(name, workers, Outstanding::ONE, MANY, WORK)
    }

    fn probe_at_work(
        &self,
        name: &str,
        workers: u16,
        outstanding: Outstanding,
        under_way: u32,
        work: u64,
    ) -> Result<Probed, SchedBenchError> {
        let scheduler = Scheduler::with_workers(name.parse()?, workers, self.cores)?;
        let clock = Clock::new();
        let config = ServiceConfig {
            scheduler,
            connections: CONNECTIONS,
            outstanding,
            burst: 1,
            records_stages: true,
            is_timed: false,
        };
        let service = RunningService::start(&config, SchedProbe { clock: clock.clone(), work })?;
        service.clients.follow(Plan::Closed { under_way });
        thread::sleep(WARM_UP);
        service.clients.record_stages(MOST);
        let sample = || (Instant::now(), service.clients.totals(), service.busy());
        let mut samples = vec![sample()];
        for _ in 0..self.windows {
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
            let wall =
                later.0.duration_since(earlier.0).as_nanos() as f64 * lanes(scheduler) as f64;
            walls.push(per_request(wall) - client);
            busy.push(per_request((later.2.1 - earlier.2.1) as f64) - client);
            polls.push(per_request((later.2.0 - earlier.2.0) as f64));
        }
        let (Some(worker_ns), Some(busy_ns), Some(polls)) =
            (Sorted::of(walls).median(), Sorted::of(busy).median(), Sorted::of(polls).median())
        else {
            return Err(service.silent());
        };
        if stages.iter().all(Vec::is_empty) {
            return Err(service.silent());
        }
        service.stop(0)?;
        Ok(Probed::of(
            &stages,
            &clock,
            reading_ns(&clock, Clock::cycles),
            [worker_ns, busy_ns, polls],
        ))
    }
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
        }
    }
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
}
