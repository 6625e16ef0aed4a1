//! The figures of a run that are drawn and compared.

use rheostat_plot::Unit;

use crate::record::RecordedRun;

/// A figure of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    /// The name in JSON.
    pub(super) name: &'static str,
    /// The name for people.
    pub(super) label: &'static str,
    /// What its axis states.
    pub(super) axis: &'static str,
    pub(super) unit: Unit,
    /// Whether it is drawn by ratios, since it spans orders of magnitude.
    pub(super) is_log: bool,
    /// The share of the packets whose latency it is: the machine's noise bounds it from below.
    pub(super) share: Option<f64>,
    pub(super) kind: MetricKind,
    pub(super) of: fn(&RecordedRun) -> Option<f64>,
}

/// Which words compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// Less is faster.
    Time,
    /// More is faster.
    Rate,
    /// Less is less.
    Amount,
}

const fn latency(
    name: &'static str,
    label: &'static str,
    axis: &'static str,
    share: f64,
    of: fn(&RecordedRun) -> Option<f64>,
) -> Metric {
    let (unit, is_log, share, kind) = (Unit::Microseconds, true, Some(share), MetricKind::Time);
    Metric { name, label, axis, unit, is_log, share, kind, of }
}

pub(super) const P50: Metric =
    latency("p50_us", "p50", "latency that half of the packets stay within", 0.5, |run| {
        run.latency(0.5)
    });
pub(super) const P95: Metric =
    latency("p95_us", "p95", "latency that 95 % of the packets stay within", 0.95, |run| {
        run.latency(0.95)
    });
pub(super) const P99: Metric =
    latency("p99_us", "p99", "latency that 99 % of the packets stay within", 0.99, |run| {
        run.latency(0.99)
    });
pub(super) const DROPS: Metric = Metric {
    name: "drop_share",
    label: "dropped packets",
    axis: "dropped, of all packets",
    unit: Unit::Share,
    is_log: true,
    share: None,
    kind: MetricKind::Amount,
    of: |run| Some(run.drop_share()),
};
pub(super) const IMBALANCE: Metric = Metric {
    name: "imbalance",
    label: "imbalance",
    axis: "busiest lane ÷ mean of the active lanes",
    unit: Unit::Plain,
    is_log: false,
    share: None,
    kind: MetricKind::Amount,
    of: |run| Some(run.imbalance),
};
pub(super) const SPREAD: Metric = Metric {
    name: "spread",
    label: "spread",
    axis: "packets of the busiest lane beyond the least busy",
    unit: Unit::Share,
    is_log: true,
    share: None,
    kind: MetricKind::Amount,
    of: |run| run.spread,
};
pub(super) const MIGRATIONS: Metric = Metric {
    name: "migrations_per_second",
    label: "migrations per second",
    axis: "shards that changed lanes per second",
    unit: Unit::Count,
    is_log: false,
    share: None,
    kind: MetricKind::Amount,
    of: |run| (run.seconds > 0.0).then(|| run.migrations as f64 / run.seconds),
};
pub(super) const THROUGHPUT: Metric = Metric {
    name: "delivered_pps",
    label: "throughput",
    axis: "packets per second that left",
    unit: Unit::PacketRate,
    is_log: false,
    share: None,
    kind: MetricKind::Rate,
    of: |run| (run.seconds > 0.0).then(|| run.delivered as f64 / run.seconds),
};
pub(super) const ACTIVE: Metric = Metric {
    name: "active",
    label: "lanes used",
    axis: "lanes that own shards, on average",
    unit: Unit::Plain,
    is_log: false,
    share: None,
    kind: MetricKind::Amount,
    of: |run| Some(run.active),
};
