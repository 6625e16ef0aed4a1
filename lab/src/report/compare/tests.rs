//! Results that differ in what is known.

use super::*;
use crate::report::tests::sample;

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
        assert!(matches!(ratio.verdict, Verdict::NoDifference | Verdict::WithinNoise), "{ratio:?}");
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
fn one_run_of_each_decides_nothing() {
    let first = |mut results: Results| {
        results.runs.retain(|run| run.seed == 1);
        results
    };
    let a = first(sample("balance"));
    let comparison = compare(&a, &slowed(a.clone(), "rss", 20.0));
    let all = comparison.rows.iter().flat_map(|row| &row.ratios);
    assert!(all.clone().count() > 20);
    for ratio in all {
        assert!(matches!(ratio.verdict, Verdict::TooFewRuns | Verdict::WithinNoise), "{ratio:?}");
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
    assert_eq!(
        (missing(&comparison, ComparedSide::B), missing(&comparison, ComparedSide::A)),
        (3, 0)
    );
    assert_eq!(missing(&compare(&b, &a), ComparedSide::A), 3);
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
    assert!(verdicts(&compare(&a, &a), "drop_share").iter().all(|v| *v == Verdict::NoDifference));
    assert!(compare(&a, &b).json_lines().iter().any(|line| line.contains(r#""ratio":null"#)));
}
