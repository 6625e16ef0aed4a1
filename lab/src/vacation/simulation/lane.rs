//! One simulated lane: its arrivals, its queue, its lock.

use std::collections::VecDeque;
use std::time::Duration;

use rand::rngs::StdRng;
use rheostat_base::Time;
use rheostat_run::poll::metronome::LanePolicy;

use super::result::LaneResult;
use super::{Policy, Simulation};
use crate::vacation::arrivals::VacationArrivals;

/// A lane. Times are in nanoseconds.
pub(super) struct SimulatedLane {
    arrivals: VacationArrivals,
    /// When the packets in it arrived.
    pub(super) queue: VecDeque<u64>,
    descriptors: usize,
    pub(super) released: u64,
    /// The worker that released it.
    pub(super) last_holder: usize,
    pub(super) is_taken: bool,
    /// None of policies other than Metronome.
    pub(super) policy: Option<LanePolicy>,
    pub(super) result: LaneResult,
}

impl SimulatedLane {
    /// A lane with these rates that was not polled yet.
    pub(super) fn new(
        setup: &Simulation,
        rates: &[(Duration, f64)],
        random: &mut StdRng,
    ) -> SimulatedLane {
        let policy = match &setup.policy {
            Policy::Metronome(settings) => {
                let (workers, lanes) = (setup.workers, setup.rates.len());
                Some(settings.lane(workers, lanes, &setup.profile, Time::ZERO))
            }
            Policy::Busy | Policy::StepSleep(_) => None,
        };
        let rates = rates.iter().map(|(from, rate)| (from.as_nanos() as u64, *rate)).collect();
        SimulatedLane {
            arrivals: VacationArrivals::new(setup.spacing, rates, random),
            queue: VecDeque::new(),
            descriptors: setup.descriptors,
            released: 0,
            last_holder: 0,
            is_taken: false,
            policy,
            result: LaneResult::default(),
        }
    }

    /// Takes up what has arrived by `now`; what meets a full queue is lost.
    pub(super) fn admit(&mut self, now: u64, counts: bool, random: &mut StdRng) {
        while self.arrivals.next() <= now {
            if self.queue.len() < self.descriptors {
                self.queue.push_back(self.arrivals.next());
            } else {
                self.result.lost += u64::from(counts);
            }
            self.arrivals.advance(random);
        }
    }
}
