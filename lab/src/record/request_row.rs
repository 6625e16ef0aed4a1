//! What rows about requests have in common, whichever command printed them.

use rheostat_load::{LoadReport, LoadVerdict};
use serde_json::Value;

use crate::sched::{SchedBenchRow, StageTimes};
use crate::sim::sched::SchedRow;

/// A scheduler under a workload at a load. Latencies are in microseconds from when a request was due until its reply had left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestRow {
    /// The scheduler.
    pub scheduler: String,
    /// Its workers.
    pub workers: Option<u16>,
    /// How it was measured: `pumped` is with clients inside the process, `sockets` with `rheo load`; or `simulated`.
    pub rig: String,
    /// What requests are.
    pub workload: String,
    /// The load as a share; what of, the rig defines.
    pub load: Option<f64>,
    /// Requests that were due per second.
    pub offered: f64,
    /// Replies per second.
    pub achieved: Option<f64>,
    /// Replies per second when there is always more to do.
    pub capacity: Option<f64>,
    /// The interval of 95 % of the capacity.
    pub capacity_range: Option<[f64; 2]>,
    /// Whether more is offered than it can do: latencies then grow with the length of the run.
    pub saturated: bool,
    /// The median.
    pub p50_us: Option<f64>,
    /// The 99th percentile.
    pub p99_us: Option<f64>,
    /// The 99.9th percentile.
    pub p999_us: Option<f64>,
    /// The 99.99th percentile.
    pub p9999_us: Option<f64>,
    /// The interval of 95 % of p99.9.
    pub p999_range: Option<[f64; 2]>,
    /// Each class of requests, where there are several.
    pub classes: Vec<RequestClass>,
    /// Requests that the latencies are of.
    pub requests: u64,
    /// Where the time of requests went, if that was measured.
    pub stages: Option<StageTimes>,
}

/// Requests of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestClass {
    /// Its name.
    pub name: String,
    /// The 99.9th percentile of latency.
    pub p999_us: Option<f64>,
    /// The 99.9th percentile of latency ÷ service time, if the server states service times.
    pub slowdown_p999: Option<f64>,
}

/// The rig of simulated rows.
const SIMULATED: &str = "simulated";

impl RequestRow {
    /// A line of JSON that `rheo bench sched`, `rheo sim sched` or `rheo load` printed; `None` if it is another.
    pub fn read(line: &Value) -> Option<RequestRow> {
        fn parsed<T: serde::de::DeserializeOwned>(line: &Value) -> Option<T> {
            T::deserialize(line).ok()
        }
        parsed::<SchedBenchRow>(line)
            .map(|row| RequestRow::from(&row))
            .or_else(|| parsed::<SchedRow>(line).map(|row| RequestRow::from(&row)))
            .or_else(|| parsed::<LoadReport>(line).map(|row| RequestRow::from(&row)))
    }

    /// Whether it was simulated.
    pub fn is_simulated(&self) -> bool {
        self.rig == SIMULATED
    }
}

impl From<&SchedBenchRow> for RequestRow {
    fn from(row: &SchedBenchRow) -> RequestRow {
        RequestRow {
            scheduler: row.scheduler.clone(),
            workers: Some(row.workers),
            rig: row.rig.clone(),
            workload: row.workload.clone(),
            load: Some(row.load),
            offered: row.offered,
            achieved: row.achieved,
            capacity: Some(row.capacity),
            capacity_range: Some(row.capacity_range),
            saturated: row.saturated,
            p50_us: row.p50_us,
            p99_us: row.p99_us,
            p999_us: row.p999_us,
            p9999_us: row.p9999_us,
            p999_range: row.p999_range.or_else(|| interval(row.p999_us, row.ci95)),
            classes: short_and_long(row.p999_short_us, row.p999_long_us),
            requests: row.requests,
            stages: row.stages.clone(),
        }
    }
}

impl From<&SchedRow> for RequestRow {
    fn from(row: &SchedRow) -> RequestRow {
        // Simulated times are there for loads beyond the capacity, too, and grow with the length of the run.
        let known = |time: Option<f64>| time.filter(|_| !row.saturated);
        // With p99.99, the interval is that one's.
        let ci95 = row.ci95.filter(|_| row.p9999_us.is_none());
        RequestRow {
            scheduler: row.scheduler.clone(),
            workers: Some(row.cores),
            rig: SIMULATED.to_owned(),
            workload: row.workload.clone(),
            load: Some(row.load),
            offered: row.offered,
            achieved: Some(row.throughput),
            capacity: Some(row.capacity),
            capacity_range: None,
            saturated: row.saturated,
            p50_us: known(Some(row.p50_us)),
            p99_us: known(Some(row.p99_us)),
            p999_us: known(Some(row.p999_us)),
            p9999_us: known(row.p9999_us),
            p999_range: known(ci95).and_then(|half| interval(Some(row.p999_us), Some(half))),
            classes: short_and_long(known(row.p999_short_us), known(row.p999_long_us)),
            requests: row.requests,
            stages: None,
        }
    }
}

impl From<&LoadReport> for RequestRow {
    fn from(row: &LoadReport) -> RequestRow {
        let offers_all = row.verdict() == LoadVerdict::Offered;
        let known = |time: Option<f64>| time.filter(|_| offers_all);
        let classes: Vec<RequestClass> = row
            .classes
            .iter()
            .map(|class| RequestClass {
                name: class.name.clone(),
                p999_us: known(class.p999_us),
                slowdown_p999: known(class.slowdown_p999),
            })
            .collect();
        let names: Vec<&str> = row.classes.iter().map(|class| class.name.as_str()).collect();
        let workload = match names[..] {
            [] | ["all"] => row.protocol.clone(),
            _ => format!("{} {}", row.protocol, names.join("+")),
        };
        RequestRow {
            scheduler: row.scheduler.clone().unwrap_or_else(|| row.server.clone()),
            workers: None,
            rig: "sockets".to_owned(),
            workload,
            load: None,
            // What was asked for: what was sent differs a little from run to run.
            offered: row.rate,
            achieved: Some(row.achieved),
            capacity: None,
            capacity_range: None,
            saturated: !offers_all,
            p50_us: known(row.p50_us),
            p99_us: known(row.p99_us),
            p999_us: known(row.p999_us),
            p9999_us: known(row.p9999_us),
            p999_range: known(row.p999_mean_us)
                .zip(row.ci95)
                .map(|(mean, half)| [(mean - half).max(0.0), mean + half]),
            classes: if classes.len() > 1 { classes } else { Vec::new() },
            requests: row.replies,
            stages: None,
        }
    }
}

/// The interval around a value whose half is this share of it. It ends at 0 where it is from ranks and wider than the value.
fn interval(value: Option<f64>, half: Option<f64>) -> Option<[f64; 2]> {
    let (value, half) = (value?, half?);
    Some([value * (1.0 - half).max(0.0), value * (1.0 + half)])
}

fn short_and_long(short: Option<f64>, long: Option<f64>) -> Vec<RequestClass> {
    if short.is_none() && long.is_none() {
        return Vec::new();
    }
    let class =
        |name: &str, p999_us| RequestClass { name: name.to_owned(), p999_us, slowdown_p999: None };
    vec![class("short", short), class("long", long)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_wider_than_its_value_ends_at_zero() {
        assert_eq!(interval(Some(10.0), Some(0.25)), Some([7.5, 12.5]));
        assert_eq!(interval(Some(10.0), Some(3.0)), Some([0.0, 40.0]));
        assert_eq!(interval(Some(10.0), None), None);
    }
}
