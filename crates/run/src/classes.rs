//! What lanes measure of classes of traffic, for a policy that plans for latency objectives. A run without objectives has none of
//! this: then a lane tests one pointer per batch.
//!
//! | file | what it does |
//! |---|---|
//! | `meter` | tells the packets of a batch apart, and measures some of them |
//! | `figures` | what a lane has measured so far, to be read while it runs |
//! | `looks` | what was measured between two looks, as a policy wants it |
//! | `heavy` | which flows are the heaviest |
//!
//! Every packet is counted. If there are classes, the packets of a burst are told apart together. One batch in [`SAMPLE`] is
//! measured, with two readings of the clock. What is measured of it:
//!
//! - **Waits**: from arrival, where the device knows it, to the start of processing. All packets of a batch share its time, so
//!   the n-th of m packets is taken to start after n ÷ m of it.
//! - **CA²**: from the times between arrivals of packets of the class, the last of the batch before included.
//! - **CS² and T**: a batch gives the mean of its packets' times. The variance of one packet is taken to be that of means of n
//!   packets times n, which holds where packets are independent.

mod figures;
mod heavy;
mod looks;
mod meter;

use std::sync::Arc;

use rheostat_base::clock::ClockSource;
use rheostat_steer::ClassRules;
use rheostat_steer::policy::Objectives;

pub use figures::{ClassFigures, RuleFigures};
pub use heavy::{FlowName, HeavyFlows, HeavyShare};
pub use looks::ClassLooks;
pub(crate) use meter::{ClassMeter, Timing};

/// One batch in so many is measured.
pub const SAMPLE: u32 = 32;

/// What is measured by class, and by which clock.
#[derive(Clone)]
pub struct Classes {
    /// Which packets are of which class.
    pub rules: ClassRules,
    /// What latencies their packets may have, and what counts as one.
    pub objectives: Objectives,
    /// The clock of the run.
    pub clock: Arc<dyn ClockSource>,
}

impl std::fmt::Debug for Classes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Classes").field("rules", &self.rules).finish_non_exhaustive()
    }
}
