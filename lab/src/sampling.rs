//! `rheo bench profile`: what it costs to note why transactions were aborted.
//!
//! The case with the most conflicts, Anti-DDoS that wants counters as they are, runs with the causes of no abort
//! noted, of one in 256, and of each, in turn, so that what drifts with time falls on all alike. Without conflicts there
//! is nothing to note and no difference: an attempt that takes effect does the same in each.

use std::fmt;
use std::time::Duration;

use rheostat_measure::confidence::Median;
use serde::{Deserialize, Serialize};

use crate::contention::{AntiDdos, ContentionMeasurement, RealLanes};
use crate::error::BenchError;

/// Which causes are noted: the name in rows, and of how many aborts one.
const KINDS: [(&str, u32); 3] = [("none", u32::MAX), ("1 in 256", 256), ("each", 1)];

/// Measures noting side by side.
#[derive(Clone, Copy, Debug)]
pub struct SamplingBench {
    /// Lanes, each with a core of its own.
    pub lanes: usize,
    /// Windows per row; one more comes first and does not count.
    pub windows: usize,
    /// Packets of each lane per window.
    pub packets: u64,
    /// Packets of a transaction at most.
    pub batch: u64,
    /// Pseudo-random numbers drawn per packet, which stand for the rest of its processing.
    pub work: u32,
}

/// What noting costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingRow {
    /// Of which aborts the cause is noted: "none", "1 in 256" or "each".
    pub noted: String,
    /// Lanes.
    pub lanes: usize,
    /// A lane's time for a packet, in nanoseconds: the median window.
    pub ns_per_packet: f64,
    /// Aborts ÷ attempts, over all windows.
    pub abort_rate: f64,
    /// The time ÷ that without noting in the same round: the median, and between what it lies with a confidence of
    /// 95 %.
    pub time_ratio: f64,
    /// The least it may be.
    pub ratio_low: f64,
    /// The most it may be.
    pub ratio_high: f64,
}

impl SamplingBench {
    /// Measures.
    ///
    /// # Errors
    /// [`BenchError`] when there are fewer cores than lanes.
    pub fn run(&self) -> Result<Vec<SamplingRow>, BenchError> {
        let pattern = AntiDdos::new(self.lanes, Duration::ZERO);
        let mut lanes = RealLanes::new(&pattern, self.lanes, self.batch, self.work)?;
        lanes.require_cores()?;
        let mut windows: [Vec<ContentionMeasurement>; 3] = Default::default();
        for round in 0..=self.windows {
            for turn in 0..KINDS.len() {
                // Each begins in its turn.
                let kind = (round + turn) % KINDS.len();
                let measured = lanes.run(self.packets, KINDS[kind].1)?;
                if round > 0 {
                    windows[kind].push(measured);
                }
            }
        }
        let [none, ..] = &windows;
        let rows = KINDS.iter().zip(&windows);
        Ok(rows.map(|((name, _), windows)| self.row(name, windows, none)).collect())
    }

    fn row(
        &self,
        name: &str,
        windows: &[ContentionMeasurement],
        none: &[ContentionMeasurement],
    ) -> SamplingRow {
        let ns = |window: &ContentionMeasurement| window.ns_per_packet(self.lanes);
        let ratios = windows.iter().zip(none).map(|(window, none)| ns(window) / ns(none));
        let ratio = Median::of(ratios.collect());
        let sum =
            |of: fn(&ContentionMeasurement) -> u64| windows.iter().map(of).sum::<u64>() as f64;
        let aborts = sum(|window| window.profile.total().aborts);
        let commits = sum(|window| window.profile.total().commits);
        SamplingRow {
            noted: name.to_owned(),
            lanes: self.lanes,
            ns_per_packet: Median::of(windows.iter().map(ns).collect()).value,
            abort_rate: aborts / (aborts + commits).max(1.0),
            time_ratio: ratio.value,
            ratio_low: ratio.low,
            ratio_high: ratio.high,
        }
    }
}

impl fmt::Display for SamplingRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SamplingRow { noted, lanes, ns_per_packet, time_ratio, ratio_low, ratio_high, .. } =
            self;
        let aborted = 100.0 * self.abort_rate;
        write!(
            f,
            "noted: {noted:<9} {lanes} lanes {ns_per_packet:>8.1} ns  {time_ratio:.3} x ({ratio_low:.3} to \
             {ratio_high:.3})  {aborted:.1} % aborted"
        )
    }
}
