//! `rheo profile`, of a run and of a running instance.
//!
//! Timed: processes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::instance::{Instance, json};
use serde_json::Value;

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

fn config(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(name)
}

fn profile(config: &Path, arguments: &[&str]) -> Output {
    Command::new(RHEO).arg("profile").arg(config).args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json_of(config: &Path, arguments: &[&str]) -> Value {
    json(&printed(&profile(config, &[arguments, &["--json"]].concat())))
}

#[test]
fn a_chain_without_shared_objects_has_a_note_and_its_imbalance() {
    // Reads captures, and gets generated packets as there is none.
    let flags = ["--lanes", "2", "--duration", "200ms"];
    // Lanes may be kept from their cores for as long as that.
    let found = (0..100)
        .map(|_| json_of(&config("firewall.toml"), &flags))
        .find(|found| found["packets"] != 0)
        .expect("packets come");
    assert_eq!(
        (&found["shares"], &found["commits"], &found["aborts"]),
        (&false.into(), &0.into(), &0.into())
    );
    assert_eq!(found["functions"], serde_json::json!(["firewall"]));
    assert_eq!(found["causes"], serde_json::json!([]));
    let imbalance = found["imbalance"].as_f64().unwrap();
    assert!((1.0..=2.0).contains(&imbalance), "{found}");
    let text = (0..100)
        .map(|_| printed(&profile(&config("firewall.toml"), &flags)))
        .find(|text| text.contains("imbalance"))
        .expect("packets come");
    assert!(text.contains("share no objects"), "{text}");
}

#[test]
fn a_running_instance_is_profiled_from_outside() {
    let instance = Instance::start(&["--lanes", "2"]);
    // It answers before its first packet comes.
    let told = (0..100)
        .map(|_| json(&instance.ask(&["profile", "--over", "300ms", "--json"])))
        .find(|told| told["packets"] != 0)
        .expect("packets come");
    assert_eq!((&told["lanes"], &told["shares"]), (&2.into(), &false.into()));
    assert!(told["seconds"].as_f64().unwrap() >= 0.3 && told["imbalance"].is_number(), "{told}");
    let text = instance.ask(&["profile", "--over", "50ms"]);
    assert!(text.starts_with("chain     firewall: 2 lanes"), "{text}");
    instance.stop();
}

#[test]
fn what_belongs_to_a_run_is_refused_for_an_instance_and_the_other_way_round() {
    let output = profile(&config("demo.toml"), &["--over", "1s"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--over"));
    let missing = profile(Path::new("/nowhere.toml"), &[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/nowhere.toml"));
}

/// A configuration of the repository with some texts in it replaced, profiled on two lanes.
fn profiled(name: &str, replaced: &[(&str, &str)], flags: &[&str]) -> Value {
    let mut text = std::fs::read_to_string(config(name)).unwrap();
    for (is, to_be) in replaced {
        assert!(text.contains(is), "{name} has no `{is}` any more");
        text = text.replace(is, to_be);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let flags = [&["--lanes", "2", "--duration", "700ms", "--seed", "1"], flags].concat();
    // Lanes may be kept from their cores for as long as that.
    let mut profiles = (0..100).map(|_| json_of(&path, &flags));
    profiles.find(|profile| profile["commits"] != 0).expect("packets come")
}

/// The configuration `name` as it is has the value `advised`, and with `before` in its place lanes conflict: the
/// first advice is then to be `recipe`, about `object`.
///
/// Lanes conflict only while both are under way, which is up to the machine: where they did too seldom to say anything,
/// the profile has to report the conflicts that there were as it reports any. That the advice helps is tested on
/// simulated lanes, which conflict for certain (`contention/tests.rs` of the benchmark).
fn follow(name: &str, [before, advised]: [&str; 2], flags: &[&str], object: &str, recipe: &str) {
    for (profile, is_advised) in
        [(profiled(name, &[(advised, before)], flags), false), (profiled(name, &[], flags), true)]
    {
        let count = |field: &str| profile[field].as_u64().unwrap();
        let rate = profile["abort_rate"].as_f64().unwrap();
        assert!(profile["shares"] == true && count("commits") > 0, "{name}: {profile}");
        let expected = count("aborts") as f64 / (count("aborts") + count("commits")) as f64;
        assert!((rate - expected).abs() < 0.01, "{name}: {profile}");
        for cause in profile["causes"].as_array().unwrap() {
            let source = cause["source"].as_str().unwrap();
            assert!(source.contains("crates/functions/src/"), "{name}: {profile}");
        }
        if !is_advised && count("aborts") >= 1_000 {
            let cause = &profile["causes"][0];
            assert_eq!(cause["object"], object, "{profile}");
            assert_eq!(cause["recipe"], recipe, "{profile}");
        } else if !is_advised {
            println!("{name}: {} aborts are too few to hold its advice to", count("aborts"));
        }
    }
}

#[test]
fn the_advice_for_antiddos_is_to_allow_older_counts() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("attack.pcap");
    let capture = capture.to_str().unwrap();
    // Nine of ten packets are SYNs from sources of their own.
    let made = Command::new(RHEO)
        .args(["gen", "--traffic", "attack", "--share", "0.9", "--packets", "30k", "--seed", "1"])
        .args(["--output", capture])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    follow(
        "antiddos.toml",
        ["staleness = \"0s\"", "staleness = \"100us\""],
        &["--input", capture],
        "antiddos flows",
        "raise the maximum staleness: [function.antiddos] staleness",
    );
}

#[test]
fn the_advice_for_a_bridge_is_to_refresh_less_often() {
    follow(
        "bridge.toml",
        ["refresh = \"0s\"", "refresh = \"10s\""],
        &[],
        "bridge stations leases",
        "raise the refresh interval: [function.bridge] refresh",
    );
}
