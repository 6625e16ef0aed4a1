//! What a scheduler came to at a load.

use rheostat_measure::record::{Column, TableRow, or_dash, to_three_digits};
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
    /// Calls by which lanes give packets to their device, per reply at this load, or at the capacity where nothing is measured at this
    /// load: on a live device, each is a system call.
    #[serde(default)]
    pub sends_per_reply: f64,
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

impl SchedBenchRow {
    /// A time, or why there is none.
    fn us(&self, time: Option<f64>) -> String {
        let missing = if self.saturated { "grows" } else { "-" };
        time.map_or_else(|| missing.to_owned(), to_three_digits)
    }
}

/// Requests per second, in thousands.
fn krps(rate: f64) -> String {
    format!("{:.1}k", rate / 1e3)
}

impl TableRow for SchedBenchRow {
    const COLUMNS: &'static [Column<SchedBenchRow>] = &[
        Column::name("workload", 15, |row| &row.workload),
        Column::number("load", 4, 2, |row| row.load),
        Column::apart(Column::name("scheduler", 19, |row| &row.scheduler)),
        Column::text("offered", 8, |row| krps(row.offered)),
        Column::text("achieved", 8, |row| or_dash(row.achieved, krps)),
        Column::text("capacity", 8, |row| krps(row.capacity)),
        Column::apart(Column::number("ns/req", 7, 0, |row| row.ns_per_request)),
        Column::number("client", 6, 0, |row| row.client_ns[0]),
        Column::number("client", 6, 0, |row| row.client_ns[1]),
        Column::number("sends", 5, 2, |row| row.sends_per_reply),
        Column::apart(Column::text("p50 us", 8, |row| row.us(row.p50_us))),
        Column::text("p99", 8, |row| row.us(row.p99_us)),
        Column::text("p99.9", 8, |row| row.us(row.p999_us)),
        Column::text("p99.99", 8, |row| row.us(row.p9999_us)),
        Column::text("95 %", 6, |row| {
            or_dash(row.ci95, |share| format!("±{:.0} %", 100.0 * share))
        }),
    ];

    fn remarks(&self) -> String {
        let mut text = String::new();
        if let Some([least, greatest]) = self.core_to_core_ns
            && !are_like([least, greatest])
        {
            text += &format!(
                "\n    lines took {least:.0} to {greatest:.0} ns between the first two workers: their distance changed meanwhile"
            );
        }
        if let Some(stages) = &self.stages {
            text += &format!("\n{stages}");
        }
        if let Some(simulated) = &self.simulated {
            text += &format!("\n    {simulated}");
            if let Some(caution) = simulated.caution(self.core_to_core_ns) {
                text += &format!("\n    {caution}");
            }
        }
        text
    }
}
