//! Entries of rankings, as logs and summaries show them.

use rheostat_run::Ranking;
use rheostat_state::Estimate;
use serde::{Deserialize, Serialize};

/// An entry of a ranking, and what is known of its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopLine {
    /// The host or flow.
    pub name: String,
    /// Counted for sure.
    pub least: u64,
    /// It is not more.
    pub most: u64,
}

impl TopLine {
    /// The entries of a ranking.
    pub fn of(ranking: &Ranking) -> Vec<TopLine> {
        let line = |(name, count): (&str, Estimate)| TopLine {
            name: name.to_owned(),
            least: count.least(),
            most: count.most,
        };
        ranking.top().into_iter().map(line).collect()
    }
}
