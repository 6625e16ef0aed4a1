//! Two results held against each other, row by row.

use std::fmt::{self, Write};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde::Serialize;

use super::cells::{Cell, cells};
use super::estimate::Difference;
use super::metric::{DROPS, IMBALANCE, Kind, MIGRATIONS, Metric, P50, P95, P99, THROUGHPUT};
use super::sentence;
use crate::confidence::{LEAST, Median};
use crate::record::Results;

/// What is compared.
static METRICS: [Metric; 7] = [P50, P95, P99, DROPS, IMBALANCE, MIGRATIONS, THROUGHPUT];

/// How two results compare, in the order of the first.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One for each policy, number of lanes and load of either.
    pub rows: Vec<RowPair>,
}

/// A row that either or both have.
#[derive(Clone, Debug)]
pub struct RowPair {
    /// The policy.
    pub policy: String,
    /// The number of lanes.
    pub lanes: u16,
    /// The load, as a share of what all lanes can do.
    pub load: f64,
    /// The side that has no such row.
    pub missing: Option<Side>,
    /// The ratios, if both have it.
    pub ratios: Vec<Ratio>,
}

/// One of two results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// A figure of B as a multiple of A's.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// Which: `p50_us`, `p95_us`, `p99_us`, `drop_share`, `imbalance`, `migrations_per_second`, `delivered_pps`.
    pub figure: &'static str,
    /// A's median.
    pub a: f64,
    /// B's median.
    pub b: f64,
    /// B ÷ A; 1 where both are 0, infinite (`null` in JSON) where only A is.
    pub ratio: f64,
    /// Between what the ratio lies with a confidence of 95 %; with fewer than six runs of a side, less sure.
    pub low: f64,
    /// The other end.
    pub high: f64,
    /// Pairs of runs with the same seed that it is of; 0 if runs could not be paired.
    pub pairs: usize,
    /// Runs of A.
    pub runs_a: usize,
    /// Runs of B.
    pub runs_b: usize,
    /// What may be said.
    pub verdict: Verdict,
    #[serde(skip)]
    metric: &'static Metric,
}

/// What a ratio comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B has the lower latency, or the higher throughput.
    Faster,
    /// B has the higher latency, or the lower throughput.
    Slower,
    /// B has less of what no speed is: drops, imbalance, migrations.
    Less,
    /// B has more of it.
    More,
    /// The interval holds 1.
    NoDifference,
    /// There are too few runs to tell.
    TooFewRuns,
    /// Both lie within what the machine does by itself.
    WithinNoise,
}

/// Compares two results.
pub fn compare(a: &Results, b: &Results) -> Comparison {
    let (of_a, of_b) = (cells(&a.runs), cells(&b.runs));
    // Simulated and measured rows may be compared: that is how a simulation is checked.
    let same = |one: &Cell<'_>, other: &Cell<'_>| {
        (one.policy, one.lanes) == (other.policy, other.lanes)
            && (one.load - other.load).abs() < 1e-9
    };
    let mut rows = Vec::new();
    for one in &of_a {
        let other = of_b.iter().find(|other| same(one, other));
        let ratios = other.map(|other| ratios((a, one), (b, other)));
        let missing = other.is_none().then_some(Side::B);
        rows.push(row(one, missing, ratios.unwrap_or_default()));
    }
    for other in of_b.iter().filter(|other| !of_a.iter().any(|one| same(one, other))) {
        rows.push(row(other, Some(Side::A), Vec::new()));
    }
    Comparison { rows }
}

fn row(cell: &Cell<'_>, missing: Option<Side>, ratios: Vec<Ratio>) -> RowPair {
    let Cell { policy, lanes, load, .. } = *cell;
    RowPair { policy: policy.to_owned(), lanes, load, missing, ratios }
}

fn ratios((a, of_a): (&Results, &Cell<'_>), (b, of_b): (&Results, &Cell<'_>)) -> Vec<Ratio> {
    let ratio = |metric: &'static Metric| {
        let is_limited = of_a.is_limited(metric, a.preface.noise.as_ref())
            && of_b.is_limited(metric, b.preface.noise.as_ref());
        ratio(metric, of_a, of_b, is_limited)
    };
    METRICS.iter().filter_map(ratio).collect()
}

fn ratio(metric: &'static Metric, a: &Cell<'_>, b: &Cell<'_>, is_limited: bool) -> Option<Ratio> {
    let (of_a, of_b) = (a.estimate(metric)?, b.estimate(metric)?);
    let pairs = pairs(metric, a, b);
    let is_paired = pairs.len() >= LEAST;
    let Median { value, low, high } = if is_paired {
        Median::of(pairs.iter().map(|(a, b)| quotient(*b, *a)).collect())
    } else {
        let values = |cell: &Cell<'_>| -> Vec<f64> {
            cell.runs.iter().filter_map(|run| (metric.of)(run)).collect()
        };
        resampled(&values(a), &values(b))
    };
    let difference = if !is_paired && of_a.runs.min(of_b.runs) < LEAST {
        of_b.against(&of_a)
    } else if low > 1.0 {
        Difference::Above
    } else if high < 1.0 {
        Difference::Below
    } else {
        Difference::None
    };
    Some(Ratio {
        figure: metric.name,
        a: of_a.value,
        b: of_b.value,
        ratio: value,
        low,
        high,
        pairs: if is_paired { pairs.len() } else { 0 },
        runs_a: of_a.runs,
        runs_b: of_b.runs,
        verdict: if is_limited { Verdict::WithinNoise } else { verdict(metric.kind, difference) },
        metric,
    })
}

/// The values of runs with the same seed: they had the same packets at the same times, so what differs between them
/// is not the traffic.
fn pairs(metric: &Metric, a: &Cell<'_>, b: &Cell<'_>) -> Vec<(f64, f64)> {
    let partner = |seed: u64| b.runs.iter().find(|run| run.seed == seed);
    a.runs
        .iter()
        .filter_map(|run| Some(((metric.of)(run)?, (metric.of)(partner(run.seed)?)?)))
        .collect()
}

/// B's part of A's; none of none is as much.
fn quotient(b: f64, a: f64) -> f64 {
    if a == 0.0 && b == 0.0 { 1.0 } else { b / a }
}

/// The ratio of the medians, and between what it lies by the bootstrap: both sides drawn anew from themselves
/// (Efron and Tibshirani, "An Introduction to the Bootstrap", on percentile intervals). The same for the same
/// values.
fn resampled(a: &[f64], b: &[f64]) -> Median {
    const TIMES: usize = 2_000;
    let mut random = SmallRng::seed_from_u64(TIMES as u64);
    let mut again = |values: &[f64]| {
        let drawn = (0..values.len()).map(|_| values[random.random_range(0..values.len())]);
        Median::of(drawn.collect()).value
    };
    let mut ratios: Vec<f64> = (0..TIMES).map(|_| quotient(again(b), again(a))).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = |values: &[f64]| Median::of(values.to_vec()).value;
    Median {
        value: quotient(middle(b), middle(a)),
        low: ratios[TIMES / 40],
        high: ratios[TIMES - 1 - TIMES / 40],
    }
}

fn verdict(kind: Kind, difference: Difference) -> Verdict {
    match (difference, kind) {
        (Difference::None, _) => Verdict::NoDifference,
        (Difference::Unknown, _) => Verdict::TooFewRuns,
        (Difference::Below, Kind::Time) | (Difference::Above, Kind::Rate) => Verdict::Faster,
        (Difference::Above, Kind::Time) | (Difference::Below, Kind::Rate) => Verdict::Slower,
        (Difference::Below, Kind::Amount) => Verdict::Less,
        (Difference::Above, Kind::Amount) => Verdict::More,
    }
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Less => "less",
            Verdict::More => "more",
            Verdict::NoDifference => "no difference",
            Verdict::TooFewRuns => "too few runs to tell",
            Verdict::WithinNoise => "within the machine's own noise",
        }
    }
}

impl Comparison {
    /// A line of JSON per ratio, and one per row that a side lacks.
    pub fn json_lines(&self) -> Vec<String> {
        #[derive(Serialize)]
        struct Line<'a> {
            policy: &'a str,
            lanes: u16,
            load: f64,
            #[serde(flatten)]
            ratio: Option<&'a Ratio>,
            #[serde(skip_serializing_if = "Option::is_none")]
            missing: Option<Side>,
        }
        let mut lines = Vec::new();
        for RowPair { policy, lanes, load, missing, ratios } in &self.rows {
            let mut add = |ratio, missing| {
                let line = Line { policy, lanes: *lanes, load: *load, ratio, missing };
                lines.push(serde_json::to_string(&line).expect("a ratio is plain data"));
            };
            match missing {
                Some(side) => add(None, Some(*side)),
                None => ratios.iter().for_each(|ratio| add(Some(ratio), None)),
            }
        }
        lines
    }
}

/// What differs, a row at a time, and what does not in one line.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let RowPair { policy, lanes, load, missing, ratios } = row;
            writeln!(f, "{policy}, {}, load {load}", sentence::lanes(*lanes))?;
            if let Some(side) = missing {
                writeln!(f, "  not in {side:?}")?;
            }
            for verdict in [Verdict::NoDifference, Verdict::WithinNoise] {
                let alike: Vec<&str> = ratios
                    .iter()
                    .filter(|ratio| ratio.verdict == verdict)
                    .map(|ratio| ratio.metric.label)
                    .collect();
                if !alike.is_empty() {
                    writeln!(f, "  {}: {}", verdict.words(), alike.join(", "))?;
                }
            }
            let is_told = |ratio: &&Ratio| {
                !matches!(ratio.verdict, Verdict::NoDifference | Verdict::WithinNoise)
            };
            for ratio in ratios.iter().filter(is_told) {
                writeln!(f, "  {ratio}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: f64| self.metric.unit.show(value);
        let mut ratio = String::new();
        let Ratio { a, b, low, high, verdict, .. } = self;
        write!(ratio, "{:.3} ({low:.3} to {high:.3})", self.ratio)?;
        let (label, words) = (self.metric.label, verdict.words());
        write!(f, "{label:<21} A {:>9}  B {:>9}  B/A {ratio:<26} {words}", show(*a), show(*b))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    fn verdicts(comparison: &Comparison, figure: &str) -> Vec<Verdict> {
        let ratios = comparison.rows.iter().flat_map(|row| &row.ratios);
        ratios.filter(|ratio| ratio.figure == figure).map(|ratio| ratio.verdict).collect()
    }

    /// With every latency of `policy` this many times as long.
    fn slowed(mut results: Results, policy: &str, factor: f64) -> Results {
        for run in results.runs.iter_mut().filter(|run| run.policy == policy) {
            run.latency_us.iter_mut().for_each(|(_, us)| *us *= factor);
        }
        results
    }

    #[test]
    fn equal_results_are_equal() {
        let results = sample("balance");
        let comparison = compare(&results, &results);
        assert_eq!(comparison.rows.len(), results.rows().len());
        for ratio in comparison.rows.iter().flat_map(|row| &row.ratios) {
            assert_eq!((ratio.ratio, ratio.low, ratio.high), (1.0, 1.0, 1.0), "{ratio:?}");
            assert!(
                matches!(ratio.verdict, Verdict::NoDifference | Verdict::WithinNoise),
                "{ratio:?}"
            );
        }
    }

    #[test]
    fn a_doubled_latency_is_found_in_the_rows_that_have_it_and_in_no_others() {
        let (a, b) = (sample("balance"), slowed(sample("balance"), "rsspp", 2.0));
        let comparison = compare(&a, &b);
        for row in &comparison.rows {
            for ratio in row.ratios.iter().filter(|ratio| ratio.figure == "p95_us") {
                let (wanted, factor) = match row.policy.as_str() {
                    "rsspp" => (Verdict::Slower, 2.0),
                    _ => (Verdict::NoDifference, 1.0),
                };
                assert_eq!((ratio.verdict, ratio.ratio), (wanted, factor), "{row:?}");
                assert_eq!(ratio.pairs, 6);
            }
        }
        assert!(compare(&b, &a).to_string().contains("faster"));
        assert!(verdicts(&comparison, "drop_share").iter().all(|v| *v == Verdict::NoDifference));
    }

    #[test]
    fn runs_that_cannot_be_paired_are_resampled() {
        let a = sample("balance");
        let mut b = slowed(sample("balance"), "rss", 2.0);
        b.runs.iter_mut().for_each(|run| run.seed += 100);
        let comparison = compare(&a, &b);
        let of = |policy: &str| -> Vec<&Ratio> {
            let rows = comparison.rows.iter().filter(|row| row.policy == policy);
            rows.flat_map(|row| &row.ratios).filter(|ratio| ratio.figure == "p95_us").collect()
        };
        for ratio in of("rss") {
            assert_eq!((ratio.pairs, ratio.verdict), (0, Verdict::Slower), "{ratio:?}");
            assert!(ratio.low < 2.0 && 2.0 < ratio.high, "{ratio:?}");
        }
        for ratio in of("rsspp") {
            assert_eq!(ratio.verdict, Verdict::NoDifference, "{ratio:?}");
            assert!(ratio.low < 1.0 && 1.0 < ratio.high, "{ratio:?}");
        }
    }

    #[test]
    fn a_run_of_each_tells_nothing() {
        let first = |mut results: Results| {
            results.runs.retain(|run| run.seed == 1);
            results
        };
        let a = first(sample("balance"));
        let comparison = compare(&a, &slowed(a.clone(), "rss", 20.0));
        let all = comparison.rows.iter().flat_map(|row| &row.ratios);
        assert!(all.clone().count() > 20);
        for ratio in all {
            assert!(
                matches!(ratio.verdict, Verdict::TooFewRuns | Verdict::WithinNoise),
                "{ratio:?}"
            );
        }
    }

    #[test]
    fn rows_of_one_side_alone_are_told() {
        let (a, mut b) = (sample("balance"), sample("balance"));
        b.runs.retain(|run| run.policy != "rss");
        let comparison = compare(&a, &b);
        let missing = |comparison: &Comparison, side| {
            comparison.rows.iter().filter(|row| row.missing == Some(side)).count()
        };
        assert_eq!((missing(&comparison, Side::B), missing(&comparison, Side::A)), (3, 0));
        assert_eq!(missing(&compare(&b, &a), Side::A), 3);
        assert!(comparison.to_string().contains("rss, 2 lanes, load 0.8\n  not in B\n"));
        let lines = comparison.json_lines();
        assert!(
            lines[0].contains(r#""policy":"rss","lanes":2,"load":0.8,"missing":"b""#),
            "{}",
            lines[0]
        );
        assert!(lines.iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
    }

    #[test]
    fn nothing_and_something_compare_in_words() {
        let (mut a, mut b) = (sample("balance"), sample("balance"));
        a.runs.iter_mut().for_each(|run| run.dropped = 0);
        b.runs.iter_mut().for_each(|run| run.dropped = 10);
        assert!(verdicts(&compare(&a, &b), "drop_share").iter().all(|v| *v == Verdict::More));
        assert!(verdicts(&compare(&b, &a), "drop_share").iter().all(|v| *v == Verdict::Less));
        assert!(
            verdicts(&compare(&a, &a), "drop_share").iter().all(|v| *v == Verdict::NoDifference)
        );
        assert!(compare(&a, &b).json_lines().iter().any(|line| line.contains(r#""ratio":null"#)));
    }
}
