//! Files that are named twice, and files that cannot be written to their end.
//!
//! Timed: sleep, clock, processes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::instance::Instance;

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

/// A NAT whose one device carries both directions.
const NAT: &str = r#"
chain = { functions = ["nat"] }

[[device]]
name = "wire"
kind = "pcap"
inside = ["10.0.0.0/8"]

[function.nat]
external = ["203.0.113.1"]
"#;

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn rheo(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(RHEO).args(arguments).current_dir(folder).output().unwrap()
}

fn summary(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().unwrap_or_else(|| panic!("no summary; {}", stderr(output)));
    serde_json::from_str(last).unwrap()
}

/// A folder with a capture of 2,000 packets by several names, and a NAT.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let size = ["--packets", "2k", "--flows", "100", "--seed", "1"];
    let made = rheo(folder.path(), &[&["gen", "--output", "in.pcap"], &size[..]].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    fs::create_dir(at("sub")).unwrap();
    symlink("in.pcap", at("soft.pcap")).unwrap();
    fs::hard_link(at("in.pcap"), at("hard.pcap")).unwrap();
    symlink("/dev/full", at("full.pcap")).unwrap();
    symlink("/dev/full", at("full.pcapng")).unwrap();
    fs::write(at("nat.toml"), NAT).unwrap();
    folder
}

/// The NAT with another line in its table, or in its device's.
fn configure(folder: &Path, name: &str, function: &str, device: &str) {
    let text = NAT.replace("kind = \"pcap\"", &format!("kind = \"pcap\"\n{device}"));
    fs::write(folder.join(name), format!("{text}{function}\n")).unwrap();
}

#[test]
fn an_output_that_is_the_input_by_another_name_is_refused_before_anything_is_written() {
    let folder = folder();
    let folder = folder.path();
    let before = fs::read(folder.join("in.pcap")).unwrap();
    let intact = || fs::read(folder.join("in.pcap")).unwrap() == before;
    let absolute = folder.join("in.pcap").display().to_string();
    for other in ["soft.pcap", "hard.pcap", "sub/../in.pcap", absolute.as_str()] {
        let flags = ["--input", "in.pcap", "--output", other];
        for command in [&["run", "nat.toml"][..], &["check", "nat.toml"], &["gen"]] {
            let refused = rheo(folder, &[command, &flags].concat());
            assert_eq!(refused.status.code(), Some(2), "{command:?} {other}: {}", stderr(&refused));
            assert!(intact(), "{command:?} {other} has changed the input");
            let text = stderr(&refused);
            assert!(text.contains("would be read and overwritten"), "{text}");
            assert!(text.contains("`in.pcap` is the same file"), "{text}");
        }
    }
    let input = "input = \"in.pcap\"\n";
    for (function, device, complaint) in [
        ("", "output = \"hard.pcap\"", "would be read and overwritten"),
        ("log = \"soft.pcap\"", "", "would be read and overwritten"),
        ("log = \"./other.toml\"", "", "which is this configuration"),
        ("log = \"new.pcap\"", "output = \"sub/../new.pcap\"", "would write into"),
    ] {
        configure(folder, "other.toml", function, &format!("{input}{device}"));
        let refused = rheo(folder, &["run", "other.toml"]);
        let text = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{function} {device}: {text}");
        assert!(text.contains(complaint), "{function} {device}: {text}");
        assert!(intact() && !folder.join("new.pcap").exists(), "{function} {device}");
    }
}

#[test]
fn a_plot_that_is_the_input_or_the_output_is_refused() {
    let folder = folder();
    let input = ["gen", "--input", "in.pcap", "--plot", "hard.pcap"];
    let both = ["gen", "--packets", "10", "--output", "a.pcap", "--plot", "sub/../a.pcap"];
    for arguments in [&input[..], &both] {
        let refused = rheo(folder.path(), arguments);
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    }
    assert!(!folder.path().join("a.pcap").exists());
}

#[test]
fn a_full_disk_under_a_capture_costs_neither_the_summary_nor_the_log() {
    let folder = folder();
    configure(folder.path(), "nat.toml", "log = \"nat.log\"", "");
    let files = ["--input", "in.pcap", "--output", "full.pcap"];
    let run = rheo(folder.path(), &[&["run", "nat.toml", "--json"][..], &files].concat());
    assert_eq!(run.status.code(), Some(1), "{}", stderr(&run));
    let summary = summary(&run);
    let lost = &summary["incomplete"][0];
    assert_eq!((&lost["file"], &lost["unit"]), (&"full.pcap".into(), &"packets".into()));
    assert_eq!(lost["lost"], summary["sent"], "every packet sent is missing");
    assert!(lost["error"].as_str().unwrap().contains("No space left"), "{lost}");
    assert_eq!(summary["invariants"], "ok");
    assert_eq!(stderr(&run).matches("full.pcap").count(), 1, "{}", stderr(&run));
    let log = fs::read_to_string(folder.path().join("nat.log")).unwrap();
    assert!(log.lines().count() > 10, "{log}");
}

#[test]
fn a_full_disk_under_a_log_costs_neither_the_summary_nor_the_capture() {
    let folder = folder();
    configure(folder.path(), "nat.toml", "log = \"/dev/full\"", "");
    let files = ["--input", "in.pcap", "--output", "out.pcap"];
    let run = rheo(folder.path(), &[&["run", "nat.toml", "--json"][..], &files].concat());
    assert_eq!(run.status.code(), Some(1), "{}", stderr(&run));
    let summary = summary(&run);
    let lost = &summary["incomplete"][0];
    assert_eq!((&lost["file"], &lost["unit"]), (&"/dev/full".into(), &"lines".into()));
    assert!(lost["lost"].as_u64().unwrap() > 10, "{lost}");
    assert_eq!(stderr(&run).matches("/dev/full").count(), 1, "{}", stderr(&run));
    let text = rheo(folder.path(), &[&["run", "nat.toml"][..], &files].concat());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("incomplete /dev/full: ") && text.contains("lines missing"), "{text}");
    let size = fs::metadata(folder.path().join("out.pcap")).unwrap().len();
    assert!(size > 1_000, "{size}");
}

#[test]
fn a_limit_of_file_size_ends_the_file_and_not_the_process() {
    let folder = folder();
    // 16 KiB.
    let script = format!("ulimit -f 16; exec {RHEO} \"$@\"");
    let run = ["run", "nat.toml", "--json", "--input", "in.pcap", "--output", "out.pcap"];
    let run = Command::new("bash")
        .args(["-c", &script, "rheo"])
        .args(run)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(1), "{:?} {}", run.status, stderr(&run));
    let summary = summary(&run);
    let (lost, sent) = (&summary["incomplete"][0]["lost"], &summary["sent"]);
    let (lost, sent) = (lost.as_u64().unwrap(), sent.as_u64().unwrap());
    assert!(0 < lost && lost < sent, "{lost} of {sent}");
    // What is not lost is there.
    let read = rheo(folder.path(), &["gen", "--input", "out.pcap", "--describe", "--json"]);
    let described: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!(described["packets"].as_u64(), Some(sent - lost), "{described}");
}

#[test]
fn generated_traffic_that_finds_no_room_is_described_and_no_success() {
    let folder = folder();
    let size = ["--packets", "2k", "--output", "full.pcap"];
    let made = rheo(folder.path(), &[&["gen", "--describe", "--json"][..], &size].concat());
    assert_eq!(made.status.code(), Some(1), "{}", stderr(&made));
    assert!(stderr(&made).contains("full.pcap is incomplete, 2000 packets are missing"));
    let described: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(described["packets"], 2_000);
}

#[test]
fn what_is_missing_in_a_file_is_in_the_status_while_the_run_goes_on() {
    let folder = folder();
    let config = folder.path().join("nat.toml");
    configure(folder.path(), "nat.toml", "log = \"/dev/full\"", "");
    let instance = Instance::start_with(&config, folder, &["--device", "wire=sim:20kpps"]);
    let start = Instant::now();
    let status = loop {
        let status: Value = serde_json::from_str(&instance.ask(&["status", "--json"])).unwrap();
        // That something is missing is known a moment before how much it is.
        if status["incomplete"][0]["lost"].as_u64() > Some(0) {
            break status;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "nothing is missing: {status}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status["incomplete"][0]["file"], "/dev/full", "{status}");
}

#[test]
fn a_capture_of_an_instance_overwrites_none_of_its_files_and_reports_a_full_disk() {
    let folder = folder();
    let config = folder.path().join("nat.toml");
    let [log, full] = ["nat.pcapng", "full.pcapng"].map(|name| folder.path().join(name));
    configure(folder.path(), "nat.toml", &format!("log = {log:?}"), "");
    let instance = Instance::start_with(&config, folder, &["--device", "wire=sim:20kpps"]);
    let capture = |file: &Path| {
        let file = file.to_str().unwrap();
        crate::instance::rheo(&instance.socket(), &["capture", "--count", "10", "-o", file])
    };
    let refused = capture(&log);
    let text = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("the log of function `nat`"), "{text}");
    let cut = capture(&full);
    let text = stderr(&cut);
    assert_eq!(cut.status.code(), Some(1), "{text}");
    assert!(text.contains("full.pcapng is incomplete") && text.contains("No space left"), "{text}");
}
