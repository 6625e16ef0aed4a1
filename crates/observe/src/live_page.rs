//! The state of a run as its page shows it: figures of the last interval, their history, the heaviest flows and the event log.

mod changes;
mod event_log;
mod flow_sample;
mod recorder;
#[cfg(test)]
mod tests;
mod update;

pub use self::event_log::{Event, EventKind, EventLog};
pub use self::flow_sample::{FlowSamples, TopFlow};
pub use self::recorder::{KEPT, Recorder};

use self::update::Update;
