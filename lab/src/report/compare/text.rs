//! Ratios as text and as JSON.

use std::fmt::{self, Write};

use serde::Serialize;

use super::{ComparedSide, Comparison, Ratio, RowPair, Verdict};
use crate::report::sentence;

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
    /// A line of JSON per ratio, and one per row that is missing on a side.
    pub fn json_lines(&self) -> Vec<String> {
        #[derive(Serialize)]
        struct TextLine<'a> {
            policy: &'a str,
            lanes: u16,
            load: f64,
            #[serde(flatten)]
            ratio: Option<&'a Ratio>,
            #[serde(skip_serializing_if = "Option::is_none")]
            missing: Option<ComparedSide>,
        }
        let mut lines = Vec::new();
        for RowPair { policy, lanes, load, missing, ratios } in &self.rows {
            let mut add = |ratio, missing| {
                let line = TextLine { policy, lanes: *lanes, load: *load, ratio, missing };
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
