//! Compares two builds, or two settings of one, by running them in turn: what drifts with time, such as
//! the machine's other load, then falls on both alike.

use std::fmt;
use std::process::Command;

use serde::Serialize;

use crate::error::MeasureError;
use crate::nf::{Mode, Row};
use crate::quantiles::Sorted;
use crate::record::Header;

/// The two command lines, each of which prints rows as JSON.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The first.
    pub a: String,
    /// The second.
    pub b: String,
    /// How often each is run.
    pub rounds: usize,
}

/// How a row of the two compares.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// What the row measures.
    pub row: String,
    /// Median of A's rates, in million packets per second.
    pub a_mpps: f64,
    /// Median of B's.
    pub b_mpps: f64,
    /// Median of the rounds' ratios, B's rate ÷ A's: above 1, B is faster.
    pub ratio: f64,
    /// The least of them.
    pub ratio_min: f64,
    /// The greatest.
    pub ratio_max: f64,
    /// Rounds in which a row of either was not [`Mode::Fast`]: rates are as observed, so what disturbed one of the two is in their ratio.
    pub disturbed: usize,
}

impl Comparison {
    /// Runs A and B in turn, the one that starts changing from round to round, and calls `progress`
    /// before each run.
    ///
    /// # Errors
    /// [`MeasureError`] when a command fails, prints no rows, or the two print different numbers of
    /// rows.
    pub fn run(&self, mut progress: impl FnMut(usize, &str)) -> Result<Vec<Ratio>, MeasureError> {
        let mut rounds: Vec<(Vec<Row>, Vec<Row>)> = Vec::new();
        for round in 0..self.rounds {
            let mut run = |command: &str| {
                progress(round, command);
                rows_of(command)
            };
            let pair = if round % 2 == 0 {
                let a = run(&self.a)?;
                (a, run(&self.b)?)
            } else {
                let b = run(&self.b)?;
                (run(&self.a)?, b)
            };
            let (wanted, got) = (pair.0.len(), pair.1.len());
            if wanted != got || rounds.first().is_some_and(|first| first.0.len() != wanted) {
                let problem = format!("{got} rows, where the other side has {wanted}");
                return Err(MeasureError::Rows { command: self.b.clone(), problem });
            }
            rounds.push(pair);
        }
        let rows = rounds.first().map_or(0, |(a, _)| a.len());
        Ok((0..rows).map(|row| ratio(&rounds, row)).collect())
    }
}

/// Compares row `row` over all rounds.
fn ratio(rounds: &[(Vec<Row>, Vec<Row>)], row: usize) -> Ratio {
    let each = |value: fn(&Row, &Row) -> f64| {
        Sorted::of(rounds.iter().map(|(a, b)| value(&a[row], &b[row])))
    };
    let median = |values: Sorted| values.median().expect("there is a round");
    let ratios = each(|a, b| b.mpps / a.mpps);
    let [ratio_min, ratio_max] = ratios.range().expect("there is a round");
    let (a, b) = (rounds[0].0[row].name(), rounds[0].1[row].name());
    Ratio {
        row: if a == b { a } else { format!("{a} : {b}") },
        a_mpps: median(each(|a, _| a.mpps)),
        b_mpps: median(each(|_, b| b.mpps)),
        ratio: median(ratios),
        ratio_min,
        ratio_max,
        disturbed: rounds
            .iter()
            .filter(|(a, b)| is_disturbed(&a[row]) || is_disturbed(&b[row]))
            .count(),
    }
}

fn is_disturbed(row: &Row) -> bool {
    matches!(row.mode, Mode::Slow | Mode::Preempted)
}

/// Runs a command line in the shell and reads the rows it prints.
fn rows_of(command: &str) -> Result<Vec<Row>, MeasureError> {
    let output = Command::new("sh").args(["-c", command]).output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(MeasureError::Command {
            command: command.into(),
            status: output.status,
            message,
        });
    }
    let rows = parse(&String::from_utf8_lossy(&output.stdout))
        .map_err(|problem| MeasureError::Rows { command: command.into(), problem })?;
    if rows.is_empty() {
        let problem = "it printed no rows; does it have --json?".into();
        return Err(MeasureError::Rows { command: command.into(), problem });
    }
    Ok(rows)
}

/// Reads rows, one per line that starts with a brace and is no header.
fn parse(text: &str) -> Result<Vec<Row>, String> {
    text.lines()
        .filter(|line| line.starts_with('{') && serde_json::from_str::<Header>(line).is_err())
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{error}, in: {line}")))
        .collect()
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ratio { row, a_mpps, b_mpps, ratio, ratio_min, ratio_max, disturbed } = self;
        write!(
            f,
            "{row:<52} A {a_mpps:>7.2} B {b_mpps:>7.2} Mpps  B/A {ratio:.3} ({ratio_min:.3}-{ratio_max:.3})"
        )?;
        match disturbed {
            0 => Ok(()),
            rounds => write!(f, "  {rounds} rounds slow or preempted"),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: processes.

    use super::*;

    const ROW: &str = r#"{"chain":"empty","flows":64000,"distribution":"uniform","packet_bytes":64,"new_flow_share":0.0,"lanes":1,"mpps":MPPS,"mpps_min":9.0,"mpps_max":11.0,"ns_per_packet":100.0,"ns_above_harness":8.0,"allocations_per_packet":0.0}"#;

    fn printing(rates: &[&str]) -> String {
        let rows: Vec<_> = rates.iter().map(|rate| ROW.replace("MPPS", rate)).collect();
        format!("printf '%s\\n' {}", rows.iter().map(|r| format!("'{r}'")).collect::<String>())
    }

    #[test]
    fn the_faster_side_has_the_greater_rate() {
        let (a, b) = (printing(&["10.0"]), printing(&["12.0"]));
        let mut runs = Vec::new();
        let comparison = Comparison { a: a.clone(), b: b.clone(), rounds: 3 };
        let ratios = comparison.run(|_, command| runs.push(command.to_owned())).unwrap();
        assert_eq!(ratios.len(), 1);
        assert_eq!((ratios[0].a_mpps, ratios[0].b_mpps, ratios[0].ratio), (10.0, 12.0, 1.2));
        // In turn, and neither always first.
        assert_eq!(runs, [&a, &b, &b, &a, &a, &b].map(Clone::clone));
    }

    #[test]
    fn rounds_with_a_disturbed_row_are_counted() {
        let modes = |mode: &str| {
            ROW.replace("MPPS", "10.0").replace('}', &format!(r#","mode":"{mode}"}}"#))
        };
        let rounds: Vec<(Vec<Row>, Vec<Row>)> =
            [("fast", "fast"), ("slow", "fast"), ("fast", "preempted"), ("slow", "slow")]
                .map(|(a, b)| [a, b].map(|mode| parse(&modes(mode)).unwrap()).into())
                .into();
        let ratio = ratio(&rounds, 0);
        assert_eq!((ratio.ratio, ratio.disturbed), (1.0, 3));
        assert!(ratio.to_string().ends_with("3 rounds slow or preempted"), "{ratio}");
        assert!(!super::ratio(&rounds[..1], 0).to_string().contains("rounds"));
    }

    #[test]
    fn a_side_that_fails_or_prints_nothing_is_named() {
        let good = printing(&["10.0"]);
        let compare = |b: &str| {
            let comparison = Comparison { a: good.clone(), b: b.into(), rounds: 1 };
            comparison.run(|_, _| {}).unwrap_err().to_string()
        };
        assert!(compare("echo out of luck >&2; false").contains("out of luck"));
        assert!(compare("true").contains("no rows"));
        assert!(compare("echo '{\"chain\": 3}'").contains("invalid type"));
    }
}
