//! What the exit status of `rheo bench migrate` states.
//!
//! Timed: processes.

use std::process::Command;

use serde_json::Value;

/// The exit status and the row of a short run.
fn migrate(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_rheo-lab"))
        .args(["bench", "migrate", "--migrations", "100", "--lanes", "2", "--rate", "20k"])
        .args(["--limit", "10min", "--json"])
        .args(arguments)
        .output()
        .expect("rheo starts");
    let row = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), row)
}

#[test]
fn a_sound_run_ends_with_0_and_one_that_loses_packets_with_1() {
    let (status, row) = migrate(&[]);
    assert_eq!((status, &row["lost"]), (Some(0), &0.into()), "{row}");
    assert!(row["dropped"].is_object(), "{row}");
    let (status, row) = migrate(&["--sabotage", "10"]);
    assert_eq!(status, Some(1), "{row}");
    assert!(row["lost"].as_u64() > Some(0), "{row}");
}
