//! What a worker does next: poll a lane, sleep, or wait.

mod busy;
mod interrupt;
pub mod metronome;
mod polling;
mod registration;
mod step_sleep;

pub use busy::Busy;
pub use interrupt::Interrupt;
pub use polling::Polling;
pub use registration::{PollingRegistration, ReadPolling};
pub use step_sleep::StepSleep;

use std::time::Duration;

use rheostat_base::Time;

/// The polling policies that come along, the default first.
pub const ALL: [PollingRegistration; 4] = [
    busy::REGISTRATION,
    interrupt::REGISTRATION,
    metronome::REGISTRATION,
    step_sleep::REGISTRATION,
];

/// What came of polling a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollOutcome {
    /// Packets received from devices, taken from other lanes, and come back from a pool.
    pub packets: usize,
    /// When the lane next has work without a packet arriving.
    pub next_deadline: Option<Time>,
}

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Poll the worker's lane of this index.
    Run(usize),
    /// Sleep, then ask again.
    Sleep(Duration),
    /// Block until a lane has packets.
    Wait,
}

/// How a worker that runs several lanes divides its time, and what it does when they are idle.
pub trait PollPolicy: Send {
    /// Decides after a poll that ended with `outcome`, at `now`.
    fn next(&mut self, outcome: PollOutcome, now: Time) -> Next;
}
