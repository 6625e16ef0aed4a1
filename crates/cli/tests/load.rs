//! `rheo load`, and `rheo serve work --calibrate`.
//!
//! Timed: processes, sockets, threads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

/// A server that echoes, and says when it has got something.
fn echo() -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (say, heard) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, say) = (stream.unwrap(), say.clone());
            thread::spawn(move || {
                let mut bytes = [0; 4_096];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    let _ = say.send(());
                    if stream.write_all(&bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (address, heard)
}

fn command(address: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo"));
    command.args(["load", "--address", &address.to_string(), "--protocol", "echo"]);
    command.args(["--rate", "500", "--connections", "4", "--no-self-check"]).args(arguments);
    command
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.lines().last().unwrap_or_default())
        .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_load_is_reported_as_json_tsv_and_a_log() {
    let (address, _heard) = echo();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("latencies.hlog");
    // Longer than a busy machine keeps a thread waiting.
    let runs = ["--runs", "2", "--duration", "2s", "--hdr", log.to_str().unwrap()];
    let output = command(address, &runs).args(["--json", "--wait", "20s"]).output().unwrap();
    let report = json(&output);
    let count = |key: &str| report[key].as_u64().unwrap();
    let due = count("replies") + count("unanswered") + count("lost") + count("not_sent");
    let is_offered = count("not_sent") * 100 <= due;
    assert_eq!(output.status.code(), Some(if is_offered { 0 } else { 3 }), "{report}");
    for key in ["offered", "achieved", "p50_us", "p99_us", "p999_us", "p9999_us", "ci95"] {
        assert!(report[key].is_f64(), "{key}: {report}");
    }
    assert_eq!(report["runs"], 2, "{report}");
    assert!(report["floor_us"].is_null() && report["unanswered"] == 0, "{report}");
    assert_eq!(report["classes"][0]["replies"], report["replies"]);
    assert!(report["classes"][0]["slowdown_p999"].is_null(), "{report}");
    assert!(std::fs::read_to_string(&log).unwrap().matches("Tag=class-0").count() == 2);
    let record = folder.path().join("loads.jsonl");
    let recorded = ["--record", record.to_str().unwrap(), "--scheduler", "inline-ws", "--tsv"];
    let output = command(address, &runs[..4]).args(recorded).output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let columns = |line: &str| line.split('\t').count();
    assert_eq!(table.lines().map(columns).collect::<Vec<_>>(), [15; 3], "{table}");
    let lines: Vec<Value> = std::fs::read_to_string(&record)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [header, row] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(header["command"].as_str().is_some_and(|command| command.starts_with("rheo load")));
    assert_eq!((&row["scheduler"], &row["rate"]), (&"inline-ws".into(), &500.0.into()), "{row}");
}

#[test]
fn an_interrupt_ends_early_and_reports_what_was_measured() {
    let (address, heard) = echo();
    let mut command = command(address, &["--duration", "1h", "--json", "--workers", "3"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    heard.recv().unwrap();
    let pid = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let report = json(&output);
    assert_eq!(report["warm_up_only"], true, "{report}");
    assert_eq!(report["interrupted"], true, "{report}");
    assert_eq!(report["connections"], 12, "4 for each worker: {report}");
    assert!(report["replies"].as_u64() >= Some(1), "{report}");
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    for (arguments, reason) in [
        (["--spread", "even"], "--queues"),
        // 4 for each worker.
        (["--workers", "20000"], "1..=1024"),
        (["--duration", "1ms"], "10ms"),
        (["--warm-up", "20s"], "--warm-up"),
        (["--class", "a=0.5:x"], "add up to 0.5"),
        (["--class", "a"], "NAME=SHARE:WHAT"),
        (["--hdr", "/proc/none"], "/proc/none"),
        (["--size", "1"], "8 to"),
        (["--arrivals", "poisson"], "exponential"),
        (["--transport", "af_xdp"], "linux"),
        (["--seed", "2"], "refused"),
    ] {
        let output = command(address, &arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(reason), "{arguments:?}: {said}");
    }
}

#[test]
fn counts_of_operations_are_printed_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let calibrate = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rheo"));
        command.args(["serve", "work", "--calibrate"]).args(arguments);
        command.env("XDG_CACHE_HOME", folder.path()).output().unwrap()
    };
    let output = calibrate(&["--json", "--service", "0.5:1us,0.5:20us"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        rows.iter().map(|row| row["target_ns"].as_u64()).collect::<Vec<_>>(),
        [Some(1_000), Some(20_000)]
    );
    for row in &rows {
        assert_eq!(row["work"], "roots");
        assert!(row["operations"].as_u64() >= Some(1), "{row}");
        assert!(row["measured_ns"].as_f64() > Some(0.0) && row["spread"].is_f64(), "{row}");
    }
    let kept = std::fs::read_to_string(folder.path().join("rheostat/work.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept.as_array().map(Vec::len), Some(2));
    assert_eq!(kept[1]["operations"], rows[1]["operations"]);
    let text = calibrate(&["--work", "chase", "--buffer", "64KiB"]);
    let said = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(said.contains("chase: ") && said.contains("kept in "), "{said}");
    let wrong = calibrate(&["--work", "chase", "--buffer", "1B"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("4KiB"));
}
