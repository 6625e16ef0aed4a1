//! Workers, lanes, sleeps and packets in virtual time: what cannot be run on two cores.
//!
//! Every worker has a core. Packets arrive one by one in queues of bounded length; the worker that holds a lane takes
//! them in bursts until none is left. Sleeps take what a measured profile has. The decisions are those of the runtime's
//! own policies, not of a copy.

mod decider;
mod event_loop;
mod interference;
mod lane;
mod meter;
mod result;
mod sleep;

use std::sync::Arc;
use std::time::Duration;

use rheostat_kernel::sleep::SleepProfile;
use rheostat_run::poll::metronome::MetronomeSettings;

use self::event_loop::EventLoop;
pub use self::interference::Interference;
pub use self::result::{Interval, LaneResult, MOST_SAMPLES, SimulationResult};
use crate::datagrams::Spacing;

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

/// When a packet's latency ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// With its own processing, as the queue of the model has it.
    Each,
    /// With that of the last packet of its burst, as lanes do, which send once per poll.
    Burst,
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
    /// When packets leave.
    pub departure: Departure,
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
    /// Another program on the cores of some workers.
    pub interference: Option<Interference>,
    /// How long, in virtual time.
    pub length: Duration,
    /// The part at the start that does not count.
    pub warm_up: Duration,
    /// The length of the intervals by which the course is noted.
    pub interval: Option<Duration>,
    /// The seed.
    pub seed: u64,
}

impl Simulation {
    /// Runs it.
    ///
    /// Bounds: takes about 100 ns per packet and per try; memory does not depend on the length, but for the intervals and
    /// up to [`MOST_SAMPLES`] vacations of each lane.
    ///
    /// # Panics
    /// Without workers or lanes.
    pub fn run(&self) -> SimulationResult {
        assert!(self.workers > 0 && !self.rates.is_empty(), "workers and lanes");
        EventLoop::new(self).run()
    }
}
