//! `rheo run --input - --output -`: captures through standard input and output.
//!
//! Timed: threads, processes.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const FORWARD: &str = "chain = { functions = [] }\n[[device]]\nname = \"wire\"\nkind = \"pcap\"\ninside = [\"10.0.0.0/8\", \"fd00::/8\"]\n";

/// A folder with a capture of 2,000 packets of both families, and a configuration that forwards them.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let gen_ = ["gen", "--packets", "2k", "--flows", "100", "--seed", "1", "--output", "in.pcap"];
    let made = command(folder.path(), &gen_).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    fs::write(folder.path().join("x.toml"), FORWARD).unwrap();
    folder
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rheo"));
    command.args(arguments).current_dir(folder);
    command
}

fn shipped(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(name);
    path.to_str().expect("a path of letters").to_owned()
}

/// Runs with this on standard input.
fn piped(folder: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = start(folder, arguments, Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut written = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // A refused input closes the pipe before all of it is written.
            let _ = stdin.write_all(input);
            drop(stdin);
        });
        stdout.read_to_end(&mut written).unwrap();
    });
    let output = child.wait_with_output().unwrap();
    Output { stdout: written, ..output }
}

fn start(folder: &Path, arguments: &[&str], stdout: Stdio) -> Child {
    let mut command = command(folder, arguments);
    command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The summary among the lines of text.
fn summary(text: &[u8]) -> Value {
    let text = String::from_utf8_lossy(text);
    let line = text.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no summary in {text}"))).unwrap()
}

/// A run that waits for packets, of which it has forwarded all that were written so far.
fn waiting(folder: &Path, more: &[&str]) -> Child {
    let arguments = ["run", "x.toml", "--input", "-", "--output", "-", "--json", "--lanes", "1"];
    let mut child = start(folder, &[&arguments[..], more].concat(), Stdio::piped());
    let input = fs::read(folder.join("in.pcap")).unwrap();
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(&input[..100_000]).unwrap();
    stdin.flush().unwrap();
    let stdout = child.stdout.as_mut().unwrap();
    // 32 bytes of each packet are its header in the output; the last packet is cut off.
    let mut forwarded = vec![0; 90_000];
    stdout.read_exact(&mut forwarded).unwrap();
    child
}

#[test]
fn a_pipe_gives_the_bytes_and_the_summary_of_a_file() {
    let folder = folder();
    let folder = folder.path();
    let described = command(folder, &["gen", "--describe", "--json", "--input", "in.pcap"]);
    let described = { described }.output().unwrap();
    let described = summary(&described.stdout);
    assert!(described["ipv6"].as_f64() > Some(0.0), "the capture has packets of IPv6: {described}");
    let input = fs::read(folder.join("in.pcap")).unwrap();
    for name in ["firewall.toml", "monitor.toml", "nat-eim.toml"] {
        let path = shipped(name);
        let run = ["run", &path, "--seed", "1", "--lanes", "1", "--json"];
        let file =
            command(folder, &[&run[..], &["--input", "in.pcap", "--output", "o.pcapng"]].concat());
        let file = { file }.output().unwrap();
        assert!(file.status.success(), "{}", stderr(&file));
        let pipe = piped(folder, &[&run[..], &["--input", "-", "--output", "-"]].concat(), &input);
        assert!(pipe.status.success(), "{}", stderr(&pipe));
        assert!(pipe.stdout == fs::read(folder.join("o.pcapng")).unwrap(), "{name}: other packets");
        let [file, pipe] = [summary(&file.stdout), summary(&pipe.stderr)];
        assert_eq!(file["received"], 2_000);
        for field in ["received", "sent", "dropped", "flows", "functions", "invariants"] {
            assert_eq!(file[field], pipe[field], "{name}: {field}");
        }
    }
}

#[test]
fn pcapng_goes_through_two_runs() {
    let folder = folder();
    let folder = folder.path();
    let run = ["run", "x.toml", "--input", "-", "--output", "-", "--lanes", "2"];
    let once = piped(folder, &run, &fs::read(folder.join("in.pcap")).unwrap());
    assert!(once.status.success(), "{}", stderr(&once));
    let twice = piped(folder, &[&run[..], &["--json"]].concat(), &once.stdout);
    assert_eq!(summary(&twice.stderr)["sent"], 2_000, "{}", stderr(&twice));
    assert_eq!(once.stdout.len(), twice.stdout.len());
}

#[test]
fn a_run_ends_when_the_reader_of_its_output_does() {
    let folder = folder();
    let mut child = waiting(folder.path(), &[]);
    drop(child.stdout.take());
    // The writer of its input stays, and writes on.
    let input = fs::read(folder.path().join("in.pcap")).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&input[100_000..200_000]).unwrap();
    let output = child.wait_with_output().unwrap();
    let summary = summary(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_eq!(summary["incomplete"][0]["file"], "standard output", "{summary}");
    assert_eq!(summary["invariants"], "ok");
    drop(stdin);
}

#[test]
fn a_signal_drains_and_reports_a_run_whose_input_stays_open() {
    let folder = folder();
    for signal in [Signal::INT, Signal::TERM] {
        let mut child = waiting(folder.path(), &[]);
        let stdin = child.stdin.take();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let summary = summary(&output.stderr);
        assert_eq!(summary["received"], summary["sent"], "{summary}");
        assert_ne!(summary["received"], 0);
        drop(stdin);
    }
}

#[test]
fn a_signal_ends_a_run_that_waits_for_its_first_packet() {
    let folder = folder();
    let mut child = start(folder.path(), &["run", "x.toml", "--input", "-"], Stdio::null());
    let stdin = child.stdin.take();
    let status = format!("/proc/{}/status", child.id());
    // SIGTERM is signal 15; before it is caught it would end the process without a word.
    let is_caught = || {
        let status = fs::read_to_string(&status).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << 14 != 0
    };
    while !is_caught() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted before standard input"), "{}", stderr(&output));
    drop(stdin);
}

#[test]
fn input_that_is_no_capture_is_refused_and_a_cut_one_is_counted() {
    let folder = folder();
    let folder = folder.path();
    let run = ["run", "x.toml", "--input", "-", "--json"];
    for (input, part) in [
        (&b"hello world"[..], "cannot read standard input: this is not a pcap or pcapng capture"),
        (b"", "cannot read standard input: the file is empty"),
    ] {
        let output = piped(folder, &run, input);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    let input = fs::read(folder.join("in.pcap")).unwrap();
    let output = piped(folder, &run, &input[..100_000]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("warning: standard input: the capture is cut off"));
    let summary = summary(&output.stdout);
    assert_eq!(summary["dropped"]["malformed"], 1, "{summary}");
}

#[test]
fn generated_packets_go_through_a_pipe_and_are_explained_as_those_of_a_file() {
    let folder = folder();
    let folder = folder.path();
    let generate = ["gen", "--packets", "2k", "--flows", "100", "--seed", "1", "--output"];
    let mut children = ["-", "file.pcapng"].map(|output| {
        start(folder, &[&generate[..], &[output]].concat(), Stdio::piped()).wait_with_output()
    });
    let [piped_out, file] = &mut children;
    let (piped_out, file) = (piped_out.as_ref().unwrap(), file.as_ref().unwrap());
    assert!(piped_out.status.success() && file.status.success(), "{}", stderr(piped_out));
    assert!(piped_out.stdout == fs::read(folder.join("file.pcapng")).unwrap());
    assert_eq!(
        (stderr(piped_out).trim(), file.stdout.as_slice()),
        ("2000 packets", &b"2000 packets\n"[..])
    );

    let explain =
        |input| ["explain", "x.toml", "--seed", "1", "--lanes", "2", "--json", "--input", input];
    let from_pipe = piped(folder, &explain("-"), &piped_out.stdout);
    assert!(from_pipe.status.success(), "{}", stderr(&from_pipe));
    let from_file = command(folder, &explain("file.pcapng")).output().unwrap();
    assert_eq!(summary(&from_pipe.stdout), summary(&from_file.stdout));
}

#[test]
fn generating_ends_when_its_reader_does_or_a_signal_comes() {
    let folder = folder();
    let generate = ["gen", "--packets", "1000M", "--output", "-"];
    let begin = || {
        let mut child = start(folder.path(), &generate, Stdio::piped());
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 100_000]).unwrap();
        child
    };
    let mut unread = begin();
    drop(unread.stdout.take());
    let output = unread.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("error: the capture standard output is incomplete"),
        "{}",
        stderr(&output)
    );

    let interrupted = begin();
    kill_process(Pid::from_child(&interrupted), Signal::INT).unwrap();
    let output = interrupted.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let packets: u64 = stderr(&output).split_once(" packets").unwrap().0.parse().unwrap();
    assert!((1..1_000_000_000).contains(&packets), "{packets}");
}

#[test]
fn a_signal_ends_the_input_of_an_explanation() {
    let folder = folder();
    let arguments = ["explain", "x.toml", "--json", "--input", "-"];
    let mut child = start(folder.path(), &arguments, Stdio::piped());
    let mut stdin = child.stdin.take().unwrap();
    let input = fs::read(folder.path().join("in.pcap")).unwrap();
    assert!(input.len() > 200_000, "more than a pipe holds");
    // Once all is written, some of it was read, and signals are watched.
    stdin.write_all(&input).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(summary(&output.stdout).is_object());
    drop(stdin);
}

#[test]
fn terminals_and_two_readers_are_refused() {
    let folder = folder();
    let folder = folder.path();
    // Either end of a terminal is one.
    let terminal = || OpenOptions::new().read(true).write(true).open("/dev/ptmx").unwrap();
    let refused = |arguments: &[&str], input: File, output: Stdio| {
        let mut command = command(folder, arguments);
        let output = command.stdin(input).stdout(output).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let nothing = || File::open("/dev/null").unwrap();
    let said = refused(&["run", "x.toml", "--input", "-"], terminal(), Stdio::null());
    assert!(said.contains("standard input: it is a terminal"), "{said}");
    let output = ["run", "x.toml", "--input", "in.pcap", "--output", "-"];
    let said = refused(&output, nothing(), terminal().into());
    assert!(said.contains("standard output: it is a terminal"), "{said}");
    let two = shipped("firewall-two-ports.toml");
    let both = ["run", &two, "--device", "lan=pcap:-", "--device", "wan=pcap:-"];
    let said = refused(&both, nothing(), Stdio::null());
    assert!(said.contains("two devices would read standard input"), "{said}");
}
