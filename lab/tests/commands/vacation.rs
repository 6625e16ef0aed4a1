//! `rheo bench vacation`: its rows for programs and people, and what it answers to what it does not know.
//!
//! Timed: processes.

use std::process::{Command, Output};

use serde_json::Value;

fn vacation(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo-lab"));
    command.args(["bench", "vacation"]).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const QUICK: [&str; 6] =
    ["--figure", "4.3,table-5.3", "--only-simulated", "--window", "20ms", "--workers=2,5"];

#[test]
fn rows_in_json_have_the_fields_that_programs_read() {
    let output = vacation(&[&QUICK[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let lines: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (header, rows) = lines.split_first().unwrap();
    assert!(header["command"].as_str().unwrap().starts_with("rheo bench vacation --figure 4.3"));
    assert!(header["machine"]["cores"].as_u64().unwrap() > 0 && header["commit"].is_string());
    // Two numbers of workers at three loads, and three lanes.
    assert_eq!(rows.len(), 6 + 3, "{stdout}");
    for row in &rows[..6] {
        assert_eq!((&row["figure"], &row["simulated"]), (&"4.3".into(), &true.into()));
        assert_eq!((&row["lanes"], &row["target_us"]), (&1.into(), &50.0.into()));
        for field in [
            "mean_us",
            "model_us",
            "ks",
            "lost_tries",
            "latency_mean_us",
            "latency_model_us",
            "latency_paper_us",
        ] {
            assert!(row[field].is_f64(), "{field}: {row}");
        }
    }
    let workers: Vec<_> = rows.iter().map(|row| row["workers"].as_u64().unwrap()).collect();
    assert_eq!(workers, [2, 2, 2, 5, 5, 5, 6, 6, 6]);
    assert_eq!(rows[8]["lane"], 2);
}

#[test]
fn rows_for_people_name_the_origin_of_each() {
    let output = vacation(&QUICK);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let mut lines = stdout.lines();
    assert!(lines.next().unwrap().contains(", rheo "), "{stdout}");
    assert!(lines.next().unwrap().starts_with("figure"), "{stdout}");
    let rows: Vec<_> = lines.collect();
    assert_eq!(rows.len(), 9, "{stdout}");
    assert!(rows.iter().all(|row| row.contains(" simulated ")), "{stdout}");
}

#[test]
fn unknown_figures_and_impossible_values_are_refused() {
    for (arguments, answer) in [
        (["--figure", "5.7"], "`5.7` is not taken again; there are 4.3, 5.10, 4.2.7, table-5.1"),
        (["--load", "1"], "between 0 and 0.95"),
        (["--timeout", "1s"], "between 1µs and 10ms"),
        (["--workers", "0"], "0 is not in 1..=64"),
    ] {
        let output = vacation(&arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(answer), "{stderr}");
    }
}
