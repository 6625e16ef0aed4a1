//! The log of a running instance: levels, forms, and a reader that stalls.
//!
//! Timed: sleep, clock, processes, devices, sockets.

use std::io::{PipeReader, PipeWriter, pipe, read_to_string};
use std::process::{Command, ExitStatus, Output, Stdio};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl, fstat};
use serde_json::Value;

use crate::instance::{Instance, demo, json};

/// A short run of the demo, with a line of metrics every tenth of a second at debug.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let config = std::fs::read_to_string(demo()).unwrap();
    let config = config.replace("interval = \"1s\"", "interval = \"100ms\"");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demo.toml");
    std::fs::write(&path, config).unwrap();
    Command::new(env!("CARGO_BIN_EXE_rheo"))
        .arg("run")
        .arg(&path)
        .args(["--device", "wire=sim:20kpps", "--duration", "500ms", "--json"])
        .args(["--http", "127.0.0.1:0"])
        .args(arguments)
        .env_remove("RHEO_LOG")
        .env_remove("JOURNAL_STREAM")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn log(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_run_without_a_terminal_logs_changes_and_no_metrics() {
    let log = log(&run(&[], &[]));
    assert!(log.contains(" note: ") && log.contains("metrics at http://127.0.0.1:"), "{log}");
    assert!(log.contains('Z') && !log.contains("Mpps"), "{log}");
}

#[test]
fn levels_come_from_the_flag_before_the_variable() {
    let variable = ("RHEO_LOG", "off,progress=debug");
    let log = log(&run(&[], &[variable]));
    assert!(log.lines().count() >= 2 && log.lines().all(|line| line.contains("Mpps")), "{log}");
    assert_eq!(self::log(&run(&["--log", "error"], &[variable])), "");
    let refused = run(&[], &[("RHEO_LOG", "link=debug")]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("RHEO_LOG: `link` is no target (did you mean `links`?)"), "{message}");
}

#[test]
fn lines_of_json_have_their_level_and_target() {
    let log = log(&run(&["--log-format", "json", "--log", "debug"], &[]));
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON on every line")).collect();
    let has = |target: &str, level: &str, words: &str| {
        lines.iter().any(|line| {
            let message = line["message"].as_str().unwrap_or_default();
            line["target"] == target && line["level"] == level && message.contains(words)
        })
    };
    assert!(has("observe", "info", "metrics at"), "{log}");
    assert!(has("progress", "debug", "Mpps"), "{log}");
}

#[test]
fn the_journal_gets_priorities_where_it_reads_standard_error() {
    let (reader, writer) = pipe().unwrap();
    let file = fstat(&writer).unwrap();
    let stream = format!("{}:{}", file.st_dev, file.st_ino);
    let (output, log) = with_errors(reader, writer, &stream);
    assert!(output.success(), "{log}");
    assert!(log.starts_with("<6>") && log.contains("metrics at http://"), "{log}");
    assert!(log.lines().all(|line| line.starts_with('<')), "{log}");
}

fn with_errors(reader: PipeReader, writer: PipeWriter, stream: &str) -> (ExitStatus, String) {
    let status = Command::new(env!("CARGO_BIN_EXE_rheo"))
        .arg("run")
        .arg(demo())
        .args(["--device", "wire=sim:20kpps", "--duration", "100ms", "--json"])
        .args(["--http", "127.0.0.1:0"])
        .env("JOURNAL_STREAM", stream)
        .stdout(Stdio::null())
        .stderr(writer)
        .status()
        .unwrap();
    (status, read_to_string(reader).unwrap())
}

#[test]
fn a_reader_that_stalls_keeps_no_run_from_answering_and_ending() {
    let (reader, writer) = pipe().unwrap();
    // Full from the start.
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    while rustix::io::write(&writer, &[b'x'; 4_096]).is_ok() {}
    fcntl_setfl(&writer, flags).unwrap();
    let instance = Instance::start_logging(&["--log", "trace"], writer.into());
    assert!(instance.ask(&["status"]).contains("received"));
    let summary = instance.stop();
    assert_eq!(summary["invariants"], "ok");
    drop(reader);
}

#[test]
fn requests_that_change_something_are_logged_with_their_user() {
    let (reader, writer) = pipe().unwrap();
    let instance = Instance::start_logging(&["--log-format", "json"], writer.into());
    instance.ask(&["status"]);
    instance.stop();
    let log = read_to_string(reader).unwrap();
    let requests: Vec<Value> =
        log.lines().map(json).filter(|line| line["target"] == "control").collect();
    let [stop] = &requests[..] else { panic!("one request changes something: {log}") };
    assert_eq!(stop["message"], "request: stop");
    assert_eq!(stop["user"], rustix::process::geteuid().as_raw());
    assert!(stop["process"].as_u64() > Some(0), "{stop}");
}
