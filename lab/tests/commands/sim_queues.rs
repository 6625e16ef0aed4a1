//! `rheo sim queues`: its rows for programs and people, its page, and what it answers to nonsense.
//!
//! Timed: processes.

use std::process::{Command, Output};

use serde_json::Value;

fn sim(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rheo-lab")).arg("sim").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const QUICK: [&str; 7] = ["queues", "--servers", "2,4", "--load", "0.5,0.9", "--packets", "1k"];

#[test]
fn rows_in_json_have_the_fields_that_programs_read() {
    let output = sim(&[&QUICK[..], &["--json", "--seed", "3"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let lines: Vec<Value> =
        stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (header, rows) = lines.split_first().unwrap();
    assert!(header["command"].as_str().unwrap().starts_with("rheo sim queues --servers 2,4"));
    // Two distributions, two numbers of servers, two loads, two kinds of queues.
    assert_eq!(rows.len(), 16, "{stdout}");
    let models: Vec<_> = rows.iter().map(|row| row["model"].as_str().unwrap()).collect();
    assert_eq!(models[..2], ["2 x M/M/1", "M/M/2"]);
    assert_eq!(models[14..], ["4 x M/D/1", "M/D/4"]);
    for row in rows {
        assert_eq!(row["simulated"], true);
        for field in ["mean", "p99", "mean_by_separate", "p99_by_separate"] {
            assert!(row[field]["value"].is_f64() && row[field]["margin"].is_f64(), "{row}");
        }
        assert!(row["mean_exact"].is_f64() && row["p99_exact"].is_f64(), "{row}");
    }
}

#[test]
fn rows_for_people_say_that_they_are_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("queues.html");
    let output = sim(&[&QUICK[..], &["--output", page.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let lines: Vec<_> = stdout.lines().collect();
    assert!(lines[0].starts_with("simulated by rheo "), "{stdout}");
    assert!(lines[1].starts_with("model ") && lines[2].starts_with("2 x M/M/1 "), "{stdout}");
    assert_eq!(lines.len(), 2 + 16, "{stdout}");
    assert!(std::fs::read_to_string(page).unwrap().contains("<svg"));
}

#[test]
fn nonsense_is_refused_before_anything_is_printed() {
    for (option, value, says) in [
        ("--load", "1", "error: load 1: above 0 and at most 0.99"),
        ("--load", "0.5,0", "error: load 0: "),
        ("--servers", "0", "error: 0 servers: between 1 and 256"),
        ("--packets", "0", "error: 0 packets"),
        ("--service", "pareto", "markov, deterministic, bimodal"),
    ] {
        let output = sim(&["queues", option, value]);
        let stderr = text(&output.stderr);
        assert!(!output.status.success() && stderr.contains(says), "{stderr}");
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    }
}

#[test]
fn a_scenario_is_asked_for_where_there_is_none() {
    let output = sim(&[]);
    assert!(text(&output.stderr).contains("<SCENARIO>"), "{}", text(&output.stderr));
}
