//! Workers, lanes, sleeps and packets in virtual time: what cannot be run on two cores.
//!
//! Every worker has a core. Packets arrive one by one in queues of bounded length; the worker that holds a lane takes
//! them in bursts until none is left. Sleeps take what a measured profile says. The decisions are those of the runtime's
//! own policies ([`Metronome`], [`StepSleep`]), not of a copy.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rheostat_base::{Histogram, Time};
use rheostat_io::sleep::SleepProfile;
use rheostat_run::poll::metronome::{LanePolicy, Metronome, MetronomeSettings, Nap, Visit};
use rheostat_run::poll::{Next, PollOutcome, PollPolicy, StepSleep};

/// Packets of a burst.
const BURST: usize = 32;

/// How packets follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// At equal distances.
    Constant,
    /// At random: a Poisson process.
    Poisson,
}

/// What workers do between polls.
#[derive(Clone, Debug)]
pub enum Policy {
    /// Polls on; each worker has its own lanes.
    Busy,
    /// Metronome.
    Metronome(MetronomeSettings),
    /// Sleeps a microsecond longer after each round of its lanes with few packets, up to this.
    StepSleep(Duration),
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// M.
    pub workers: usize,
    /// Packets per second of each lane, from each time on: `(time, rate)` ascending. The number of lanes is N.
    pub rates: Vec<Vec<(Duration, f64)>>,
    /// How packets follow each other.
    pub spacing: Spacing,
    /// Processing of a packet; exponential instead of constant with `varied_service`.
    pub service: Duration,
    /// Whether service times are exponential.
    pub varied_service: bool,
    /// Descriptors of each lane: what arrives at a full queue is lost.
    pub descriptors: usize,
    /// What sleeps take and cost.
    pub profile: Arc<SleepProfile>,
    /// A poll that finds nothing.
    pub empty_poll: Duration,
    /// A try that finds the lock taken.
    pub lost_try: Duration,
    /// What workers do.
    pub policy: Policy,
    /// How long, in virtual time.
    pub length: Duration,
    /// The part at the start that does not count.
    pub warm_up: Duration,
    /// The seed.
    pub seed: u64,
}

/// What one lane saw after the warm-up.
#[derive(Clone, Debug, Default)]
pub struct LaneResult {
    /// Vacations in seconds, up to [`MOST_SAMPLES`].
    pub vacations: Vec<f64>,
    /// Their number, sum and sum of squares.
    pub vacation_count: u64,
    /// Seconds.
    pub vacation_sum: f64,
    /// Seconds².
    pub vacation_squares: f64,
    /// Busy periods, in seconds.
    pub busy_sum: f64,
    /// Packets found at the end of vacations (N_V).
    pub found: u64,
    /// Packets processed, and lost at the full queue.
    pub packets: u64,
    /// Packets lost at the full queue.
    pub lost: u64,
    /// Vacations that another worker ended than the one that had left.
    pub won_by_other: u64,
    /// Tries, and those that found the lock taken.
    pub tries: u64,
    /// Tries that found the lock taken.
    pub lost_tries: u64,
}

impl LaneResult {
    /// The mean vacation in seconds; zero without any.
    pub fn vacation_mean(&self) -> f64 {
        if self.vacation_count == 0 { 0.0 } else { self.vacation_sum / self.vacation_count as f64 }
    }

    /// E\[V²\] in seconds².
    pub fn vacation_mean_square(&self) -> f64 {
        if self.vacation_count == 0 {
            0.0
        } else {
            self.vacation_squares / self.vacation_count as f64
        }
    }
}

/// What a simulation came to.
#[derive(Debug)]
pub struct SimulationResult {
    /// Per lane.
    pub lanes: Vec<LaneResult>,
    /// Packets' latencies in nanoseconds.
    pub latencies: Histogram,
    /// Their mean in seconds.
    pub latency_mean: f64,
    /// CPU time of all workers ÷ (time × lanes).
    pub cpu_share: f64,
    /// Sleeps of all workers.
    pub sleeps: u64,
}

impl SimulationResult {
    /// Lost tries ÷ tries.
    pub fn lost_tries(&self) -> f64 {
        let sum = |of: fn(&LaneResult) -> u64| self.lanes.iter().map(of).sum::<u64>() as f64;
        sum(|lane| lane.lost_tries) / sum(|lane| lane.tries).max(1.0)
    }

    /// Packets lost ÷ packets that arrived.
    pub fn loss(&self) -> f64 {
        let sum = |of: fn(&LaneResult) -> u64| self.lanes.iter().map(of).sum::<u64>() as f64;
        let lost = sum(|lane| lane.lost);
        lost / (lost + sum(|lane| lane.packets)).max(1.0)
    }
}

/// Vacations that are kept of a lane.
pub const MOST_SAMPLES: usize = 100_000;

/// One lane: its arrivals, its queue, its lock.
struct Lane {
    rates: Vec<(u64, f64)>,
    next_arrival: u64,
    queue: VecDeque<u64>,
    released: u64,
    last_holder: usize,
    is_taken: bool,
    policy: Option<LanePolicy>,
    result: LaneResult,
}

/// What happens to a worker next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Tries a lane.
    Try(usize),
    /// Leaves the lane that it took at `start` after a vacation.
    Leave { lane: usize, start: u64, vacation: u64, packets: u64, drained: bool },
}

enum Decider {
    Metronome(Box<Metronome>),
    /// Lanes in turn by a policy of the runtime, which are the worker's own.
    Turns(Box<dyn PollPolicy>, Vec<usize>),
}

/// What may change while a lane is drained.
struct Drained {
    end: u64,
    packets: u64,
    is_empty: bool,
}

impl Simulation {
    /// Runs it.
    ///
    /// # Panics
    /// Without workers or lanes.
    pub fn run(&self) -> SimulationResult {
        assert!(self.workers > 0 && !self.rates.is_empty(), "workers and lanes");
        Run::new(self).run()
    }
}

/// A simulation under way. Times are in nanoseconds.
struct Run<'a> {
    setup: &'a Simulation,
    random: StdRng,
    lanes: Vec<Lane>,
    deciders: Vec<Decider>,
    events: BinaryHeap<Reverse<(u64, usize, Event)>>,
    end: u64,
    warm_up: u64,
    latencies: Histogram,
    latency_sum: f64,
    cpu: u64,
    sleeps: u64,
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

impl<'a> Run<'a> {
    fn new(setup: &'a Simulation) -> Run<'a> {
        let mut random = StdRng::seed_from_u64(setup.seed);
        let count = setup.rates.len();
        let lanes = setup.rates.iter().map(|rates| {
            let policy = match &setup.policy {
                Policy::Metronome(settings) => {
                    Some(settings.lane(setup.workers, count, &setup.profile, Time::ZERO))
                }
                Policy::Busy | Policy::StepSleep(_) => None,
            };
            let mut lane = Lane {
                rates: rates.iter().map(|(from, rate)| (nanos(*from), *rate)).collect(),
                next_arrival: 0,
                queue: VecDeque::new(),
                released: 0,
                last_holder: 0,
                is_taken: false,
                policy,
                result: LaneResult::default(),
            };
            lane.draw(setup.spacing, &mut random);
            lane
        });
        let lanes: Vec<_> = lanes.collect();
        let mut run = Run {
            setup,
            lanes,
            deciders: (0..setup.workers).filter_map(|worker| decider(setup, worker)).collect(),
            events: BinaryHeap::new(),
            end: nanos(setup.length),
            warm_up: nanos(setup.warm_up),
            latencies: Histogram::new(),
            latency_sum: 0.0,
            cpu: 0,
            sleeps: 0,
            random,
        };
        for worker in 0..run.deciders.len() {
            // Workers do not start at the same moment.
            let start = run.random.random_range(0..100_000);
            let lane = match &run.deciders[worker] {
                Decider::Metronome(metronome) => metronome.lane().unwrap_or(0),
                Decider::Turns(_, own) => own[0],
            };
            run.events.push(Reverse((start, worker, Event::Try(lane))));
        }
        run
    }

    fn run(mut self) -> SimulationResult {
        while let Some(Reverse((now, worker, event))) = self.events.pop() {
            if now >= self.end {
                break;
            }
            match event {
                Event::Try(lane) => self.on_try(now, worker, lane),
                Event::Leave { lane, start, vacation, packets, drained } => {
                    self.lanes[lane].is_taken = false;
                    self.lanes[lane].released = now;
                    self.lanes[lane].last_holder = worker;
                    let visit = Visit {
                        now: Time::from_nanos(now),
                        vacation: Duration::from_nanos(vacation),
                        busy: Duration::from_nanos(now - start),
                        packets,
                        drained,
                    };
                    self.on_leave(worker, lane, visit);
                }
            }
        }
        let packets: u64 = self.lanes.iter().map(|lane| lane.result.packets).sum();
        let elapsed = (self.end - self.warm_up) as f64 * self.lanes.len() as f64;
        SimulationResult {
            lanes: self.lanes.into_iter().map(|lane| lane.result).collect(),
            latencies: self.latencies,
            latency_mean: if packets == 0 { 0.0 } else { self.latency_sum / packets as f64 / 1e9 },
            cpu_share: self.cpu as f64 / elapsed,
            sleeps: self.sleeps,
        }
    }

    fn counts(&self, now: u64) -> bool {
        now >= self.warm_up
    }

    /// A worker uses its core from `from` to `to`.
    fn spend(&mut self, from: u64, to: u64) {
        self.cpu += to.min(self.end).saturating_sub(from.max(self.warm_up));
    }

    fn on_try(&mut self, now: u64, worker: usize, index: usize) {
        let counts = self.counts(now);
        let lane = &mut self.lanes[index];
        lane.result.tries += u64::from(counts);
        if lane.is_taken {
            lane.result.lost_tries += u64::from(counts);
            let after = now + nanos(self.setup.lost_try);
            self.spend(now, after);
            let nap = match &mut self.deciders[worker] {
                Decider::Metronome(metronome) => metronome.lost(),
                Decider::Turns(..) => unreachable!("lanes that take turns have one worker"),
            };
            self.rest(after, worker, nap);
            return;
        }
        let vacation = now - lane.released;
        lane.is_taken = true;
        lane.admit(now, self.setup, counts, &mut self.random);
        if counts {
            let result = &mut lane.result;
            let seconds = vacation as f64 / 1e9;
            result.vacation_count += 1;
            result.vacation_sum += seconds;
            result.vacation_squares += seconds * seconds;
            result.found += lane.queue.len() as u64;
            result.won_by_other += u64::from(lane.last_holder != worker);
            if result.vacations.len() < MOST_SAMPLES {
                result.vacations.push(seconds);
            }
        }
        let budget = match &self.deciders[worker] {
            Decider::Metronome(metronome) => {
                metronome.budget().map_or(u64::MAX, |most| most as u64)
            }
            Decider::Turns(..) => BURST as u64,
        };
        let Drained { end, packets, is_empty } = self.drain(now, index, budget);
        if counts {
            self.lanes[index].result.busy_sum += (end - now) as f64 / 1e9;
        }
        self.spend(now, end);
        let leave = Event::Leave { lane: index, start: now, vacation, packets, drained: is_empty };
        self.events.push(Reverse((end, worker, leave)));
    }

    /// Takes bursts until nothing is left or the budget is used up. The last look finds nothing.
    fn drain(&mut self, start: u64, index: usize, budget: u64) -> Drained {
        let (mut now, mut packets) = (start, 0);
        let lane = &mut self.lanes[index];
        loop {
            lane.admit(now, self.setup, now >= self.warm_up, &mut self.random);
            let burst = lane.queue.len().min(BURST);
            if burst == 0 {
                now += nanos(self.setup.empty_poll);
                return Drained { end: now, packets, is_empty: true };
            }
            for arrived in lane.queue.drain(..burst) {
                let mut service = self.setup.service.as_nanos() as f64;
                if self.setup.varied_service {
                    let varied: f64 = Exp1.sample(&mut self.random);
                    service *= varied;
                }
                now += service as u64;
                if arrived >= self.warm_up {
                    self.latencies.record(now - arrived);
                    self.latency_sum += (now - arrived) as f64;
                    lane.result.packets += 1;
                }
            }
            packets += burst as u64;
            if packets >= budget || now >= self.end {
                return Drained { end: now, packets, is_empty: lane.queue.is_empty() };
            }
        }
    }

    fn on_leave(&mut self, worker: usize, lane: usize, visit: Visit) {
        let now = visit.now.as_nanos();
        match &mut self.deciders[worker] {
            Decider::Metronome(metronome) => {
                let policy = self.lanes[lane].policy.as_mut().expect("lanes of Metronome have one");
                let nap = metronome.won(policy, visit);
                self.rest(now, worker, nap);
            }
            Decider::Turns(policy, own) => {
                let outcome =
                    PollOutcome { packets: visit.packets as usize, ..PollOutcome::default() };
                let (next, slept) = match policy.next(outcome, visit.now) {
                    Next::Run(index) => (own[index], None),
                    Next::Sleep(time) => (lane, Some(time)),
                    Next::Wait => unreachable!("these policies do not block"),
                };
                let after = slept.map_or(now, |time| self.sleep(now, time));
                self.events.push(Reverse((after, worker, Event::Try(next))));
            }
        }
    }

    /// What a worker does after a try that ended at `now`.
    fn rest(&mut self, now: u64, worker: usize, nap: Nap) {
        let after = match nap {
            Nap::Now => now,
            Nap::Spin(time) => {
                let after = now + nanos(time);
                self.spend(now, after);
                after
            }
            // Interrupts are not simulated: an idle worker sleeps on.
            Nap::Sleep(ask) | Nap::Idle(ask) => self.sleep(now, ask),
        };
        let Decider::Metronome(metronome) = &self.deciders[worker] else {
            unreachable!("only Metronome naps")
        };
        let lane = metronome.lane().expect("lanes are not parked");
        self.events.push(Reverse((after, worker, Event::Try(lane))));
    }

    /// When a sleep of `ask` ends that begins at `now`.
    fn sleep(&mut self, now: u64, ask: Duration) -> u64 {
        let points = self.setup.profile.points();
        let nearest = points.iter().min_by_key(|point| point.asked().abs_diff(ask));
        let (taken, cpu) = match nearest {
            Some(point) => {
                let sample = point.taken()[self.random.random_range(0..point.taken().len())];
                ((ask + sample).saturating_sub(point.asked()), point.cpu())
            }
            None => (ask, Duration::ZERO),
        };
        // The two ends of a sleep are work.
        let after = now + nanos(taken.max(cpu));
        self.spend(now, now + nanos(cpu));
        self.sleeps += u64::from(self.counts(now));
        after
    }
}

impl Lane {
    /// Draws the next arrival, after the last.
    fn draw(&mut self, spacing: Spacing, random: &mut StdRng) {
        let from = self.next_arrival;
        let rate = self.rates.iter().take_while(|(start, _)| *start <= from).last();
        let later = self.rates.iter().map(|(start, _)| *start).find(|start| *start > from);
        let rate = rate.map_or(0.0, |(_, rate)| *rate);
        let gap = match spacing {
            Spacing::Constant => 1.0,
            Spacing::Poisson => Exp1.sample(random),
        };
        let next = if rate > 0.0 { from as f64 + gap * 1e9 / rate } else { f64::MAX };
        // A change of the rate before it: drawn anew from there, which is exact for a Poisson process.
        match later {
            Some(later) if next > later as f64 => {
                self.next_arrival = later;
                self.draw(spacing, random);
            }
            _ => self.next_arrival = (next.min(1e18) as u64).max(from),
        }
    }

    /// Takes up what has arrived by `now`; what meets a full queue is lost.
    fn admit(&mut self, now: u64, setup: &Simulation, counts: bool, random: &mut StdRng) {
        while self.next_arrival <= now {
            if self.queue.len() < setup.descriptors {
                self.queue.push_back(self.next_arrival);
            } else {
                self.result.lost += u64::from(counts);
            }
            self.draw(setup.spacing, random);
        }
    }
}

/// What decides for a worker; `None` for one that no lane is left for.
fn decider(setup: &Simulation, worker: usize) -> Option<Decider> {
    let count = setup.rates.len();
    match &setup.policy {
        Policy::Metronome(settings) => {
            let profile = setup.profile.clone();
            let mut metronome =
                Metronome::new(*settings, profile, worker, setup.workers, setup.seed);
            metronome.regroup(0..count);
            Some(Decider::Metronome(Box::new(metronome)))
        }
        Policy::Busy => turns(setup, worker, |lanes| {
            Box::new(rheostat_run::poll::Busy::new(lanes)) as Box<dyn PollPolicy>
        }),
        Policy::StepSleep(most) => turns(setup, worker, |lanes| {
            Box::new(StepSleep::new(lanes, *most)) as Box<dyn PollPolicy>
        }),
    }
}

fn turns(
    setup: &Simulation,
    worker: usize,
    policy: impl Fn(usize) -> Box<dyn PollPolicy>,
) -> Option<Decider> {
    let own: Vec<_> = (worker..setup.rates.len()).step_by(setup.workers).collect();
    (!own.is_empty()).then(|| Decider::Turns(policy(own.len()), own))
}
