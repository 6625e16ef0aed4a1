//! What decides for a simulated worker: the runtime's own policies.

use rheostat_run::poll::metronome::Metronome;
use rheostat_run::poll::{Busy, PollPolicy, StepSleep};

use super::{Policy, Simulation};

/// What decides for a worker.
pub(super) enum Decider {
    /// Metronome.
    Metronome(Box<Metronome>),
    /// Lanes in turn, which are the worker's own.
    Turns(Box<dyn PollPolicy>, Vec<usize>),
}

impl Decider {
    /// That of one worker; `None` if no lane is left for it.
    pub(super) fn new(setup: &Simulation, worker: usize) -> Option<Decider> {
        let (workers, lanes) = (setup.workers, setup.rates.len());
        let own: Vec<_> = (worker..lanes).step_by(workers).collect();
        let policy: Box<dyn PollPolicy> = match &setup.policy {
            Policy::Metronome(settings) => {
                let profile = setup.profile.clone();
                let mut metronome = Metronome::new(*settings, profile, worker, workers, setup.seed);
                metronome.regroup(0..lanes);
                return Some(Decider::Metronome(Box::new(metronome)));
            }
            _ if own.is_empty() => return None,
            Policy::Busy => Box::new(Busy::new(own.len())),
            Policy::StepSleep(most) => Box::new(StepSleep::new(own.len(), *most)),
        };
        Some(Decider::Turns(policy, own))
    }

    /// The lane that the worker tries first.
    pub(super) fn first(&self) -> usize {
        match self {
            Decider::Metronome(metronome) => metronome.lane().unwrap_or(0),
            Decider::Turns(_, own) => own[0],
        }
    }

    /// Packets that the worker takes from a lane at most.
    pub(super) fn budget(&self) -> u64 {
        match self {
            Decider::Metronome(metronome) => {
                metronome.budget().map_or(u64::MAX, |most| most as u64)
            }
            Decider::Turns(..) => super::event_loop::BURST as u64,
        }
    }
}
