//! `rheo bench sched`: its rows for programs and for people, and its answers to what makes no sense. What requests take is not looked at.
//!
//! Timed: processes.

use std::process::{Command, Output};

use serde_json::Value;

/// One worker, so that the test needs one core only.
const SHORT: [&str; 12] = [
    "--scheduler",
    "inline-dfcfs",
    "--workers",
    "1",
    "--workload",
    "null",
    "--rounds",
    "1",
    "--windows",
    "1",
    "--window",
    "20ms",
];

fn sched(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo-lab"));
    command.args(["bench", "sched"]).args(arguments).output().unwrap()
}

fn short(arguments: &[&str]) -> Output {
    sched(&[&SHORT[..], arguments].concat())
}

fn error_of(arguments: &[&str]) -> String {
    let output = sched(&[&["--workload", "null"], arguments].concat());
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_load_has_a_row_with_the_fields_of_the_contract() {
    let output = short(&["--load", "0.1,0.3", "--connections", "8", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = lines.next().unwrap();
    assert!(header["machine"]["cores"].as_u64() > Some(0), "{header}");
    let rows: Vec<Value> = lines.collect();
    assert_eq!(
        rows.iter().map(|row| row["load"].as_f64()).collect::<Vec<_>>(),
        [Some(0.1), Some(0.3)]
    );
    for row in &rows {
        let named = [&row["scheduler"], &row["rig"], &row["workload"]];
        assert_eq!(named, ["inline-dfcfs", "pumped", "null"]);
        assert_eq!((row["workers"].as_u64(), row["connections"].as_u64()), (Some(1), Some(8)));
        assert!(row["capacity"].as_f64() > Some(0.0) && row["offered"].as_f64() > Some(0.0));
        assert!(row["ns_per_request"].is_number() && row["client_ns"][0].as_f64() > Some(0.0));
        // One call sends 32 packets at most, and few replies need a packet more.
        let sends = row["sends_per_reply"].as_f64().unwrap();
        assert!(sends > 1.0 / 33.0 && sends < 1.5, "{row}");
        assert!(row["p999_us"].is_null() || row["p999_us"].as_f64() > Some(0.0), "{row}");
        // Nothing is allocated for a request; a thread that looks at counters may do so once.
        assert!(row["allocations"].as_f64() < Some(0.01), "{row}");
    }
}

#[test]
fn people_get_a_table() {
    let output = short(&["--load", "0.2"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("capacity") && printed.contains("\nnull "), "{printed}");
}

#[test]
fn a_page_has_the_stages_of_requests_and_says_where_there_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("sched.html");
    let text = page.to_str().unwrap();
    for (times, has_stages) in [(&["--times"][..], true), (&[], false)] {
        let output = short(&[&["--load", "0.2", "--output", text], times].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && told.contains("charts in"), "{told}");
        let page = std::fs::read_to_string(&page).unwrap();
        assert!(page.contains("null, 1 worker, pumped") && page.contains("rig pumped"), "{page}");
        assert_eq!(page.contains("class=\"part\""), has_stages);
        assert_eq!(page.contains("The stages of requests were not timed"), !has_stages);
    }
    let output = short(&["--output", folder.path().join("none/sched.html").to_str().unwrap()]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && told.contains("none/sched.html"), "{told}");
    assert_eq!(output.stdout, b"", "nothing is measured for a page that cannot be written");
}

#[test]
fn what_makes_no_sense_is_named() {
    assert!(error_of(&["--load", "0"]).contains("load 0: above 0"));
    assert!(error_of(&["--scheduler", "inline"]).contains("inline"));
    assert!(error_of(&["--window", "1us"]).contains("between 1ms and 10s"));
    let cores = rheostat_kernel::CoreSet::available().unwrap().cores().len();
    if cores < 64 {
        assert!(error_of(&["--workers", "64"]).contains("64"), "{cores} cores");
    }
}
