//! What a service came to.

use std::collections::BTreeMap;
use std::fmt;

use rheostat_base::DropReason;
use rheostat_run::{LaneSample, RunReport};
use rheostat_serve::Totals;
use serde::Serialize;

/// The summary of a service that is over.
#[derive(Debug, Serialize)]
pub(super) struct ServeSummary {
    /// Connections that were established.
    connections: u64,
    #[serde(flatten)]
    totals: TotalsJson,
    /// Packets dropped, by reason.
    dropped: BTreeMap<&'static str, u64>,
    /// Invariants that did not hold.
    violations: Vec<String>,
}

#[derive(Debug)]
struct TotalsJson(Totals);

impl Serialize for TotalsJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.named())
    }
}

impl ServeSummary {
    pub(super) fn new(report: &RunReport, totals: &Totals) -> ServeSummary {
        let lanes = LaneSample::sum(&report.last.lanes);
        let count = |reason: &DropReason| (reason.name(), lanes.dropped[*reason as usize]);
        let dropped = DropReason::ALL.iter().map(count).filter(|(_, count)| *count > 0).collect();
        ServeSummary {
            connections: totals.accepted,
            totals: TotalsJson(*totals),
            dropped,
            violations: report.violations.iter().map(ToString::to_string).collect(),
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers")
    }
}

impl fmt::Display for ServeSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.totals.0.named().filter(|(_, count)| *count > 0) {
            writeln!(f, "{:>24}  {count}", name.replace('_', " "))?;
        }
        for (reason, count) in &self.dropped {
            writeln!(f, "{:>24}  {count} {reason}", "dropped")?;
        }
        let account = if self.violations.is_empty() { "ok" } else { "broken" };
        write!(f, "{:>24}  {account}", "account")
    }
}
