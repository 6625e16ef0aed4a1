//! Sleeps of microseconds: how a thread takes them ([`Sleeper`]), and what they take on this machine
//! ([`calibrate`]). Polling policies decide by the result, a [`SleepProfile`].

mod calibration;
mod profile;
mod run_delay;
mod sleeper;

pub use calibration::{ASKED, SAMPLES_AT_START, calibrate};
pub use profile::{SleepPoint, SleepProfile};
pub use run_delay::{RunDelay, run_delay};
pub use sleeper::{SlackRefused, Sleeper};
