//! `rheo check` on whether devices can place packets by a chain's packet set.
//!
//! Timed: processes.

use std::process::Command;

fn check(arguments: &[&str]) -> (Option<i32>, String, String) {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/", "policer.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_rheo"))
        .args(["check", config, "--offline"])
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

/// What `rheo check` prints of a service's configuration.
fn check_service(root: &str, flags: &[&str]) -> (Option<i32>, String, String) {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("serve.toml");
    let text = format!(
        "[[device]]\nname = \"lan\"\nkind = \"tap\"\ninterface = \"rheo0\"\naddress = \"10.0.0.1/24\"\n\
         [serve]\nservice = \"http\"\nport = [80, 8080]\nroot = \"{root}\"\nconnection_memory = \"64MiB\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_rheo"))
        .arg("check")
        .args(flags)
        .arg(&config)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_service_is_described_with_its_memory() {
    let (status, text, error) = check_service("/", &[]);
    assert_eq!(status, Some(0), "{error}");
    let service = "service   http, files of /, heads within 30s, cached for 1s in 16.0 MiB a worker, ports 80, 8080; inline-dfcfs; 100000 connections, 64.0 MiB of data; cubic, idle for \
                   5min, drained for 5s";
    assert!(text.contains(service), "{text}");
    assert!(text.contains("state     connections in 128 shards"), "{text}");
    assert!(
        text.contains("64.0 MiB  data of connections: of 100000 connections at most"),
        "{text}"
    );
    assert!(text.contains("MiB  cached files: "), "{text}");
    assert!(text.contains("packets are placed by"), "{text}");
}

#[test]
fn the_directory_of_a_service_must_be_there() {
    let (status, text, error) = check_service("/no/such/directory", &[]);
    assert_eq!((status, text.as_str()), (Some(2), ""));
    assert!(error.contains("/no/such/directory"), "{error}");
    let (status, _, error) = check_service("/no/such/directory", &["--offline"]);
    assert_eq!(status, Some(0), "another machine may have it: {error}");
}
