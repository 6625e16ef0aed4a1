//! The control socket of a running instance, with the commands that people use. No root is needed: the
//! device is the simulated NIC.
//!
//! Timed: sleep, processes, sockets.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rheostat_io::CaptureReader;
use rustix::process::Signal;

use crate::instance::{GAVE_UP, Instance, json, json_rows, lb_config, lb_config_with, rheo};

#[test]
fn a_run_is_asked_how_it_stands_and_told_to_stop() {
    let instance = Instance::start(&["--lanes", "2"]);
    let ask = || json(&instance.ask(&["status", "--json"]));
    let mut status = ask();
    // Until the first packet has come.
    while status["received"] == 0 {
        status = ask();
    }
    assert_eq!(status["devices"][0]["device"], "wire");
    assert_eq!(status["lanes"].as_array().unwrap().len(), 2);
    let text = instance.ask(&["status"]);
    assert!(text.contains("packets") && text.contains("device    wire:"), "{text}");
    let path = instance.socket();
    let summary = instance.stop();
    assert_eq!(summary["invariants"], "ok");
    assert!(summary["received"].as_u64() >= status["received"].as_u64());
    assert!(!path.exists(), "the socket goes with the run");
}

#[test]
fn every_signal_that_ends_a_run_lets_packets_through_and_prints_the_summary() {
    for signal in [Signal::TERM, Signal::QUIT, Signal::INT] {
        let instance = Instance::start(&[]);
        let path = instance.socket();
        let summary = instance.end_by(&[signal]);
        assert_eq!(summary["invariants"], "ok", "{signal:?}");
        assert!(!path.exists(), "the socket goes with the run that {signal:?} ends");
    }
}

#[test]
fn an_instance_that_is_told_to_stop_is_not_cut_off_by_one_signal() {
    // As a service manager does it: first `rheo stop`, then SIGTERM at once.
    let instance = Instance::start(&[]);
    instance.ask(&["stop"]);
    let summary = instance.end_by(&[Signal::TERM]);
    assert_eq!(summary["invariants"], "ok");
}

#[test]
fn one_screen_shows_lanes_and_devices() {
    let instance = Instance::start(&["--lanes", "2"]);
    let screen = instance.ask(&["top", "--once", "--interval", "200ms"]);
    for part in ["rheo up", "packets/s", "drops per second", "wire"] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    assert!(instance.refused(&["top", "--interval", "1ms"]).contains("shorter than 100ms"));
    assert_eq!(instance.stop()["invariants"], "ok");
}

#[test]
fn a_run_on_trial_ends_by_itself_unless_it_is_kept() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_rheo"))
        .arg("run")
        .arg(crate::instance::demo())
        .args(["--for", "1s"])
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--control PATH"), "{errors}");

    let trial = Instance::start(&["--for", "1h"]);
    trial.ask(&["keep"]);
    assert!(trial.ask(&["status"]).contains("packets"));
    assert_eq!(trial.stop()["invariants"], "ok");

    // It may be over before anybody could ask it.
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_rheo"))
        .arg("run")
        .arg(crate::instance::demo())
        .args(["--json", "--duration", "3600s", "--for", "1s", "--control"])
        .arg(folder.path().join("x.sock"))
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("nobody has confirmed the run within 1s"), "{errors}");
    let summary = String::from_utf8(output.stdout).unwrap();
    assert_eq!(json(summary.lines().last().unwrap())["invariants"], "ok");
}

#[test]
fn a_rewritten_table_leads_packets_to_other_lanes_and_they_are_handed_to_their_owners() {
    let instance = Instance::start(&["--lanes", "2"]);
    let table = json(&instance.ask(&["table", "show", "--device", "wire", "--json"]));
    let entries: Vec<_> = table["entries"].as_array().unwrap().clone();
    assert_eq!(entries.len(), 128);
    assert!(entries.iter().enumerate().all(|(bucket, lane)| lane == bucket % 2));

    let shuffle = ["table", "shuffle", "--device", "wire", "--times", "50", "--seed", "3"];
    let shuffled = instance.ask_patiently(&shuffle);
    assert!(shuffled.starts_with("wire: 128 entries, rewritten 50 times"), "{shuffled}");

    // Every bucket to the lane that does not own its shard: now all packets are handed over.
    let swapped: Vec<_> = (0..128).map(|bucket| ((bucket + 1) % 2).to_string()).collect();
    let mut arguments = vec!["table", "set", "--device", "wire"];
    arguments.extend(swapped.iter().map(String::as_str));
    instance.ask_patiently(&arguments);
    // Packets that lanes have received, and those of them that they have handed over, or would have if there had been room.
    let handoffs = |instance: &Instance| {
        let status = json(&instance.ask(&["status", "--json"]));
        let lanes = status["lanes"].as_array().unwrap().iter();
        let received: u64 = lanes.map(|lane| lane["packets"].as_u64().unwrap()).sum();
        let refused = status["dropped"]["handoff_full"].as_u64().unwrap_or(0);
        (received, status["handoff"].as_u64().unwrap() + refused)
    };
    // What the queues held by then comes first, and is more the busier the machine is.
    let mut shares = Vec::new();
    while shares.last().is_none_or(|share| *share <= 0.8) {
        assert!(shares.len() < 50, "of each 10,000 packets so many were handed over: {shares:?}");
        let (received, handed) = handoffs(&instance);
        let mut later = handoffs(&instance);
        while later.0 < received + 10_000 {
            later = handoffs(&instance);
        }
        shares.push((later.1 - handed) as f64 / (later.0 - received) as f64);
    }
    let summary = instance.stop();
    assert_eq!(summary["invariants"], "ok");
}

#[test]
fn a_program_that_has_said_all_it_has_to_say_is_still_answered() {
    let instance = Instance::start(&[]);
    let request = r#"{"command":"table","device":"wire","shuffle":{"times":5,"pause_ms":20}}"#;
    let ask = |_| {
        let mut stream = UnixStream::connect(instance.socket()).unwrap();
        writeln!(stream, "{request}").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = (0..24).map(ask).find(|answer| !answer.contains(GAVE_UP)).expect("lanes run");
    assert_eq!(json(&answer)["rewrites"], 5, "{answer}");
    instance.stop();
}

#[test]
fn what_cannot_be_done_is_told_with_the_names_there_are() {
    let instance = Instance::start(&[]);
    let refused = instance.refused(&["table", "show", "--device", "lan"]);
    assert!(refused.contains("there is no device `lan`; the devices are wire"), "{refused}");
    let refused = instance.refused(&["table", "set", "--device", "wire", "0"]);
    assert!(refused.contains("the table has 128 entries, not 1"), "{refused}");
    let refused = instance.refused(&["backends", "set", "web", "10.0.0.1", "down"]);
    assert!(refused.contains("no load balancer"), "{refused}");
    // A second instance does not take the first one's socket.
    let second = instance.second();
    assert!(second.contains("another instance listens at the control socket"), "{second}");
    instance.stop();
}

#[test]
fn a_crashed_instance_leaves_a_socket_that_the_next_one_replaces() {
    let instance = Instance::start(&[]);
    let path = instance.socket();
    let folder = instance.kill();
    assert!(path.exists());
    let refused = crate::instance::refused_at(&path, &["status"]);
    assert!(refused.contains("it has ended without removing its socket"), "{refused}");
    let instance = Instance::start_in(folder, &[]);
    assert!(instance.ask(&["status"]).contains("packets"));
    instance.stop();
    assert!(!path.exists());
}

#[test]
fn a_backend_is_taken_out_of_service_and_back_in() {
    let folder = tempfile::tempdir().unwrap();
    let config = lb_config(folder.path());
    let instance = Instance::start_with(&config, folder, &[]);
    let said = instance.ask_patiently(&["backends", "set", "web", "10.1.0.2", "down"]);
    assert!(said.starts_with("web 10.1.0.2 is down now; "), "{said}");
    let status = json(&instance.ask(&["status", "--json"]));
    let health: Vec<_> = status["backends"].as_array().unwrap().iter().collect();
    assert_eq!(health.len(), 3);
    assert_eq!(health[1]["health"], "down");
    // The command of the release before.
    let old = rheo(&instance.socket(), &["backend", "web", "10.1.0.2", "draining"]);
    let note = String::from_utf8(old.stderr).unwrap();
    assert!(note.starts_with("note: `rheo backend` is `rheo backends set` now"), "{note}");
    instance.ask_patiently(&["backends", "set", "web", "10.1.0.2", "draining"]);
    let listed = json_rows(&instance.ask(&["backends", "--json"]));
    let shown: Vec<_> = listed
        .iter()
        .map(|line| ["backend", "health", "set_by"].map(|key| line[key].as_str().unwrap()))
        .collect();
    assert_eq!(
        shown,
        [
            ["10.1.0.1", "up", "configuration"],
            ["10.1.0.2", "draining", "operator"],
            ["10.1.0.3", "up", "configuration"],
        ]
    );
    assert!(instance.ask(&["backends", "--sort", "backend,desc"]).contains("10.200.0.1  TCP"));
    let text = instance.ask(&["status"]);
    assert!(text.contains("backend   web 10.1.0.2 draining"), "{text}");
    let refused = instance.refused(&["backends", "set", "web", "10.1.0.9", "up"]);
    assert!(refused.contains("its backends are 10.1.0.1, 10.1.0.2, 10.1.0.3"), "{refused}");
    instance.stop();
}

/// A capture of TCP connections to a load balancer's address, opened at these milliseconds; the number of each is in
/// the client's address.
fn connections(times: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let words = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1];
    let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    for (number, time) in (0_u32..).zip(times) {
        let [_, _, high, low] = number.to_be_bytes();
        let mut frame = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0].to_vec();
        frame.extend([0x45, 0, 0, 40, 0, 1, 0, 0, 64, 6, 0, 0, 198, 18, high, low, 10, 200, 0, 1]);
        frame.extend([4, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0, 0, 0, 0]);
        let record = [time / 1_000, time % 1_000 * 1_000, 54, 54];
        file.extend(record.into_iter().flat_map(u32::to_le_bytes));
        file.extend(frame);
    }
    file
}

/// Two lanes of a load balancer before connections opened at these milliseconds, and the capture they write.
fn balance(files: &Path, times: impl IntoIterator<Item = u32>) -> (Instance, PathBuf) {
    let [input, output] = ["in.pcap", "out.pcap"].map(|name| files.join(name));
    fs::write(&input, connections(times)).unwrap();
    let device = format!(
        "kind = \"pcap\"\npace = \"recorded\"\ninput = \"{}\"\noutput = \"{}\"",
        input.display(),
        output.display()
    );
    let config = lb_config_with(files, &device);
    let folder = tempfile::tempdir().unwrap();
    (Instance::start_with(&config, folder, &["--lanes", "2"]), output)
}

/// How many connections have been opened.
fn opened(instance: &Instance) -> u32 {
    let status = json(&instance.ask(&["status", "--json"]));
    status["devices"][0]["arrived"].as_u64().unwrap() as u32
}

fn wait_for_connections(instance: &Instance, count: u32) {
    while opened(instance) < count {
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn lanes_that_do_not_apply_a_change_are_named() {
    let files = tempfile::tempdir().unwrap();
    // Captures carry the time: after 100 connections it stands still, and with it the lanes' regular turns.
    let (instance, _) = balance(files.path(), (0..100).chain([900_000]));
    wait_for_connections(&instance, 100);
    let refused = instance.refused(&["backends", "set", "web", "10.1.0.2", "draining"]);
    assert!(refused.contains("`10.1.0.2` of `web` is set to draining, but after 5 s"), "{refused}");
    assert!(refused.contains("lane 0, lane 1 ("), "{refused}");
    let text = instance.ask(&["status"]);
    assert!(text.contains("backend   web 10.1.0.2 draining"), "{text}");
    instance.stop();
}

#[test]
fn no_connection_goes_to_a_backend_that_is_said_to_be_draining() {
    let files = tempfile::tempdir().unwrap();
    // For some minutes, however long other things take meanwhile.
    let (instance, output) = balance(files.path(), (0..60_000).map(|number| 6 * number));
    // Until as many have been led to a backend.
    while json(&instance.ask(&["status", "--json"]))["sent"].as_u64().unwrap() < 200 {
        thread::sleep(Duration::from_millis(20));
    }
    let said = instance.ask_patiently(&["backends", "set", "web", "10.1.0.2", "draining"]);
    assert!(said.starts_with("web 10.1.0.2 is draining now; "), "{said}");
    // All connections with a lower number were opened before, and all others after.
    let drained = opened(&instance);
    wait_for_connections(&instance, drained + 500);
    assert_eq!(instance.stop()["invariants"], "ok");

    let mut reader = CaptureReader::new(fs::File::open(&output).unwrap()).unwrap();
    let (mut before, mut after) = (0, 0);
    while let Some(record) = reader.next_record().unwrap() {
        let number = u32::from(record.bytes[28]) << 8 | u32::from(record.bytes[29]);
        if record.bytes[30..34] == [10, 1, 0, 2] {
            if number < drained { before += 1 } else { after += 1 }
        }
    }
    assert!(before > 0, "connections went there as long as it was up");
    assert_eq!(after, 0, "connections to it that were opened after the command had said so");
}
