//! `rheo check` on whether devices can place packets by a chain's packet set.
//!
//! Timed: processes.

use std::process::Command;

fn check(arguments: &[&str]) -> (Option<i32>, String, String) {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/", "policer.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_rheo"))
        .args(["check", config])
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn what_software_hashes_is_said_for_each_device() {
    let (status, text, _) = check(&[]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("packets are placed by inner address"), "{text}");
    let (status, json, _) = check(&["--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, &json["ok"]), (Some(0), &true.into()));
    for device in json["placing"].as_array().unwrap() {
        assert_eq!(device["feasible"], true);
        assert_ne!(device["hashed_by"], "hardware");
        assert_eq!(device["reason"], serde_json::Value::Null);
    }
    assert_eq!(
        json["placing"].as_array().unwrap().len(),
        json["devices"].as_array().unwrap().len()
    );
}

#[test]
fn what_hardware_cannot_hash_is_refused_with_what_can_be_done() {
    let (status, text, error) = check(&["--hardware-hash"]);
    assert_eq!((status, text.as_str()), (Some(1), ""));
    assert!(error.contains("cannot hash inner address"), "{error}");
    assert!(error.contains("\n  - place packets in software"), "{error}");
    assert!(error.contains("\n  - name no flows"), "{error}");
    let (status, json, _) = check(&["--hardware-hash", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((status, &json["ok"]), (Some(1), &false.into()));
    let device = &json["placing"][0];
    assert_eq!((&device["feasible"], &device["hashed_by"]), (&false.into(), &"hardware".into()));
    assert_eq!(device["cannot_hash"].as_array().unwrap().len(), 1);
    assert!(device["alternatives"].as_array().unwrap().len() >= 3);
}
