//! `rheo bench nf --instructions`, and the runs that it makes.
//!
//! Timed: processes, threads.

use std::process::{Command, Output};

use serde_json::Value;

/// Runs rows of source and sink alone, for an instant.
fn rheo(path: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rheo"))
        .env("PATH", path)
        .args(["bench", "nf", "--chain", "harness", "--flows", "1k", "--spread", "uniform"])
        .args(["--lanes", "1", "--windows", "1", "--window", "10ms"])
        .args(arguments)
        .output()
        .expect("rheo starts")
}

#[test]
fn without_valgrind_instructions_are_refused_with_what_to_install() {
    let output = rheo("/nowhere", &["--instructions"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("there is none in PATH"), "{said}");
    assert!(words.contains("apt-get install valgrind"), "{said}");
    assert!(output.stdout.is_empty(), "refused before anything is measured");
}

#[test]
fn a_row_run_for_packets_states_how_many_passed() {
    let output = rheo("", &["--packets", "5k"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    let packets =
        printed.strip_prefix("packets: ").and_then(|rest| rest.trim().parse::<u64>().ok());
    assert!(packets >= Some(5_000), "{printed}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn with_valgrind_rows_have_instructions() {
    let path = std::env::var("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join("valgrind").is_file()) {
        eprintln!("not run: there is no valgrind");
        return;
    }
    let output = rheo(&path, &["--instructions", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    let row: Value = serde_json::from_str(printed.lines().last().unwrap_or_default()).unwrap();
    let instructions = row["instructions_per_packet"].as_f64();
    // A packet is made, counted and taken off: not by ten instructions, and not by a million even without optimisation.
    assert!(instructions.is_some_and(|count| (10.0..1e6).contains(&count)), "{row}");
    assert_eq!(row["instructions_above_harness"], 0.0, "{row}");
}
