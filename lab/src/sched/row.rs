//! What a scheduler came to at a load.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::comparison::Simulated;
use super::core_to_core::are_like;
use super::stage_times::StageTimes;

/// A scheduler under a workload at a load. Latencies are in microseconds from when a request was due until its reply was transmitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedBenchRow {
    /// The scheduler.
    pub scheduler: String,
    /// Its workers, each on a core of its own.
    pub workers: u16,
    /// How it was measured: `pumped` is with clients inside the process.
    pub rig: String,
    /// The distribution of service times.
    pub workload: String,
    /// Connections.
    pub connections: u32,
    /// The share of the capacity of the first scheduler.
    pub load: f64,
    /// Requests that were due per second.
    pub offered: f64,
    /// Replies that left per second; `None` where nothing was measured because more is offered than it can do.
    pub achieved: Option<f64>,
    /// Replies that leave per second when there is always more to do.
    pub capacity: f64,
    /// The interval of 95 % of the capacity.
    pub capacity_range: [f64; 2],
    /// What a request costs at the capacity beside the application's work and the clients': time of all workers.
    pub ns_per_request: f64,
    /// By how much that is more than what the first scheduler costs.
    pub above_first_ns: f64,
    /// The clients' work per request at the capacity, and at this load: workers do it, and it is part of `capacity`.
    pub client_ns: [f64; 2],
    /// What the application took, on average.
    pub service_ns: f64,
    /// The median.
    pub p50_us: Option<f64>,
    /// The 99th percentile.
    pub p99_us: Option<f64>,
    /// The 99.9th percentile.
    pub p999_us: Option<f64>,
    /// The 99.99th percentile.
    pub p9999_us: Option<f64>,
    /// The 99.9th percentile of requests of the first class, where there are several.
    pub p999_short_us: Option<f64>,
    /// The same of the other classes.
    pub p999_long_us: Option<f64>,
    /// Half of the interval of 95 % of p99.9 as a share of it, from windows.
    pub ci95: Option<f64>,
    /// That interval, in microseconds.
    #[serde(default)]
    pub p999_range: Option<[f64; 2]>,
    /// Whether more is offered than it can do: latencies then grow with the length of the run.
    pub saturated: bool,
    /// Requests that waited for the window of their connection.
    pub waited: u64,
    /// Segments that the service sent again at this load: nothing is lost, so the machine paused for longer than TCP waits.
    #[serde(default)]
    pub repeated: u64,
    /// Replies measured.
    pub requests: u64,
    /// Allocations per request at the capacity.
    pub allocations: f64,
    /// What a line takes from the core of the first worker to that of the second, before and behind each round: the least and the
    /// greatest, in nanoseconds. Figures of schedulers that share are of such distances alone.
    #[serde(default)]
    pub core_to_core_ns: Option<[f64; 2]>,
    /// Where the time of requests went, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stages: Option<StageTimes>,
    /// The same in simulation, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub simulated: Option<Simulated>,
}

/// The heading of a table of rows.
pub fn heading() -> String {
    format!(
        "{:<15} {:>4}  {:<19} {:>8} {:>8} {:>8}  {:>7} {:>6} {:>6}  {:>8} {:>8} {:>8} {:>8} {:>6}",
        "workload",
        "load",
        "scheduler",
        "offered",
        "achieved",
        "capacity",
        "ns/req",
        "client",
        "client",
        "p50 us",
        "p99",
        "p99.9",
        "p99.99",
        "95 %"
    )
}

impl fmt::Display for SchedBenchRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let krps = |rate: f64| format!("{:.1}k", rate / 1e3);
        let missing = if self.saturated { "grows" } else { "-" };
        let us = |time: Option<f64>| time.map_or_else(|| missing.to_owned(), digits);
        let interval =
            self.ci95.map_or_else(|| "-".to_owned(), |share| format!("±{:.0} %", 100.0 * share));
        write!(
            f,
            "{:<15} {:>4.2}  {:<19} {:>8} {:>8} {:>8}  {:>7.0} {:>6.0} {:>6.0}  {:>8} {:>8} {:>8} {:>8} {:>6}",
            self.workload,
            self.load,
            self.scheduler,
            krps(self.offered),
            self.achieved.map_or_else(|| "-".to_owned(), krps),
            krps(self.capacity),
            self.ns_per_request,
            self.client_ns[0],
            self.client_ns[1],
            us(self.p50_us),
            us(self.p99_us),
            us(self.p999_us),
            us(self.p9999_us),
            interval
        )?;
        if let Some([least, greatest]) = self.core_to_core_ns
            && !are_like([least, greatest])
        {
            write!(
                f,
                "\n    lines took {least:.0} to {greatest:.0} ns between the first two workers: their distance changed meanwhile"
            )?;
        }
        if let Some(stages) = &self.stages {
            write!(f, "\n{stages}")?;
        }
        if let Some(simulated) = &self.simulated {
            write!(f, "\n    {simulated}")?;
            if let Some(caution) = simulated.caution(self.core_to_core_ns) {
                write!(f, "\n    {caution}")?;
            }
        }
        Ok(())
    }
}

/// A time to three digits.
fn digits(us: f64) -> String {
    let decimals = if us < 10.0 { 2 } else { usize::from(us < 100.0) };
    format!("{us:.decimals$}")
}
