//! What a row says.

use rheostat_measure::record::{Column, TableRow};
use serde::{Deserialize, Serialize};

/// One policy under one load. The fields are those of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PollingRow {
    /// busy, busy-again (the same once more: what the two differ by is chance), metronome, metronome-p99 (with a target
    /// latency), metronome-equal (whose target latency is step-sleep's p99), interrupt, step-sleep.
    pub policy: String,
    /// What lanes do with packets.
    pub chain: String,
    /// Threads.
    pub workers: usize,
    /// Lanes.
    pub lanes: usize,
    /// The rate as a share of what busy polling can do.
    pub load: f64,
    /// Packets that arrived per second, all lanes together.
    pub rate_pps: f64,
    /// Processor time of all workers ÷ (wall clock × lanes), the source's taken off.
    pub cpu_share: f64,
    /// What was taken off: a packet's cost on the way from the device, measured alone, × packets per second ÷ lanes.
    pub source_cpu_share: f64,
    /// Packets dropped for want of a descriptor or a buffer ÷ packets arrived.
    pub loss: f64,
    /// From when a packet is due to when it leaves: the median, in microseconds; `null` without packets.
    pub p50_us: Option<f64>,
    /// What 99 of 100 do not exceed.
    pub p99_us: Option<f64>,
    /// The target: of vacations, of step-sleep's longest sleep, or of metronome-p99's 99th percentile.
    pub target_us: f64,
    /// The mean vacation of lanes in metronome mode; `null` of other policies, and in other modes.
    pub vacation_mean_us: Option<f64>,
    /// The mode that lanes were in for most of the time; of step-sleep its name.
    pub mode: String,
    /// Lost tries of lanes' locks ÷ tries; `null` where lanes belong to workers.
    pub lost_tries: Option<f64>,
    /// Times per second that workers woke up.
    pub wake_ups_per_s: f64,
    /// How long it was measured: the slices that count.
    pub seconds: f64,
    /// The share of slices, each a tenth of a second, that the machine left alone: those count, unless it is below 0.2.
    pub quiet: f64,
    /// How long threads of this process were ready and had no core, in milliseconds.
    pub run_delay_ms: f64,
    /// How long the hypervisor ran something else while a core was to run.
    pub steal_ms: f64,
    /// The nice value of the program that computed on the same cores, and that of workers, such as `nice:19/-20`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<String>,
    /// How much longer that program takes than alone: 1 is twice as long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_slowdown: Option<f64>,
}

/// A share in percent, to a tenth.
fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

impl TableRow for PollingRow {
    const COLUMNS: &'static [Column<PollingRow>] = &[
        Column::name("policy", 14, |row| &row.policy),
        Column::count("wrk", 3, |row| row.workers as u64),
        Column::count("ln", 3, |row| row.lanes as u64),
        Column::text("load", 5, |row| row.load.to_string()),
        Column::number("packets/s", 10, 0, |row| row.rate_pps),
        Column::percent("CPU", 7, 1, |row| row.cpu_share),
        Column::percent("source", 7, 1, |row| row.source_cpu_share),
        Column::text("loss", 9, |row| match row.loss {
            loss if loss > 0.0 => format!("{:.5} %", 100.0 * loss),
            _ => "0".into(),
        }),
        Column::known("p50 us", 9, 1, |row| row.p50_us),
        Column::known("p99 us", 9, 1, |row| row.p99_us),
        Column::known("vacation", 9, 1, |row| row.vacation_mean_us),
        Column::name("mode", 10, |row| &row.mode),
        Column::text("quiet", 6, |row| percent(row.quiet).replace(".0", "")),
        Column::text("beside", 0, |row| match (&row.beside, row.beside_slowdown) {
            (Some(beside), Some(slowdown)) => format!("{beside}: {} longer", percent(slowdown)),
            (Some(beside), None) => format!("{beside}: stands still"),
            (None, _) => String::new(),
        }),
    ];
}
