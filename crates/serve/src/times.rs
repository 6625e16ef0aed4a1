//! Where the time of requests goes: how long each stage took, of one request in so many and of the slowest.
//!
//! Off unless it is asked for ([`TcpServer::timing`](crate::TcpServer::timing)). A request that is timed costs up to five readings
//! of the clock; the others cost a count. Besides those that are sampled, requests are timed that are late when they are found,
//! and those on a lane whose last ones took long, so that the slowest are among them: one in 20 us on average, 4,096 at once, since
//! under load all may be late.

mod meter;
mod stage;
mod stamps;
mod summary;

use std::sync::Arc;

use rheostat_base::ClockSource;

pub(crate) use meter::{Timed, TimesMeter, TimesRecord};
pub use stage::RequestStage;
pub(crate) use stamps::Stamps;
pub use stamps::TimedRequest;
pub use summary::{RequestTimes, StageSummary};

/// Which requests are timed, and by what.
#[derive(Clone)]
pub struct TimesConfig {
    /// The clock by which lanes are polled.
    pub clock: Arc<dyn ClockSource>,
    /// Whether packets carry the time at which they arrived, by this clock. Otherwise the time in receive queues is unknown, and
    /// requests arrive when they are received.
    pub has_arrivals: bool,
    /// One request in so many is sampled; not 0.
    pub one_in: u32,
    /// How many of the slowest requests are kept.
    pub slowest: usize,
}

impl TimesConfig {
    /// One request in 256, and the slowest 1,000.
    pub fn new(clock: Arc<dyn ClockSource>) -> TimesConfig {
        TimesConfig { clock, has_arrivals: false, one_in: 256, slowest: 1_000 }
    }
}

impl std::fmt::Debug for TimesConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TimesConfig { has_arrivals, one_in, slowest, .. } = self;
        f.debug_struct("TimesConfig")
            .field("has_arrivals", has_arrivals)
            .field("one_in", one_in)
            .field("slowest", slowest)
            .finish_non_exhaustive()
    }
}
