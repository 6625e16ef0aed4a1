//! What was found out about the stages of requests, for people and programs.

use std::cmp::Reverse;
use std::fmt;
use std::time::Duration;

use rheostat_base::Histogram;

use super::{RequestStage, TimedRequest, TimesRecord};

/// Where the time of requests went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestTimes {
    /// Requests that were sampled.
    pub sampled: u64,
    /// Of the sampled requests, each of [`RequestStage::ALL`].
    pub stages: Vec<StageSummary>,
    /// Of the sampled requests, from arrival until the reply was sent.
    pub total: StageSummary,
    /// The slowest requests, the slowest first.
    pub slowest: Vec<TimedRequest>,
}

/// How long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageSummary {
    /// The mean, in nanoseconds.
    pub mean_ns: f64,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The 99.9th percentile.
    pub p999: Duration,
}

impl StageSummary {
    fn new(histogram: &Histogram, sum: u64) -> StageSummary {
        let quantile = |q| Duration::from_nanos(histogram.quantile(q).unwrap_or(0));
        StageSummary {
            mean_ns: sum as f64 / histogram.count().max(1) as f64,
            p50: quantile(0.5),
            p99: quantile(0.99),
            p999: quantile(0.999),
        }
    }
}

impl RequestTimes {
    /// What lanes have found out, with the `most` slowest requests of all.
    pub(crate) fn of<'a>(
        records: impl Iterator<Item = impl std::ops::Deref<Target = TimesRecord> + 'a>,
        most: usize,
    ) -> RequestTimes {
        let mut all = TimesRecord::default();
        let mut slowest: Vec<TimedRequest> = Vec::new();
        for record in records {
            all.total.add(&record.total);
            for stage in RequestStage::ALL {
                all.stages[stage as usize].add(&record.stages[stage as usize]);
                all.sums[stage as usize] += record.sums[stage as usize];
            }
            slowest.extend(record.slowest().map(TimedRequest::from));
        }
        slowest.sort_by_key(|request| Reverse(request.total()));
        slowest.truncate(most);
        let of = |stage| StageSummary::new(&all.stages[stage as usize], all.sums[stage as usize]);
        RequestTimes {
            sampled: all.total.count(),
            stages: RequestStage::ALL.map(of).to_vec(),
            total: StageSummary::new(&all.total, all.sums.iter().sum()),
            slowest,
        }
    }

    /// The mean of each stage over the slowest requests, in nanoseconds; zeros without any.
    pub fn slowest_means(&self) -> [f64; RequestStage::COUNT] {
        let count = self.slowest.len().max(1) as f64;
        let mean = |stage: RequestStage| {
            let took = self.slowest.iter().map(|request| request.stages[stage as usize]);
            took.sum::<Duration>().as_nanos() as f64 / count
        };
        RequestStage::ALL.map(mean)
    }
}

/// A table with a line for each stage.
impl fmt::Display for RequestTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = |duration: Duration| duration.as_nanos() as f64 / 1e3;
        let slowest = self.slowest_means();
        let slow: f64 = slowest.iter().sum();
        writeln!(
            f,
            "{:<14} {:>10} {:>6} {:>10} {:>10} {:>10} {:>12} {:>6}",
            "us", "mean", "", "p50", "p99", "p99.9", "slowest", ""
        )?;
        let share = |part: f64, all: f64| if all > 0.0 { 100.0 * part / all } else { 0.0 };
        let named =
            RequestStage::ALL.map(RequestStage::name).into_iter().zip(&self.stages).zip(slowest);
        for ((name, stage), slowest) in named {
            writeln!(
                f,
                "{name:<14} {:>10.3} {:>5.1}% {:>10.3} {:>10.3} {:>10.3} {:>12.3} {:>5.1}%",
                stage.mean_ns / 1e3,
                share(stage.mean_ns, self.total.mean_ns),
                micros(stage.p50),
                micros(stage.p99),
                micros(stage.p999),
                slowest / 1e3,
                share(slowest, slow),
            )?;
        }
        let StageSummary { mean_ns, p50, p99, p999 } = self.total;
        writeln!(
            f,
            "{:<14} {:>10.3} {:>6} {:>10.3} {:>10.3} {:>10.3} {:>12.3}",
            "all",
            mean_ns / 1e3,
            "",
            micros(p50),
            micros(p99),
            micros(p999),
            slow / 1e3
        )?;
        write!(f, "of {} sampled requests, and the slowest {}", self.sampled, self.slowest.len())
    }
}
