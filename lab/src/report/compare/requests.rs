//! Rows about requests of two files held against each other.

use std::fmt;

use rheostat_plot::Unit;
use serde::Serialize;

use super::{ComparedSide, Verdict};
use crate::record::RequestRow;
use crate::report::requests::numbered;

/// How rows of two files compare, in the order of the first.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestComparison {
    /// One for each workload, scheduler, number of workers and load of either.
    pub rows: Vec<RequestPair>,
}

/// A row that either or both have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestPair {
    /// The workload.
    pub workload: String,
    /// The scheduler, with a number behind it from the second row of its kind on.
    pub scheduler: String,
    /// Its workers.
    pub workers: Option<u16>,
    /// The load; `None` for rows that have a rate only.
    pub load: Option<f64>,
    /// Requests per second that were offered, in the first file that has the row.
    pub offered: f64,
    /// The side that has no such row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<ComparedSide>,
    /// The sides on which more was offered than the scheduler can do, so that it has no latencies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saturated: Vec<ComparedSide>,
    /// The ratios, if both have it.
    #[serde(skip)]
    pub ratios: Vec<RequestRatio>,
}

/// A figure of B as a multiple of A's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestRatio {
    /// Which: `offered`, `achieved`, `capacity`, `p50_us` to `p9999_us`, `p999_us` of a class as `p999_us/CLASS`.
    pub figure: String,
    /// A's.
    pub a: f64,
    /// B's.
    pub b: f64,
    /// B ÷ A; 1 where both are 0, infinite (`null` in JSON) where only A is.
    pub ratio: f64,
    /// Between what it lies: the ends of both intervals of 95 % divided by each other. `None` where either has none.
    pub range: Option<[f64; 2]>,
    /// What may be said.
    pub verdict: Verdict,
    #[serde(skip)]
    unit: Unit,
}

/// A figure of a row.
struct ComparedFigure {
    name: String,
    unit: Unit,
    /// Whether more is better; `None` where it is neither.
    is_rate: Option<bool>,
    value: f64,
    range: Option<[f64; 2]>,
}

/// Compares rows. What a file has twice is compared in its order; rows of different rigs may be compared: that is how a simulation
/// is checked.
pub fn compare_requests(a: &[RequestRow], b: &[RequestRow]) -> RequestComparison {
    let (a, b) = (numbered(a), numbered(b));
    let mut rows: Vec<RequestPair> =
        a.iter().map(|one| pair(one, b.iter().find(|other| is_same(one, other)))).collect();
    for other in b.iter().filter(|other| !a.iter().any(|one| is_same(one, other))) {
        rows.push(RequestPair { missing: Some(ComparedSide::A), ..pair(other, None) });
    }
    RequestComparison { rows }
}

fn is_same(a: &RequestRow, b: &RequestRow) -> bool {
    let is_as_much = match (a.load, b.load) {
        (Some(a), Some(b)) => (a - b).abs() < 1e-9,
        (None, None) => a.offered == b.offered,
        _ => false,
    };
    is_as_much && (&a.scheduler, &a.workload, a.workers) == (&b.scheduler, &b.workload, b.workers)
}

fn pair(a: &RequestRow, b: Option<&RequestRow>) -> RequestPair {
    let sides = [(ComparedSide::A, Some(a)), (ComparedSide::B, b)];
    let saturated = sides.into_iter().filter(|(_, row)| row.is_some_and(|row| row.saturated));
    RequestPair {
        workload: a.workload.clone(),
        scheduler: a.scheduler.clone(),
        workers: a.workers,
        load: a.load,
        offered: a.offered,
        missing: b.is_none().then_some(ComparedSide::B),
        saturated: if b.is_some() { saturated.map(|(side, _)| side).collect() } else { Vec::new() },
        ratios: b.map_or_else(Vec::new, |b| ratios(a, b)),
    }
}

fn ratios(a: &RequestRow, b: &RequestRow) -> Vec<RequestRatio> {
    let of_b = figures(b);
    let with = |one: ComparedFigure| {
        let other = of_b.iter().find(|other| other.name == one.name)?;
        Some(ratio(&one, other))
    };
    figures(a).into_iter().filter_map(with).collect()
}

fn figures(row: &RequestRow) -> Vec<ComparedFigure> {
    let time = |name: &str, value: Option<f64>, range| {
        let (name, unit, is_rate) = (name.to_owned(), Unit::Microseconds, Some(false));
        value.map(|value| ComparedFigure { name, unit, is_rate, value, range })
    };
    let rate = |name: &str, is_rate, value: Option<f64>, range| {
        let (name, unit) = (name.to_owned(), Unit::Count);
        value.map(|value| ComparedFigure { name, unit, is_rate, value, range })
    };
    let all = [
        rate("offered", None, Some(row.offered), None),
        rate("achieved", Some(true), row.achieved, None),
        rate("capacity", Some(true), row.capacity, row.capacity_range),
        time("p50_us", row.p50_us, None),
        time("p99_us", row.p99_us, None),
        time("p999_us", row.p999_us, row.p999_range),
        time("p9999_us", row.p9999_us, None),
    ];
    let of_classes = row.classes.iter();
    let of_classes =
        of_classes.map(|class| time(&format!("p999_us/{}", class.name), class.p999_us, None));
    all.into_iter().chain(of_classes).flatten().collect()
}

fn ratio(a: &ComparedFigure, b: &ComparedFigure) -> RequestRatio {
    let range = a.range.zip(b.range).map(|([a_low, a_high], [b_low, b_high])| {
        [quotient(b_low, a_high), quotient(b_high, a_low)]
    });
    let verdict = match (range, a.is_rate) {
        (None, _) | (_, None) => Verdict::TooFewRuns,
        (Some([low, _]), Some(true)) if low > 1.0 => Verdict::Faster,
        (Some([low, _]), Some(false)) if low > 1.0 => Verdict::Slower,
        (Some([_, high]), Some(true)) if high < 1.0 => Verdict::Slower,
        (Some([_, high]), Some(false)) if high < 1.0 => Verdict::Faster,
        (Some(_), Some(_)) => Verdict::NoDifference,
    };
    let (a_value, b_value) = (a.value, b.value);
    RequestRatio {
        figure: a.name.clone(),
        a: a_value,
        b: b_value,
        ratio: quotient(b_value, a_value),
        range,
        verdict,
        unit: a.unit,
    }
}

/// None of none is as much.
fn quotient(value: f64, reference: f64) -> f64 {
    if value == 0.0 && reference == 0.0 { 1.0 } else { value / reference }
}

impl RequestComparison {
    /// A line of JSON per ratio, and one per row that is missing or has no figure that both have.
    pub fn json_lines(&self) -> Vec<String> {
        #[derive(Serialize)]
        struct ComparedSeries<'a> {
            #[serde(flatten)]
            pair: &'a RequestPair,
            #[serde(flatten)]
            ratio: Option<&'a RequestRatio>,
        }
        let mut lines = Vec::new();
        let mut add = |pair, ratio| {
            lines.push(
                serde_json::to_string(&ComparedSeries { pair, ratio })
                    .expect("a ratio is plain data"),
            );
        };
        for pair in &self.rows {
            match pair.ratios.as_slice() {
                [] => add(pair, None),
                ratios => ratios.iter().for_each(|ratio| add(pair, Some(ratio))),
            }
        }
        lines
    }
}

/// Each row with its ratios.
impl fmt::Display for RequestComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pair in &self.rows {
            write!(f, "{}, {}", pair.workload, pair.scheduler)?;
            if let Some(workers) = pair.workers {
                write!(f, ", {workers} {}", if workers == 1 { "worker" } else { "workers" })?;
            }
            match pair.load {
                Some(load) => writeln!(f, ", load {load}")?,
                None => writeln!(f, ", {} requests per second", Unit::Count.show(pair.offered))?,
            }
            if let Some(side) = pair.missing {
                writeln!(f, "  not in {side:?}")?;
            }
            for side in &pair.saturated {
                writeln!(f, "  {side:?}: more was offered than it can do")?;
            }
            for ratio in &pair.ratios {
                writeln!(f, "  {ratio}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for RequestRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: f64| self.unit.show(value);
        let RequestRatio { figure, a, b, ratio, range, verdict, .. } = self;
        let range =
            range.map_or_else(String::new, |[low, high]| format!(" ({low:.3} to {high:.3})"));
        let words = match verdict {
            Verdict::TooFewRuns => "",
            verdict => verdict.words(),
        };
        let text = format!("{ratio:.3}{range}");
        let line =
            format!("{figure:<16} A {:>9}  B {:>9}  B/A {text:<26} {words}", show(*a), show(*b));
        f.write_str(line.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::report::find;

    /// The rows of a file that is committed.
    fn recorded(name: &str) -> Vec<RequestRow> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../results/2026-11-26-xeon-2vcpu");
        let found = find(&[Path::new(folder).join(name)]).unwrap();
        found.rows.iter().flat_map(|file| file.requests()).collect()
    }

    #[test]
    fn recorded_rows_are_read_whichever_command_and_version_printed_them() {
        // Written before rows had `repeated`.
        let oldest = recorded("sched-bench.jsonl");
        assert_eq!(oldest.len(), 73);
        let first = &oldest[0];
        assert_eq!(
            (first.scheduler.as_str(), first.workload.as_str(), first.rig.as_str()),
            ("inline-dfcfs", "null", "pumped")
        );
        assert_eq!((first.load, first.p999_us), (Some(0.2), Some(57.7445)));
        assert_eq!(first.capacity_range, Some([1_111_001.0, 1_692_653.0]));
        assert_eq!(first.p999_range.map(|[low, _]| low), Some(0.0), "wider than its value");
        let shared = recorded("sched-shared.jsonl");
        assert_eq!(shared.len(), 39);
        assert!(shared.iter().all(|row| row.capacity.is_some()));
        let simulated = recorded("sched.jsonl");
        assert_eq!(simulated.len(), 360);
        assert!(simulated.iter().all(RequestRow::is_simulated));
        let beyond: Vec<_> = simulated.iter().filter(|row| row.saturated).collect();
        assert!(!beyond.is_empty() && beyond.iter().all(|row| row.p999_us.is_none()));
        let classes = simulated.iter().find(|row| row.workload == "bimodal-1").unwrap();
        let names: Vec<&str> = classes.classes.iter().map(|class| class.name.as_str()).collect();
        assert_eq!(names, ["short", "long"]);
        // Rows of chains are none of requests.
        assert_eq!(recorded("nf-shards.jsonl"), []);
    }

    #[test]
    fn a_file_is_as_itself() {
        let rows = recorded("sched-shared.jsonl");
        let comparison = compare_requests(&rows, &rows);
        assert_eq!(comparison.rows.len(), rows.len());
        for ratio in comparison.rows.iter().flat_map(|pair| &pair.ratios) {
            assert_eq!(ratio.ratio, 1.0, "{ratio:?}");
            assert!(matches!(ratio.verdict, Verdict::NoDifference | Verdict::TooFewRuns));
        }
        assert!(comparison.rows.iter().all(|pair| pair.missing.is_none()));
    }

    #[test]
    fn a_difference_beyond_both_intervals_is_found() {
        let a: Vec<RequestRow> = recorded("sched.jsonl");
        let mut b = a.clone();
        for row in b.iter_mut().filter(|row| row.scheduler == "inline-ws") {
            row.p999_us = row.p999_us.map(|us| 2.0 * us);
            row.p999_range = row.p999_range.map(|range| range.map(|us| 2.0 * us));
        }
        let comparison = compare_requests(&a, &b);
        let mut slower = 0;
        for pair in &comparison.rows {
            for ratio in pair.ratios.iter().filter(|ratio| ratio.figure == "p999_us") {
                let wanted = match pair.scheduler.as_str() {
                    "inline-ws" => Verdict::Slower,
                    _ => Verdict::NoDifference,
                };
                assert_eq!(ratio.verdict, wanted, "{pair:?}");
                slower += usize::from(wanted == Verdict::Slower);
            }
        }
        assert!(slower > 0);
        assert!(compare_requests(&b, &a).to_string().contains("faster"));
    }

    #[test]
    fn rows_of_one_side_and_loads_beyond_the_capacity_are_named() {
        let row = |scheduler: &str, saturated| RequestRow {
            scheduler: scheduler.into(),
            workload: "null".into(),
            offered: 5e5,
            achieved: Some(4e5),
            saturated,
            ..RequestRow::default()
        };
        let (a, b) = ([row("x", false), row("y", false)], [row("x", true), row("z", false)]);
        let comparison = compare_requests(&a, &b);
        let missing: Vec<_> = comparison.rows.iter().map(|pair| pair.missing).collect();
        assert_eq!(missing, [None, Some(ComparedSide::B), Some(ComparedSide::A)]);
        assert_eq!(comparison.rows[0].saturated, [ComparedSide::B]);
        let text = comparison.to_string();
        assert!(text.contains("null, y, 500\u{a0}k requests per second\n  not in B"), "{text}");
        assert!(text.contains("B: more was offered than it can do"), "{text}");
        let lines = comparison.json_lines();
        let of = |at: usize| serde_json::from_str::<serde_json::Value>(&lines[at]).unwrap();
        assert_eq!(
            (of(0)["figure"].as_str(), of(0)["ratio"].as_f64()),
            (Some("offered"), Some(1.0))
        );
        assert_eq!((lines.len(), of(3)["missing"].as_str()), (4, Some("a")));
    }
}
