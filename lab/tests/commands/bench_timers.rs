//! `rheo bench timers`: its rows for programs and for people, and its answer to a number that is none.
//!
//! Timed: processes.

use std::process::{Command, Output};

use serde_json::Value;

fn timers(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo-lab"));
    command.args(["bench", "timers"]).args(arguments).output().unwrap()
}

#[test]
fn the_wheel_and_the_map_have_a_row_of_each_size() {
    let output = timers(&["--timers", "100,2k", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let rows = printed.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<Value> = rows.collect();
    let name = |row: &Value| format!("{} {}", row["structure"].as_str().unwrap(), row["timers"]);
    let names: Vec<_> = rows.iter().map(name).collect();
    assert_eq!(names, ["wheel 100", "map 100", "wheel 2000", "map 2000"]);
    for row in &rows {
        for operation in ["arm_ns", "later_ns", "earlier_ns", "disarm_ns", "expire_ns"] {
            assert!(row[operation].as_f64().is_some_and(|ns| ns > 0.0), "{row}");
        }
    }
}

#[test]
fn people_get_a_table() {
    let output = timers(&["--timers", "100"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("structure") && printed.contains("\nwheel "), "{printed}");
}

#[test]
fn a_number_that_is_none_is_named() {
    let output = timers(&["--timers", "0"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("0 timers: 1 to 10M are possible"), "{errors}");
}
