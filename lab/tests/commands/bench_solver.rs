//! `rheo bench solver`: its rows for programs, and its answer to a size that is none.
//!
//! Timed: processes.

use std::process::{Command, Output};

use serde_json::Value;

fn solver(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo-lab"));
    command.args(["bench", "solver"]).args(arguments).output().unwrap()
}

#[test]
fn each_model_has_a_row_of_each_size() {
    let output = solver(&["--size", "16x4,32x8", "--instances", "5", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let rows = printed.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<Value> = rows.collect();
    let name = |row: &Value| format!("{} {} {}", row["model"], row["shards"], row["lanes"]);
    let models = ["fewest-lanes", "fewest-changes", "balance"];
    let sizes = [(16, 4), (32, 8)].into_iter();
    let expected = sizes
        .flat_map(|(shards, lanes)| models.map(|model| format!("\"{model}\" {shards} {lanes}")));
    assert_eq!(rows.iter().map(name).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    for row in &rows {
        assert!(row["median_us"].as_f64() <= row["p99_us"].as_f64(), "{row}");
        let share = row["bound_share"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&share), "{row}");
        assert_eq!(row["optimal_share"].is_null(), row["model"] == "balance", "{row}");
    }
}

#[test]
fn a_size_that_is_none_is_named_with_an_example() {
    let output = solver(&["--size", "16"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("`16` is not SHARDSxLANES, such as 128x16"), "{errors}");
}
