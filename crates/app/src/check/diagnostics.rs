//! What is wrong with a configuration, for programs.

use std::error::Error;
use std::path::Path;

use rheostat_control::{Finding, LoadError, Report};
use serde_json::{Value, json};

use crate::error::cause;

/// The findings of a report, in the order of the file.
pub(super) fn of_report(report: &Report) -> Vec<Value> {
    report.findings().iter().map(|finding| of_finding(report, finding)).collect()
}

/// Why a configuration cannot be run: the mistakes in it, or the one thing that its file `config` has no place for.
pub(super) fn of_error(error: &(dyn Error + 'static), config: &Path) -> Vec<Value> {
    match cause(error) {
        Some(LoadError::Wrong(report)) => of_report(report),
        _ => {
            vec![json!({
                "severity": "error",
                "file": config,
                "line": null,
                "column": null,
                "key": null,
                "message": error.to_string(),
                "help": null,
                "labels": [],
            })]
        }
    }
}

/// A finding: its place is that of the last label, where the text is that is to be changed.
fn of_finding(report: &Report, finding: &Finding) -> Value {
    let labels: Vec<_> = finding
        .labels()
        .map(|(place, text)| (report.line_and_column(place.start), text.to_owned()))
        .collect();
    let place = labels.last().map(|(place, _)| *place);
    let label = |((line, column), text): &((usize, usize), String)| json!({ "line": line, "column": column, "message": text });
    json!({
        "severity": if finding.is_mistake() { "error" } else { "warning" },
        "file": report.file(),
        "line": place.map(|(line, _)| line),
        "column": place.map(|(_, column)| column),
        "key": finding.key(),
        "message": finding.message(),
        "help": finding.advice(),
        "labels": labels.iter().map(label).collect::<Vec<_>>(),
    })
}
