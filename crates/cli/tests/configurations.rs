//! The configurations that are shipped, over captures. Those for interfaces run live as well, in `tests/live`.
//!
//! Timed: processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs")
}

fn rheo(place: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rheo"))
        .args(arguments)
        .current_dir(place)
        .output()
        .expect("rheo starts")
}

fn generate(place: &Path, arguments: &[&str]) {
    let output = rheo(place, &[&["gen"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The summary of a run with a shipped configuration.
fn run(place: &Path, configuration: &str, arguments: &[&str]) -> Value {
    let path = folder().join(configuration);
    let path = path.to_str().expect("a path of letters");
    let output = rheo(place, &[&["run", path, "--json", "--seed", "1"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{configuration}: {said}");
    let last = String::from_utf8_lossy(&output.stdout);
    let last = last.lines().last().unwrap_or_else(|| panic!("{configuration}: {said}"));
    serde_json::from_str(last).expect("a summary")
}

/// A new configuration is found here by itself. `configuration.py` of `tests/live` has those for interfaces.
#[test]
fn every_shipped_configuration_runs_over_a_capture() {
    let place = tempfile::tempdir().unwrap();
    generate(place.path(), &["--output", "in.pcap", "--packets", "2k", "--flows", "300"]);
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = files.map(|name| name.into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    // A service needs an interface: `tests/serving` runs it.
    names.retain(|name| name != "serve-live.toml");
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        // With two ports, a capture at each.
        let two_ports = ["--device", "lan=pcap:in.pcap", "--device", "wan=pcap:in.pcap"];
        let input = match name.as_str() {
            "firewall-two-ports.toml" => &two_ports[..],
            // Its devices are simulated.
            "nat-sim.toml" => &["--device", "lan=sim:20kpps", "--duration", "500ms"],
            _ => &["--input", "in.pcap"],
        };
        let summary = run(place.path(), &name, &[input, &["--lanes", "2"]].concat());
        assert_eq!(summary["invariants"], "ok", "{name}: {summary}");
        assert_ne!(summary["sent"], 0, "{name}: {summary}");
    }
}

#[test]
fn the_demo_drops_scans_alone_where_no_queue_is_full() {
    let place = tempfile::tempdir().unwrap();
    generate(place.path(), &["--output", "mix.pcap", "--packets", "200k"]);
    let summary = run(place.path(), "demo.toml", &["--input", "mix.pcap", "--lanes", "1"]);
    let dropped = summary["dropped"].as_object().unwrap();
    assert_eq!(dropped.keys().collect::<Vec<_>>(), ["denied"], "{summary}");
    let denied = dropped["denied"].as_u64().unwrap();
    assert!(denied * 20 < 200_000, "{denied} of 200,000: under 5 %");
}

#[test]
fn a_nat_takes_the_replies_of_a_simulated_server_for_what_they_are() {
    let place = tempfile::tempdir().unwrap();
    let flags = ["--device", "lan=sim:20kpps", "--duration", "1s", "--lanes", "2"];
    let summary = run(place.path(), "nat-sim.toml", &flags);
    assert_eq!(summary["invariants"], "ok", "{summary}");
    let sources = summary["sources"].as_array().unwrap();
    assert_eq!((&sources[0]["device"], &sources[0]["replies"]), (&"lan".into(), &0.into()));
    assert_eq!((&sources[1]["device"], &sources[1]["drawn"]), (&"wan".into(), &0.into()));
    assert!(sources[1]["replies"].as_u64() > Some(0), "{summary}");
    // A reply that belongs to no flow would be dropped for that.
    for reason in summary["dropped"].as_object().unwrap().keys() {
        assert!(["queue_full", "tcp_invalid"].contains(&reason.as_str()), "{summary}");
    }
}

#[test]
fn visitors_reach_the_server_that_the_gateway_publishes() {
    let place = tempfile::tempdir().unwrap();
    let to = ["--traffic", "visitors", "--target", "203.0.113.1:8080", "--server", "10.0.0.5:80"];
    let sides = ["--packets", "8k", "--visitors", "50", "--sides", "lan.pcap", "wan.pcap"];
    generate(place.path(), &[&to[..], &sides[..]].concat());
    let devices =
        ["--device", "lan=pcap:lan.pcap", "--device", "wan=pcap:wan.pcap", "--lanes", "1"];
    let summary = run(place.path(), "nat.toml", &devices);
    assert_eq!(
        (&summary["received"], &summary["sent"]),
        (&8_000.into(), &8_000.into()),
        "{summary}"
    );
    assert_eq!(summary["dropped"], serde_json::json!({}), "{summary}");
}

#[test]
fn visitors_of_a_service_go_to_its_backends() {
    let place = tempfile::tempdir().unwrap();
    let to = ["--traffic", "visitors", "--target", "198.51.100.10:443", "--output", "in.pcap"];
    generate(place.path(), &[&to[..], &["--packets", "8k", "--visitors", "50"]].concat());
    let summary = run(place.path(), "lb.toml", &["--input", "in.pcap", "--lanes", "1"]);
    // 8,000 packets are those of 1,000 visits, and of some that go on.
    assert!(summary["functions"]["lb_flows"].as_u64() >= Some(1_000), "{summary}");
    assert_eq!(summary["dropped"], serde_json::json!({}), "{summary}");
}

#[test]
fn the_summary_states_how_a_run_was_polled() {
    let place = tempfile::tempdir().unwrap();
    let flags = ["--polling", "metronome", "--workers", "3", "--lanes", "2", "--duration", "500ms"];
    let summary = run(place.path(), "demo.toml", &flags);
    assert_eq!(summary["invariants"], "ok");
    let polling = &summary["polling"];
    assert_eq!(polling["policy"], "metronome");
    let workers = polling["workers"].as_array().unwrap();
    assert_eq!(workers.len(), 3);
    assert!(workers.iter().any(|worker| worker["tries"].as_u64() > Some(0)), "{polling}");
    let lanes = polling["lanes"].as_array().unwrap();
    assert_eq!(lanes.len(), 2);
    for lane in lanes {
        assert!(["busy", "metronome", "interrupt"].iter().any(|mode| lane["mode"] == **mode));
        assert!(lane["tries"].as_u64() >= lane["lost_tries"].as_u64(), "{lane}");
        let spent = ["busy_seconds", "metronome_seconds", "interrupt_seconds"];
        assert!(spent.iter().filter_map(|mode| lane[*mode].as_f64()).sum::<f64>() > 0.0, "{lane}");
    }
    let bound = run(place.path(), "demo.toml", &["--lanes", "2", "--duration", "200ms"]);
    assert_eq!(bound["polling"]["lanes"][0]["mode"], "busy");
}
