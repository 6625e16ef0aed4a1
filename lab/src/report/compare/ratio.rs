//! A ratio, and what may be said about it.

use super::{Ratio, Verdict};
use crate::report::cells::ReportCell;
use crate::report::estimate::Difference;
use crate::report::metric::{Metric, MetricKind};
use crate::report::versus::Versus;

/// B's figure as a multiple of A's; nothing where either has none.
pub(super) fn ratio(
    metric: &'static Metric,
    a: &ReportCell<'_>,
    b: &ReportCell<'_>,
    is_limited: bool,
) -> Option<Ratio> {
    let (of_a, of_b) = (a.estimate(metric)?, b.estimate(metric)?);
    let Versus { ratio, low, high, pairs, difference } = Versus::of(metric, b, a)?;
    Some(Ratio {
        figure: metric.name,
        a: of_a.value,
        b: of_b.value,
        ratio,
        low,
        high,
        pairs,
        runs_a: of_a.runs,
        runs_b: of_b.runs,
        verdict: if is_limited { Verdict::WithinNoise } else { verdict(metric.kind, difference) },
        metric,
    })
}

fn verdict(kind: MetricKind, difference: Difference) -> Verdict {
    match (difference, kind) {
        (Difference::None, _) => Verdict::NoDifference,
        (Difference::Unknown, _) => Verdict::TooFewRuns,
        (Difference::Below, MetricKind::Time) | (Difference::Above, MetricKind::Rate) => {
            Verdict::Faster
        }
        (Difference::Above, MetricKind::Time) | (Difference::Below, MetricKind::Rate) => {
            Verdict::Slower
        }
        (Difference::Below, MetricKind::Amount) => Verdict::Less,
        (Difference::Above, MetricKind::Amount) => Verdict::More,
    }
}
