//! The events of a simulation, in order of time.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rheostat_base::Time;
use rheostat_run::poll::metronome::{Nap, Visit};
use rheostat_run::poll::{Next, PollOutcome};

use super::decider::Decider;
use super::lane::SimulatedLane;
use super::meter::VacationMeter;
use super::sleep::SimulatedSleep;
use super::{Simulation, SimulationResult};
use crate::event_queue::EventQueue;

/// Packets of a burst.
pub(super) const BURST: usize = 32;

/// What happens to a worker next.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Tries a lane.
    Try(usize),
    /// Leaves the lane that it took at `start` after a vacation.
    Leave { lane: usize, start: u64, vacation: u64, packets: u64, drained: bool },
}

/// What may change while a lane is drained.
struct Drained {
    end: u64,
    packets: u64,
    is_empty: bool,
}

/// A simulation under way. Times are in nanoseconds.
pub(super) struct EventLoop<'a> {
    setup: &'a Simulation,
    random: StdRng,
    lanes: Vec<SimulatedLane>,
    deciders: Vec<Decider>,
    /// When workers do something next.
    due: EventQueue,
    /// By worker, what that is.
    events: Vec<Event>,
    meter: VacationMeter,
    /// The packets of the burst under way: when each arrived, and was processed.
    burst: Vec<(u64, u64)>,
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

impl<'a> EventLoop<'a> {
    /// All workers about to try their first lanes.
    pub(super) fn new(setup: &'a Simulation) -> EventLoop<'a> {
        let mut random = StdRng::seed_from_u64(setup.seed);
        let lanes = setup.rates.iter().map(|rates| SimulatedLane::new(setup, rates, &mut random));
        let lanes = lanes.collect();
        let deciders = (0..setup.workers).filter_map(|worker| Decider::new(setup, worker));
        let deciders: Vec<_> = deciders.collect();
        let mut due = EventQueue::new(deciders.len());
        // Workers do not start at the same moment.
        (0..deciders.len()).for_each(|worker| due.set(worker, random.random_range(0..100_000)));
        let events = deciders.iter().map(|decider| Event::Try(decider.first())).collect();
        let (meter, burst) = (VacationMeter::new(setup), Vec::with_capacity(BURST));
        EventLoop { setup, random, lanes, deciders, due, events, meter, burst }
    }

    /// Runs to the end.
    pub(super) fn run(mut self) -> SimulationResult {
        while let Some((now, worker)) = self.due.pop(u64::MAX) {
            if self.meter.is_over(now) {
                break;
            }
            match self.events[worker] {
                Event::Try(lane) => self.on_try(now, worker, lane),
                Event::Leave { lane, start, vacation, packets, drained } => {
                    let left = &mut self.lanes[lane];
                    (left.is_taken, left.released, left.last_holder) = (false, now, worker);
                    let visit = Visit {
                        now: Time::from_nanos(now),
                        vacation: Duration::from_nanos(vacation),
                        busy: Duration::from_nanos(now - start),
                        packets,
                        drained,
                        ..Visit::default()
                    };
                    self.on_leave(worker, lane, visit);
                }
            }
        }
        self.meter.finish(self.lanes.into_iter().map(|lane| lane.result).collect())
    }

    /// A worker does this next.
    fn set(&mut self, worker: usize, at: u64, event: Event) {
        self.events[worker] = event;
        self.due.set(worker, at);
    }

    /// When a worker has done so much work that begins at `now`.
    fn work(&mut self, now: u64, work: u64) -> u64 {
        self.meter.spend(now, work);
        now + work
    }

    fn on_try(&mut self, now: u64, worker: usize, index: usize) {
        let counts = self.meter.counts(now);
        let lane = &mut self.lanes[index];
        lane.result.tries += u64::from(counts);
        if lane.is_taken {
            lane.result.lost_tries += u64::from(counts);
            let after = self.work(now, nanos(self.setup.lost_try));
            let nap = match &mut self.deciders[worker] {
                Decider::Metronome(metronome) => metronome.lost(),
                Decider::Turns(..) => unreachable!("lanes that take turns have one worker"),
            };
            self.rest(after, worker, nap);
            return;
        }
        let vacation = now - lane.released;
        lane.is_taken = true;
        lane.admit(now, counts, &mut self.random);
        let found = (lane.queue.len(), lane.last_holder != worker);
        self.meter.note_vacation(now, vacation, &mut lane.result, found);
        let budget = self.deciders[worker].budget();
        let Drained { end, packets, is_empty } = self.drain(now, index, budget);
        self.meter.note_busy(now, end, &mut self.lanes[index].result);
        let leave = Event::Leave { lane: index, start: now, vacation, packets, drained: is_empty };
        self.set(worker, end, leave);
    }

    /// Takes bursts until nothing is left or the budget is used up. The last look finds nothing.
    fn drain(&mut self, start: u64, index: usize, budget: u64) -> Drained {
        let (mut now, mut packets) = (start, 0);
        loop {
            let counts = self.meter.counts(now);
            let lane = &mut self.lanes[index];
            lane.admit(now, counts, &mut self.random);
            let burst = lane.queue.len().min(BURST);
            if burst == 0 {
                let end = self.work(now, nanos(self.setup.empty_poll));
                return Drained { end, packets, is_empty: true };
            }
            self.burst.clear();
            self.burst.extend(lane.queue.drain(..burst).map(|arrived| (arrived, 0)));
            for place in 0..burst {
                now = self.work_on_packet(now);
                self.burst[place].1 = now;
            }
            let lane = &mut self.lanes[index];
            self.meter.note_burst(&self.burst, &mut lane.result);
            packets += burst as u64;
            if packets >= budget || self.meter.is_over(now) {
                return Drained { end: now, packets, is_empty: lane.queue.is_empty() };
            }
        }
    }

    fn work_on_packet(&mut self, now: u64) -> u64 {
        let mut service = nanos(self.setup.service) as f64;
        if self.setup.varied_service {
            let varied: f64 = Exp1.sample(&mut self.random);
            service *= varied;
        }
        self.work(now, service as u64)
    }

    fn on_leave(&mut self, worker: usize, lane: usize, visit: Visit) {
        let now = visit.now.as_nanos();
        match &mut self.deciders[worker] {
            Decider::Metronome(metronome) => {
                let age = |home: usize| Duration::from_nanos(now - self.lanes[home].released);
                let home_age = metronome.patrol().map(age);
                let policy = self.lanes[lane].policy.as_mut().expect("lanes of Metronome have one");
                let nap = metronome.won(policy, visit, home_age);
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
                let after = slept.map_or(now, |time| self.sleep(worker, now, time));
                self.set(worker, after, Event::Try(next));
            }
        }
    }

    /// What a worker does after a try that ended at `now`.
    fn rest(&mut self, now: u64, worker: usize, nap: Nap) {
        let after = match nap {
            Nap::Now => now,
            Nap::Spin(time) => self.work(now, nanos(time)),
            // Interrupts are not simulated: an idle worker sleeps on.
            Nap::Sleep(ask) | Nap::Idle(ask) => self.sleep(worker, now, ask),
        };
        let Decider::Metronome(metronome) = &self.deciders[worker] else {
            unreachable!("only Metronome naps")
        };
        let lane = metronome.lane().expect("lanes are not parked");
        self.set(worker, after, Event::Try(lane));
    }

    /// When a worker runs again that sleeps from `now` on.
    fn sleep(&mut self, worker: usize, now: u64, ask: Duration) -> u64 {
        let sleep = SimulatedSleep::draw(&self.setup.profile, ask, &mut self.random);
        self.meter.note_sleep(now);
        self.meter.spend(now, nanos(sleep.cpu));
        let late = self.setup.interference.as_ref();
        let late = late.map_or(0, |program| program.lateness(worker, &mut self.random));
        now + nanos(sleep.taken) + late
    }
}
