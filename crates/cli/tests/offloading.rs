//! `[workers] offloading`: whichever flows are away, what leaves a capture is the same, and the summary reports them.
//!
//! Timed: threads, processes.

use std::fs;
use std::path::Path;
use std::process::Command;

use rheostat_io::backend::pcap::read_all;
use serde_json::Value;

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

/// Runs the monitor, which has most packets on its fast path, over `input` with these workers.
fn run(folder: &Path, input: &Path, workers: &str) -> (Value, Vec<Vec<u8>>) {
    let (config, output) = (folder.join("rheo.toml"), folder.join("out.pcapng"));
    let text = format!(
        "[[device]]\nname = \"link\"\nkind = \"pcap\"\npace = \"max\"\ninside = [\"10.0.0.0/8\"]\n\
         [chain]\nfunctions = [\"monitor\"]\n[workers]\ncount = 2\n{workers}"
    );
    fs::write(&config, text).unwrap();
    let out = Command::new(RHEO)
        .args(["run", "--seed", "1", "--json", "--input"])
        .args([input, Path::new("--output"), &output, &config])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    let summary = String::from_utf8(out.stdout).unwrap();
    let summary = serde_json::from_str(summary.lines().last().unwrap()).unwrap();
    let (records, fault) = read_all(&fs::read(&output).unwrap()).unwrap();
    assert!(fault.is_none(), "{fault:?}");
    let mut packets: Vec<_> = records.into_iter().map(|record| record.bytes).collect();
    packets.sort();
    (summary, packets)
}

#[test]
fn a_capture_leaves_the_same_whichever_flows_are_away() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.pcap");
    let made = Command::new(RHEO)
        .args(["gen", "--packets", "6k", "--flows", "60", "--seed", "7", "--output"])
        .arg(&input)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (one, expected) = run(folder.path(), &input, "lanes = 1\n");
    assert_eq!(one.get("offloaded"), None, "no flow has left");
    let (many, packets) = run(folder.path(), &input, "lanes = 3\noffloading = \"0-1\"\n");
    assert_eq!(many["invariants"], "ok");
    assert!(packets == expected, "the same packets leave");
    for figure in ["received", "sent", "dropped", "functions", "reordered"] {
        assert_eq!(one[figure], many[figure], "{figure}");
    }
    assert_eq!(one["flows"]["created"], many["flows"]["created"]);
    let offloaded = &many["offloaded"];
    assert_eq!(offloaded["away"], 0);
    assert!(offloaded["flows"].as_u64().unwrap() > 0, "{offloaded}");
}
