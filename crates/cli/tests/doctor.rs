//! `rheo doctor` on the machine that the tests run on: whatever it finds, it finds something.
//!
//! Timed: processes.

use std::process::Command;

fn doctor(arguments: &[&str]) -> (Option<i32>, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_rheo")).arg("doctor").args(arguments).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn this_machine_is_examined() {
    let (status, text) = doctor(&[]);
    assert!(matches!(status, Some(0 | 1)));
    assert!(text.contains("kernel             Linux "), "{text}");
    let (with_json, json) = doctor(&["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let findings = json["findings"].as_array().unwrap();
    assert!(findings.len() > 10);
    let has_errors = findings.iter().any(|finding| finding["level"] == "error");
    assert_eq!((status, with_json), (Some(has_errors.into()), Some(has_errors.into())));
}

#[test]
fn an_interface_that_does_not_exist_is_an_error() {
    let (status, text) = doctor(&["no-such-one"]);
    assert_eq!(status, Some(1));
    assert!(text.contains("interface no-such-one\nERROR    interface"), "{text}");
}
