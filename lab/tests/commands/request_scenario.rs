//! Scenarios about requests, as `rheo bench run` measures and `rheo sim` simulates them.
//!
//! Timed: processes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn rheo(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo-lab"));
    command.args(arguments).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The only file in `results/`.
fn kept(folder: &Path) -> String {
    let files: Vec<_> = fs::read_dir(folder.join("results")).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    fs::read_to_string(files[0].as_ref().unwrap().path()).unwrap()
}

const SIMULATED: &str = r#"
title = "Two queues"
question = "Which?"
rig = "simulated"
schedulers = ["inline-dfcfs", "inline-cfcfs"]
workers = [2]
rates = ["50k"]
[service]
workloads = ["10us", "0.9:10us,0.1:100us"]
[simulation]
costs = "measured:own.json"
"#;

#[test]
fn a_scenario_is_simulated_with_the_costs_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("scenarios");
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join("mine.toml"), SIMULATED).unwrap();
    let run = ["bench", "run", "scenarios/mine.toml", "--json", "--output", "page.html"];
    let missing = rheo(folder.path(), &run);
    let told = text(&missing.stderr);
    assert!(!missing.status.success() && told.contains("scenarios/own.json: "), "{told}");

    let costs = rheo(folder.path(), &["sim", "sched", "--print-costs", "--lock", "50"]);
    fs::write(inner.join("own.json"), &costs.stdout).unwrap();
    let output = rheo(folder.path(), &run);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let rows = lines(&printed);
    assert_eq!(rows.len(), 4, "{printed}");
    for row in &rows {
        assert_eq!((row["simulated"].as_bool(), row["lock_ns"].as_f64()), (Some(true), Some(50.0)));
        assert_eq!((row["offered"].as_f64(), row["cores"].as_u64()), (Some(50_000.0), Some(2)));
        let has_classes = row["workload"] == "0.9:10us,0.1:100us";
        assert_eq!(row["p999_long_us"].is_f64(), has_classes, "{row}");
    }
    let kept = kept(folder.path());
    let (header, rows) = kept.split_once('\n').unwrap();
    assert_eq!(rows, printed, "the rows are kept as they were printed");
    let header: Value = serde_json::from_str(header).unwrap();
    assert_eq!((&header["scenario"], &header["text"]), (&"mine".into(), &SIMULATED.into()));
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("constant-10us, 2 workers, simulated"), "{page}");

    let report = rheo(folder.path(), &["bench", "report"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("Two queues") && page.contains("measured:own.json"), "{page}");
}

#[test]
fn the_scenario_that_comes_along_is_measured_and_simulated() {
    let folder = tempfile::tempdir().unwrap();
    // One worker, so that the test needs one core only.
    let quick = ["schedulers", "--scheduler", "inline-dfcfs", "--load", "0.1", "--seeds", "1"];
    let measured = ["--lanes", "1", "--duration", "20ms", "--json"];
    let output = rheo(folder.path(), &[&["bench", "run"], &quick[..], &measured].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let rows = lines(&text(&output.stdout));
    let workloads: Vec<_> = rows.iter().map(|row| row["workload"].as_str().unwrap()).collect();
    assert_eq!(workloads, ["constant-10us", "0.99:10us,0.01:500us"]);
    for row in &rows {
        assert_eq!((&row["rig"], row["workers"].as_u64()), (&"pumped".into(), Some(1)), "{row}");
        assert!(row["capacity"].as_f64() > row["offered"].as_f64(), "{row}");
    }
    assert_eq!(kept(folder.path()).lines().count(), 1 + 2);

    let simulated = ["--cores", "1", "--no-results"];
    let output = rheo(folder.path(), &[&["sim"], &quick[..], &simulated].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let lines: Vec<_> = printed.lines().collect();
    assert!(lines[0].starts_with("Schedulers of a service: Which scheduler"), "{printed}");
    assert!(lines[1].starts_with("costs: the thesis's") && lines[2].starts_with("workload "));
    assert_eq!(lines.len(), 3 + 2 + 2, "{printed}");
    assert!(lines[5].starts_with("1 workers, constant-10us at 0.10: inline-dfcfs"), "{printed}");
}

#[test]
fn what_a_scenario_does_not_have_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let simulated = SIMULATED.replace("inline-cfcfs", "inline-fifo");
    fs::write(folder.path().join("wrong.toml"), simulated).unwrap();
    for (arguments, says) in [
        (&["sim", "wrong.toml"][..], &["wrong.toml", "line 5", "use inline-cfcfs"][..]),
        (
            &["bench", "run", "schedulers", "--policy", "rss"],
            &["`schedulers` is about requests: leave --policy out"],
        ),
        (
            &["bench", "balance", "--scheduler", "inline-ws"],
            &["`balance` is about packets: leave --scheduler out"],
        ),
        (&["sim", "schedulers", "--load", "3"], &["schedulers: `loads`: a load is a share"]),
        (&["sim", "schedulers", "--scheduler", "inline"], &["`schedulers`", "use inline-cfcfs"]),
        (&["bench", "throughput", "schedulers"], &["is about requests", "`rheo bench run`"]),
    ] {
        let output = rheo(folder.path(), arguments);
        let told = text(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}: {told}");
        for part in says {
            assert!(told.contains(part), "{arguments:?}: {told}");
        }
    }
    assert!(!folder.path().join("results").exists());
}
