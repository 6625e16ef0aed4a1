//! `rheo bench report` on files.
//!
//! Timed: processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn rheo(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rheo-lab"))
        .args(["bench", "report"])
        .args(args)
        .current_dir(folder)
        .output()
        .expect("rheo starts")
}

/// Results with one policy, six seeds, and this p95, made up.
fn write_results(path: &Path, p95: f64) {
    let preface = r#"{"preface":{"command":"made up for a test","commit":"0123456789ab","machine":{"processor":"none","cores":1,"kernel":"6","memory_gib":1},"started":"2026-11-21T20:30:00Z","scenario":"made-up","title":"Made up","question":"Is it?","text":"","noise":null,"costs":null,"simulated":true}}"#;
    let run = |seed: u64| {
        let p95 = p95 + seed as f64;
        format!(
            r#"{{"run":{{"scenario":"made-up","policy":"rss","lanes":2,"load":0.8,"seed":{seed},"simulated":true,"seconds":1.0,"capacity":1000.0,"packets":1000,"delivered":1000,"dropped":0,"lost":0,"duplicated":0,"reordered":0,"latency_us":[[0.5,1.0],[0.95,{p95}]],"imbalance":1.0,"spread":null,"migrations":0,"active":2.0,"plans":null,"series":{{"interval":0.1,"warm_up":0.0,"load":[],"offered":[],"delivered":[],"dropped":[],"migrations":[],"active":[]}}}}}}"#
        )
    };
    let runs: Vec<String> = (1..=6).map(run).collect();
    fs::write(path, format!("{preface}\n{}\n", runs.join("\n"))).unwrap();
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_page_is_written_about_all_that_lies_in_results() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    fs::create_dir(&results).unwrap();
    write_results(&results.join("sim.jsonl"), 10.0);
    fs::write(results.join("rows.jsonl"), "{\"chain\":\"nat\"}\n").unwrap();
    let output = rheo(folder.path(), &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "report.html: 6 runs of 1 file, 1 file of rows\n");
    assert_eq!(text(&output.stderr), "");
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("made up for a test"));
}

/// Every file of the committed results is on the page.
#[test]
fn the_page_of_the_committed_results_has_every_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir().unwrap();
    let results = root.join("results").canonicalize().unwrap();
    let output = rheo(folder.path(), &[results.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    let entries = |folder: &Path| -> Vec<PathBuf> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let folders = entries(&results).into_iter().filter(|path| path.is_dir());
    for path in folders.flat_map(|folder| entries(&folder)) {
        let name = path.file_name().unwrap().to_str().unwrap();
        // Runs of scenarios have sections named after the scenario and the time.
        let shown = match fs::read_to_string(&path).unwrap().split_once("\"started\":\"") {
            _ if name.ends_with(".md") => continue,
            Some((_, rest)) => page.contains(rest.split('"').next().unwrap()),
            None => page.contains(name),
        };
        assert!(shown, "{name} is not on the page");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_rest_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    write_results(&folder.path().join("sim.jsonl"), 10.0);
    fs::write(folder.path().join("broken.jsonl"), "{\"chain\":\n").unwrap();
    let output = rheo(folder.path(), &["."]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stderr);
    assert!(told.contains("not on the page: ./broken.jsonl: line 1: "), "{told}");
    assert!(fs::read_to_string(folder.path().join("report.html")).unwrap().contains("made up"));
}

#[test]
fn two_results_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    write_results(&folder.path().join("a.jsonl"), 100.0);
    write_results(&folder.path().join("b.jsonl"), 200.0);
    let output = rheo(folder.path(), &["--compare", "a.jsonl", "b.jsonl"]);
    let told = text(&output.stdout);
    assert!(told.contains("A: a.jsonl (made-up, simulated, commit 0123456789ab"), "{told}");
    assert!(
        told.contains("slower") && told.contains("no difference: p50, dropped packets"),
        "{told}"
    );
    let output = rheo(folder.path(), &["--compare", "a.jsonl", "b.jsonl", "--json"]);
    let line = text(&output.stdout);
    let line = line.lines().find(|line| line.contains("p95_us")).unwrap();
    let ratio: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&ratio["verdict"], &ratio["pairs"]), (&"slower".into(), &6.into()), "{ratio}");
    assert!((ratio["ratio"].as_f64().unwrap() - 203.5 / 103.5).abs() < 0.01, "{ratio}");
}

/// Committed rows of two builds, of which the older had fewer fields.
#[test]
fn rows_about_requests_are_compared_across_builds() {
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../results/2026-11-26-xeon-2vcpu");
    let [older, newer] =
        ["sched-bench", "sched-shared"].map(|name| format!("{results}/{name}.jsonl"));
    let folder = tempfile::tempdir().unwrap();
    let output = rheo(folder.path(), &["--compare", &older, &newer]);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(told.contains("null, inline-dfcfs, 2 workers, load 0.5\n  offered"), "{told}");
    assert!(told.contains("null, inline-cfcfs, 2 workers, load 0.5\n  not in A"), "{told}");
    let lines = text(&rheo(folder.path(), &["--compare", &older, &newer, "--json"]).stdout);
    let capacity = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .find(|line| line["figure"] == "capacity" && line["load"] == 0.5)
        .unwrap();
    let named = [&capacity["workload"], &capacity["scheduler"]];
    assert_eq!(named, ["null", "inline-dfcfs"], "{capacity}");
    let ratio = capacity["ratio"].as_f64().unwrap();
    assert!((ratio - 1_609_512.0 / 1_603_446.0).abs() < 1e-9, "{capacity}");
    assert_eq!(capacity["verdict"], "no-difference", "{capacity}");
}

#[test]
fn what_is_missing_or_wrong_is_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rows.jsonl"), "{\"chain\"\n").unwrap();
    write_results(&folder.path().join("a.jsonl"), 100.0);
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (args, said) in [
        (&["none.jsonl"] as &[&str], "error: none.jsonl: No such file"),
        (&["rows.jsonl"], "error: rows.jsonl, line 1: "),
        (&["empty"], "error: there are no results in empty: `rheo bench balance`"),
        (&["--compare", "a.jsonl", "none.jsonl"], "error: none.jsonl: No such file"),
        (&["a.jsonl", "--output", "none/report.html"], "error: none/report.html: No such file"),
        (&["--compare", "a.jsonl"], "2 values required"),
    ] {
        let output = rheo(folder.path(), args);
        let told = text(&output.stderr);
        assert!(!output.status.success() && told.contains(said), "{args:?}: {told}");
    }
}

#[test]
fn the_name_of_a_file_does_not_act_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "a\u{1b}]0;owned\u{7}.jsonl";
    fs::write(folder.path().join(hostile), "{\"x\":1}\n").unwrap();
    let output = rheo(folder.path(), &[hostile, "none\u{1b}.jsonl"]);
    assert_ne!(output.status.code(), Some(0));
    let shown = [output.stdout, output.stderr].concat();
    assert!(!shown.is_empty() && !shown.contains(&0x1b) && !shown.contains(&0x7));
}
