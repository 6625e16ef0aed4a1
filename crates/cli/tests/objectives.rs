//! `[slo]`: what the summary of a run has of classes, objectives, and lanes that offload.
//!
//! Timed: threads, sleep, clock, processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::instance::{Instance, json};

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/slo.toml")
}

fn run(config: &Path, arguments: &[&str]) -> (String, String) {
    let out = Command::new(RHEO).arg("run").arg(config).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{said}");
    (String::from_utf8(out.stdout).unwrap(), said)
}

fn summary(config: &Path, arguments: &[&str]) -> Value {
    let (printed, _) = run(config, &[arguments, &["--json", "--seed", "1"]].concat());
    serde_json::from_str(printed.lines().last().unwrap()).unwrap()
}

#[test]
fn the_summary_has_each_class_with_its_objective_and_every_packet_once() {
    let summary = summary(&shipped(), &["--policy", "dyssect", "--duration", "1s"]);
    assert_eq!((&summary["invariants"], &summary["reordered"]), (&"ok".into(), &0.into()));
    let classes = summary["classes"].as_array().unwrap();
    let names: Vec<_> = classes.iter().map(|class| class["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["names", "web", "rest"]);
    let packets: u64 = classes.iter().map(|class| class["packets"].as_u64().unwrap()).sum();
    let received: u64 = summary["lanes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lane| lane["packets"].as_u64().unwrap())
        .sum();
    // Those that could not be handed to their lane are of no class.
    let lost = ["handoff_full", "hold_full", "malformed"]
        .map(|reason| summary["dropped"][reason].as_u64().unwrap_or(0));
    assert_eq!(packets + lost.iter().sum::<u64>(), received, "{summary}");
    for class in classes {
        let number = |key: &str| class[key].as_f64().unwrap_or_else(|| panic!("{key}: {class}"));
        assert!(number("sampled") > 0.0 && number("rate") > 0.0);
        assert!(number("latency_us_p50") <= number("latency_us_p995"));
        let objective = if class["kind"] == "priority" { 50.0 } else { 500.0 };
        assert_eq!(number("objective_us"), objective);
        let met = number("latency_us") <= objective;
        assert_eq!(class["met"], met, "{class}");
        assert!(class.get("predicted_us").is_some());
    }
    for key in ["flows", "away", "packets", "home"] {
        assert!(summary["offloaded"][key].is_u64(), "{summary}");
    }
    assert_eq!(summary["offloaded"]["away"], 0, "all flows are home at the end");
    for lane in summary["lanes"].as_array().unwrap() {
        let role = lane["role"].as_str().unwrap();
        assert!(["working", "offloading", "parked"].contains(&role), "{role}");
    }
}

#[test]
fn the_text_has_objectives_and_the_latency_that_they_are_about() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("rheo.toml");
    let text = fs::read_to_string(shipped()).unwrap();
    let text = text.replace("priority = \"50us\"", "priority = \"1us\"");
    let text = text.replace("on = \"waiting\"", "on = \"total\"");
    fs::write(&config, text).unwrap();
    let (printed, said) = run(&config, &["--duration", "1s"]);
    let class = printed.lines().find(|line| line.starts_with("class     names (priority)"));
    let class = class.unwrap_or_else(|| panic!("{printed} {said}"));
    assert!(class.contains("total p50") && class.contains("objective 1 us at 99.5 % "), "{class}");
    assert!(printed.contains("offloaded ") && printed.contains("invariants ok"), "{printed}");
}

#[test]
fn where_arrivals_are_unknown_latencies_are_null_and_packets_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.pcap");
    let made = Command::new(RHEO)
        .args(["gen", "--packets", "6k", "--flows", "60", "--seed", "7", "--output"])
        .arg(&input)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let summary = summary(&shipped(), &["--input", input.to_str().unwrap()]);
    let classes = summary["classes"].as_array().unwrap();
    let packets: u64 = classes.iter().map(|class| class["packets"].as_u64().unwrap()).sum();
    assert_eq!(packets, 6_000);
    for class in classes {
        for key in ["latency_us_p50", "latency_us_p99", "latency_us_p995", "latency_us", "met"] {
            assert_eq!(class[key], Value::Null, "{key}: {class}");
        }
        assert_ne!(class["objective_us"], Value::Null);
    }
}

#[test]
fn a_run_without_objectives_has_no_classes() {
    let demo = shipped().with_file_name("demo.toml");
    let summary = summary(&demo, &["--duration", "200ms"]);
    assert_eq!((summary.get("classes"), summary.get("offloaded")), (None, None));
    assert_eq!(summary["lanes"][0].get("role"), None);
}

#[test]
fn a_running_instance_shows_classes_roles_and_what_it_would_offload() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--device", "wire=sim:20kpps"];
    let instance = Instance::start_with(&shipped(), folder, &flags);
    // There is a plan after a tenth of a second.
    let status = (0..200)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            json(&instance.ask(&["status", "--json"]))
        })
        .find(|status| status["lanes"][0].get("role").is_some())
        .expect("a plan");
    assert_eq!(status["classes"].as_array().unwrap().len(), 3);
    let text = instance.ask(&["status"]);
    assert!(text.contains("class     names (priority)") && text.contains(", working"), "{text}");
    let explained = json(&instance.ask(&["explain", "--over", "300ms", "--json"]));
    assert_eq!(explained["policy"], "dyssect");
    assert_eq!(explained["classes"].as_array().unwrap().len(), 3);
    assert!(!explained["why"].as_array().unwrap().is_empty());
    let text = instance.ask(&["explain", "--over", "100ms"]);
    assert!(text.contains("class     rest (regular)"), "{text}");
    instance.stop();
}

#[test]
fn a_packet_of_a_flow_that_is_away_is_followed_there_and_home() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("rheo.toml");
    let text = "[[device]]\nname = \"wire\"\nkind = \"sim\"\ninside = [\"10.0.0.0/8\"]\nrate = \"20kpps\"\n\
                [device.traffic]\nflows = 40\n[chain]\nfunctions = [\"monitor\"]\n\
                [workers]\nlanes = 2\ncount = 2\noffloading = \"1\"\n";
    fs::write(&config, text).unwrap();
    let instance = Instance::start_with(&config, folder, &[]);
    let start = Instant::now();
    let way = loop {
        assert!(start.elapsed() < Duration::from_secs(120), "no packet was of a flow that is away");
        let text = instance.ask(&["trace", "--count", "50", "--json"]);
        let mut ways = text.lines().map(json).map(|way| way["points"].as_array().unwrap().clone());
        let is_away = |point: &Value| point["stage"] == "offloaded";
        if let Some(way) =
            ways.find(|way| way.iter().any(is_away) && way.last().unwrap()["stage"] == "sent")
        {
            break way;
        }
    };
    // A packet that is followed takes no fast path, so it is sent home; by then, the flow has been recalled, or it waits for it.
    let stages: Vec<_> = way.iter().map(|point| point["stage"].as_str().unwrap()).collect();
    let expected = ["received", "placed", "offloaded", "taken", "refused", "taken"];
    assert_eq!(stages[..expected.len()], expected, "{way:?}");
    assert_eq!((&way[2]["lane"], &way[2]["to"]), (&0.into(), &1.into()));
    assert_eq!((&way[4]["lane"], &way[4]["to"]), (&1.into(), &0.into()));
    assert_eq!(way.last().unwrap()["lane"], 0);
    instance.stop();
}
