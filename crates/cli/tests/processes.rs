//! `rheo bench nf --lanes 2`: the row, and as many processes beside it, of chains that come along and of registered functions.
//!
//! Timed: processes, threads.

use std::process::Command;

use rheostat_kernel::CoreSet;
use serde_json::Value;

#[test]
fn a_row_on_two_lanes_stands_beside_two_processes() {
    if CoreSet::available().unwrap().cores().len() < 2 {
        eprintln!("not run: there is one core");
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_rheo"))
        .args(["bench", "nf", "--chain", "harness,nat", "--flows", "1k", "--spread", "uniform"])
        .args(["--lanes", "1,2", "--windows", "1", "--window", "10ms", "--joint", "--json"])
        .output()
        .expect("rheo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    let rows = printed.lines().skip(1).map(|line| serde_json::from_str(line).unwrap());
    let rows: Vec<Value> = rows.collect();
    let name = |row: &Value| {
        let lanes = if row["joint_shards"] == true { "joint" } else { "lanes" };
        let control = row["control"].as_str().unwrap_or(lanes);
        format!("{} {} {control}", row["chain"].as_str().unwrap_or_default(), row["lanes"])
    };
    let names: Vec<String> = rows.iter().map(name).collect();
    let wide = ["harness 2 lanes", "harness 2 processes", "nat 2 lanes", "nat 2 processes"];
    let joint = ["nat 2 joint", "nat 2 processes"];
    assert_eq!(names, [&["harness 1 lanes", "nat 1 lanes"][..], &wide, &joint].concat());
    for row in &rows {
        assert!(row["ns_per_packet"].as_f64() > Some(0.0), "{row}");
        let ratio = |name| row["of_processes"][name].as_f64();
        let [low, median, high] = ["low", "median", "high"].map(ratio);
        let is_compared = row["lanes"] == 2 && row["control"].is_null();
        assert_eq!(median.is_some(), is_compared, "{row}");
        assert!(!is_compared || (low <= median && median <= high && low >= Some(0.0)), "{row}");
    }
}

fn bench(arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_rheo"))
        .args(["bench", "nf", "--flows", "1k", "--spread", "uniform", "--windows", "1"])
        .args(["--window", "10ms", "--json"])
        .args(arguments)
        .output()
        .expect("rheo starts")
}

fn chains(output: &std::process::Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout);
    let rows = printed.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| row["chain"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn any_registered_functions_make_a_row() {
    let lanes = if CoreSet::available().unwrap().cores().len() < 2 { "1" } else { "2" };
    let four = "monitor+policer+firewall+nat";
    let rows = chains(&bench(&["--chain", four, "--lanes", lanes]));
    // Of two lanes, as many processes stand beside the row: of the same program, by the same name.
    assert_eq!(rows, vec![four; lanes.parse().unwrap()]);
    assert_eq!(
        chains(&bench(&["--chain", "portscan+firewall", "--lanes", "1"])),
        ["portscan+firewall"]
    );
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/nat.toml");
    assert_eq!(chains(&bench(&["--config", config, "--lanes", "1"])), ["firewall+nat"]);
}

#[test]
fn functions_that_make_no_chain_are_named() {
    for (chain, parts) in [
        ("firewal", &["firewall", "monitor", "harness"][..]),
        ("monitor+firewal", &["monitor+firewal"]),
        ("firewall+firewall", &["firewall"]),
        ("nat+bridge", &["bridge"]),
    ] {
        let output = bench(&["--chain", chain, "--lanes", "1"]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{chain}: {error}");
    }
}
