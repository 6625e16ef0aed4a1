//! A cause of conflicts, as it is reported.

use serde::{Deserialize, Serialize};

/// A cause of conflicts: two operations on one object, in two places of the code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// The object's name.
    pub object: String,
    /// What kind of object it is.
    pub kind: String,
    /// The two operations, as `read / update`; one, where it is not known what it met.
    pub operations: String,
    /// The cause, as a sentence.
    pub cause: String,
    /// Where the function calls the operations, as `file:line`, in their order; one place, where both are called
    /// from there.
    pub source: String,
    /// Which part of the aborts it is the cause of, 0 to 1.
    pub share: f64,
    /// How many aborts that is: of all of them, not only of those whose cause was noted.
    pub aborts: u64,
    /// Of lanes' time, how many seconds went into attempts that were undone because of it; see
    /// [`ScalingProfile::lost_seconds`](super::ScalingProfile::lost_seconds).
    pub lost_seconds: f64,
    /// What to do about it first, with the setting that does it where there is one.
    pub recipe: String,
    /// What else would help.
    pub others: Vec<String>,
    /// How many times the rate to expect of the same lanes once nothing on this object conflicts for this cause any
    /// more, whatever the operations: an estimate (docs/profiler.md).
    pub gain: f64,
}

/// How many times as much a lane does when `avoided` of its `attempts` do not take place any more, all of them
/// taking as long.
///
/// An attempt that is undone early takes less than one that takes effect, so the truth may be less; lines that
/// travel between cores make conflicting attempts slower than others, so it may be more. Attempts that would
/// then conflict for another cause are not looked for.
pub(super) fn expected_gain(attempts: u64, avoided: f64) -> f64 {
    let attempts = attempts as f64;
    if attempts > avoided { attempts / (attempts - avoided) } else { 1.0 }
}
