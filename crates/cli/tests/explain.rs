//! `rheo explain`, of a running instance and of a capture.
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

fn rheo(arguments: &[&str]) -> Output {
    Command::new(RHEO).args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn sum(explanation: &Value, list: &str, field: &str) -> f64 {
    let list = explanation[list].as_array().unwrap();
    list.iter().map(|each| each[field].as_f64().unwrap_or(0.0)).sum()
}

#[test]
fn a_running_instance_says_what_a_policy_would_do_and_does_not_do_it() {
    let instance = Instance::start(&["--lanes", "3"]);
    // It answers before its first packet comes, and before it is known what that one cost.
    let explanation = (0..100)
        .map(|_| json(&instance.ask(&["explain", "--over", "500ms", "--sample", "500", "--json"])))
        .find(|each| each["sampled"] != 0 && sum(each, "shards", "load") > 0.0)
        .expect("packets come");
    // The run's own policy moves nothing.
    assert_eq!(explanation["policy"], "rsspp");
    assert_eq!(explanation["lanes"].as_array().unwrap().len(), 3);
    assert_eq!(explanation["shards"].as_array().unwrap().len(), 128);
    assert_eq!(explanation["buckets"].as_array().unwrap().len(), 128);
    let sampled = explanation["sampled"].as_f64().unwrap();
    assert!((1.0..=500.0).contains(&sampled), "{explanation}");
    assert_eq!(sum(&explanation, "shards", "sampled"), sampled);
    let (shards, lanes) = (sum(&explanation, "shards", "load"), sum(&explanation, "lanes", "load"));
    assert!(lanes > 0.0 && shards > 0.0 && shards <= lanes + 1e-6, "{shards} {lanes}");
    assert!(!explanation["why"].as_array().unwrap().is_empty());
    let text = instance.ask(&["explain", "--over", "100ms", "--policy", "rss"]);
    assert!(text.contains("the table never changes"), "{text}");
    let errors = instance.refused(&["explain", "--policy", "rss++"]);
    assert!(errors.contains("local-search"), "{errors}");
    assert_eq!(instance.stop()["migrations"], 0);
}

#[test]
fn a_capture_with_an_elephant_is_limited_by_one_flow() {
    let folder = tempfile::tempdir().unwrap();
    let capture = folder.path().join("in.pcap");
    let capture = capture.to_str().unwrap();
    let made =
        rheo(&["gen", "--output", capture, "--packets", "2k", "--flows", "3", "--seed", "1"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let config = config("firewall.toml");
    let config = config.to_str().unwrap();
    let ask = |more: &[&str]| {
        let fixed = ["explain", config, "--input", capture, "--seed", "1", "--lanes", "8"];
        rheo(&[&fixed[..], more].concat())
    };
    let explanation = json(&printed(&ask(&["--json"])));
    assert_eq!(explanation["sampled"], 2_000);
    assert_eq!(explanation["limit"]["kind"], "flow");
    assert_eq!(explanation["limit"]["flow"], explanation["flows"][0]["flow"]);
    assert!((sum(&explanation, "lanes", "load") - 8.0 * 0.7).abs() < 1e-3, "{explanation}");
    assert_eq!(json(&printed(&ask(&["--json"]))), explanation, "a seed repeats it");
    let text = printed(&ask(&["--buckets"]));
    assert!(text.contains("limited by one flow") && text.contains("thousandths"), "{text}");
    let nonsense = ask(&["--load", "-1"]);
    assert!(!nonsense.status.success());
}

#[test]
fn what_reads_no_capture_is_refused_with_a_way_out() {
    let output = rheo(&["explain", config("demo.toml").to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("`wire`") && errors.contains("--input"), "{errors}");
    assert_eq!(output.status.code(), Some(2));
}
