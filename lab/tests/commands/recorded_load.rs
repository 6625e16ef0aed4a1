//! Rows that `rheo load --record` keeps, compared.
//!
//! Timed: processes.

use std::process::Command;

#[test]
fn a_recorded_load_is_compared_at_its_rate() {
    let record = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/load.jsonl");
    let compared = Command::new(env!("CARGO_BIN_EXE_rheo-lab"))
        .args(["bench", "report", "--compare", record, record])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&compared.stdout).into_owned();
    let wanted = "work 1us+100us, inline-dfcfs, 40\u{a0}k requests per second\n  offered";
    assert!(printed.contains(wanted), "{printed}");
}
