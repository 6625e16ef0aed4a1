//! `rheo capture` and `rheo trace` on a running instance with the simulated NIC.
//!
//! Timed: sleep, clock, processes.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::instance::{Instance, json};

/// How long to wait for what happens at once on a machine that has nothing else to do.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What tshark states about a capture, one packet per line: interface, direction, protocol, comment.
fn tshark(path: &Path) -> Option<Vec<String>> {
    let output = Command::new("tshark")
        .arg("-r")
        .arg(path)
        .args(["-T", "fields", "-E", "separator=|", "-e", "frame.interface_name"])
        .args(["-e", "frame.packet_flags_direction", "-e", "ip.proto", "-e", "frame.comment"])
        .output()
        .ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(ToOwned::to_owned).collect())
}

#[test]
fn packets_before_and_after_the_chain_come_into_one_file() {
    let instance = Instance::start(&["--lanes", "2"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    let file = path.to_str().unwrap();
    // Short ones, so that all of them fit the socket, and the instance need not wait for the reader.
    let which = ["--filter", "tcp and ip", "--count", "500", "--snaplen", "60"];
    instance.ask(&[&["capture"][..], &which, &["-o", file]].concat());
    match tshark(&path) {
        None => println!("not run: tshark is not installed"),
        Some(lines) => {
            assert_eq!(lines.len(), 500);
            let of = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
            let (before, after) = (of("wire before|0x00000001|6"), of("wire after|0x00000002|6"));
            assert_eq!(before + after, 500, "{:?}", lines.first());
            // How many of them leave depends on what full queues have lost before.
            assert!(before > 0 && after > 0, "{before} before, {after} after");
        }
    }
    instance.stop();
}

#[test]
fn drops_have_their_reason() {
    let instance = Instance::start(&["--lanes", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    let file = path.to_str().unwrap();
    instance.ask(&["capture", "--dropped", "--count", "20", "--snaplen", "60", "-o", file]);
    match tshark(&path) {
        None => println!("not run: tshark is not installed"),
        Some(lines) => {
            assert_eq!(lines.len(), 20);
            let all =
                |line: &String| line.starts_with("wire dropped|") && line.contains("|dropped: ");
            assert!(lines.iter().all(all), "{lines:?}");
        }
    }
    let refused = instance.refused(&["capture", "--dropped", "boredom", "-o", file]);
    assert!(refused.contains("`boredom` is no reason to drop; the reasons are queue_full"));
    instance.stop();
}

#[test]
fn a_capture_ends_when_it_is_interrupted_and_the_file_is_whole() {
    let instance = Instance::start(&["--lanes", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    let child = instance.begin(&["capture", "--before", "-o", path.to_str().unwrap()]);
    while std::fs::metadata(&path).map_or(0, |file| file.len()) < 50_000 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("packets captured"), "{said}");
    let captured: usize = said.split(' ').next().unwrap().parse().unwrap();
    match tshark(&path) {
        None => println!("not run: tshark is not installed"),
        Some(lines) => assert_eq!(lines.len(), captured),
    }
    instance.stop();
}

#[test]
fn a_capture_ends_with_the_run() {
    let instance = Instance::start(&["--lanes", "1"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    let child = instance.begin(&["capture", "--filter", "proto 253", "-o", path.to_str().unwrap()]);
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    instance.stop();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.starts_with("0 packets captured"), "{said}");
}

#[test]
fn a_packet_is_followed_from_its_queue_to_its_end() {
    let instance = Instance::start(&["--lanes", "2"]);
    // To the wrong lane, so that every packet is handed over.
    let swapped: Vec<_> = (0..128).map(|bucket| ((bucket + 1) % 2).to_string()).collect();
    let mut arguments = vec!["table", "set", "--device", "wire"];
    arguments.extend(swapped.iter().map(String::as_str));
    instance.ask_patiently(&arguments);
    // Packets that were in their queues by then stay on their lanes; those behind them do not.
    let (mut handed, start) = (0, Instant::now());
    while handed < 5 {
        assert!(start.elapsed() < TIMEOUT, "{handed} packets were handed over");
        let text = instance.ask(&["trace", "--filter", "tcp", "--count", "5", "--json"]);
        let paths: Vec<_> = text.lines().map(json).collect();
        assert_eq!(paths.len(), 5, "{text}");
        handed += paths.iter().filter(|path| was_handed_over(path)).count();
    }
    let text = instance.ask(&["trace", "--count", "1"]);
    assert!(text.starts_with("packet 1\n        0.0 us  lane "), "{text}");
    instance.stop();
}

/// Whether a packet was handed to another lane, which took it. Its way must be whole in either case.
fn was_handed_over(path: &serde_json::Value) -> bool {
    let points = path["points"].as_array().unwrap();
    let stages: Vec<_> = points.iter().map(|point| point["stage"].as_str().unwrap()).collect();
    let handed = stages.contains(&"handed_to");
    if stages == ["received", "placed", "handed_to", "dropped"] {
        // The other lane did not run meanwhile.
        assert_eq!(points[3]["reason"], "handoff_full", "{path}");
        return false;
    }
    let start: &[&str] = match handed {
        true => &["received", "placed", "handed_to", "taken", "looked", "function"],
        false => &["received", "placed", "looked", "function"],
    };
    assert_eq!(stages[..start.len()], *start, "{path}");
    assert!(matches!(*stages.last().unwrap(), "sent" | "dropped"), "{path}");
    let function = &points[start.len() - 1];
    assert_eq!(function["name"], "Firewall");
    assert_eq!(function["lane"], points[1]["owner"]);
    assert_eq!(handed, points[0]["lane"] != points[1]["owner"]);
    assert_eq!(points[1]["shard"], points[0]["bucket"]);
    assert_eq!(path["finished"], true);
    handed
}

#[test]
fn a_filter_that_is_wrong_is_shown_before_anything_is_asked() {
    let output = crate::instance::rheo(Path::new("/nowhere"), &["trace", "--filter", "tcp udp"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("`and` or `or` is missing before `udp`"), "{said}");
}
