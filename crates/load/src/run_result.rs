//! What came of one run.

use crate::error::LoadError;
use crate::ledger::Ledger;
use crate::receiver::Ends;
use crate::schedule::{Finished, SendCounts};

/// Counts and latencies of a run, and how it ended.
#[derive(Debug)]
pub struct RunResult {
    /// Of the requests that were due in the window.
    pub sent: SendCounts,
    /// Of their replies.
    pub ledger: Ledger,
    /// Requests without a reply, on connections that are open.
    pub unanswered: u64,
    /// How connections ended.
    pub ends: Ends,
    /// Whether it ended before its time.
    pub is_early: bool,
    /// Whether it ended in its warm-up, which is what was measured then.
    pub is_warm_up: bool,
    /// Why it ended early, unless it was told to.
    pub problem: Option<LoadError>,
}

impl RunResult {
    /// Takes the window, or the warm-up where the run did not come to the window.
    pub(crate) fn new(
        finished: Finished,
        is_early: bool,
        ledgers: [Ledger; 2],
        unanswered: [u64; 2],
        ends: Ends,
        problem: Option<LoadError>,
    ) -> RunResult {
        let [warm_up, measured] = ledgers;
        let is_warm_up = is_early && finished.at <= measured.window().from;
        let (mut ledger, sent, unanswered) = match is_warm_up {
            true => (warm_up, finished.warm_up, unanswered[0]),
            false => (measured, finished.measured, unanswered[1]),
        };
        ledger.cut(finished.at);
        RunResult { sent, ledger, unanswered, ends, is_early, is_warm_up, problem }
    }
}
