//! Sleeps of microseconds: what they take, and the thread that takes them.

mod profile;

pub use profile::{SleepPoint, SleepProfile};
