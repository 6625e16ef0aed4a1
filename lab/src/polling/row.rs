//! What a row says.

use serde::{Deserialize, Serialize};

/// One policy under one load. The fields are those of the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
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

/// Rows for people.
#[derive(Clone, Copy, Debug)]
pub struct Table;

impl Table {
    /// Names the columns.
    pub fn heading() -> String {
        format!(
            "{:<14} {:>3} {:>3} {:>5} {:>10} {:>7} {:>7} {:>9} {:>9} {:>9} {:>9} {:<10} {:>6} beside",
            "policy",
            "wrk",
            "ln",
            "load",
            "packets/s",
            "CPU",
            "source",
            "loss",
            "p50 us",
            "p99 us",
            "vacation",
            "mode",
            "quiet",
        )
    }

    /// A row.
    pub fn line(row: &Row) -> String {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let us = |time: Option<f64>| time.map_or("-".into(), |us| format!("{us:.1}"));
        let loss = if row.loss > 0.0 { format!("{:.5} %", 100.0 * row.loss) } else { "0".into() };
        let beside = match (&row.beside, row.beside_slowdown) {
            (Some(beside), Some(slowdown)) => format!("{beside}: {} longer", percent(slowdown)),
            (Some(beside), None) => format!("{beside}: stands still"),
            (None, _) => String::new(),
        };
        let line = format!(
            "{:<14} {:>3} {:>3} {:>5} {:>10.0} {:>7} {:>7} {loss:>9} {:>9} {:>9} {:>9} {:<10} {:>6} {beside}",
            row.policy,
            row.workers,
            row.lanes,
            row.load,
            row.rate_pps,
            percent(row.cpu_share),
            percent(row.source_cpu_share),
            us(row.p50_us),
            us(row.p99_us),
            us(row.vacation_mean_us),
            row.mode,
            percent(row.quiet).replace(".0", ""),
        );
        line.trim_end().to_owned()
    }
}
