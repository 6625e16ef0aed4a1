//! What is printed has no byte that a terminal acts on, whatever names, files and values have.
//!
//! Timed: threads, processes, sockets.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

/// Sets a terminal's title, and asks it to clear the screen by the one-byte form of CSI.
const HOSTILE: &str = "a\u{1b}]0;owned\u{7}\u{9b}2Jb";

fn rheo(folder: &Path, arguments: &[&str]) -> Output {
    let arguments = arguments.iter().map(OsStr::new);
    Command::new(env!("CARGO_BIN_EXE_rheo")).args(arguments).current_dir(folder).output().unwrap()
}

/// The printed text, which must show the hostile name and not act on a terminal.
fn shown(output: &Output) -> String {
    let bytes = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8(bytes).unwrap();
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!text.contains(acts), "{text:?}");
    text
}

#[test]
fn names_of_files_devices_and_sockets_do_not_act_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let device = "[[device]]\nname = \"wire\"\nkind = \"sim\"\nrate = \"1Mpps\"\ninside = [\"10.0.0.0/8\"]\n";
    let config = format!("chain = {{ functions = [] }}\n{device}");
    fs::write(folder.join("x.toml"), &config).unwrap();
    let named = format!("{HOSTILE}.toml");
    fs::write(folder.join(&named), "[chain]\nfunctions = 3\n").unwrap();
    fs::write(folder.join("raw.toml"), format!("name = \"{HOSTILE}\"\n")).unwrap();
    let value = config.replace("\"wire\"", r#""a\u001b]0;owned\u0007b""#);
    fs::write(folder.join("value.toml"), value).unwrap();
    let (capture, socket) = (format!("{HOSTILE}.pcap"), format!("{HOSTILE}.sock"));
    let flag = format!("{HOSTILE}=sim:1Mpps");
    for arguments in [
        &["check", "x.toml", "--input", &capture][..],
        &["run", "x.toml", "--input", &capture],
        &["run", "x.toml", "--output", &capture],
        &["check", "x.toml", "--device", &flag],
        &["check", &named],
        &["check", &named, "--json"],
        &["check", "raw.toml"],
        &["check", "raw.toml", "--json"],
        &["check", "value.toml"],
        &["check", "no such file \u{1b}[2J.toml"],
        &["status", "--control", &socket],
        &["explain", "x.toml", "--input", &capture],
        &["gen", "--input", &capture],
        &["run", "x.toml", "--duration", HOSTILE],
        &[HOSTILE],
        &["nat-host", HOSTILE],
        &["bench", HOSTILE],
    ] {
        let output = rheo(folder, arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        assert!(!shown(&output).is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_reply_at_a_control_socket_does_not_act_on_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("x.sock")).unwrap();
    let instance = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        reader.read_line(&mut String::new()).unwrap();
        let reply = serde_json::json!({ "reply": "error", "message": HOSTILE });
        writeln!(reader.get_mut(), "{reply}").unwrap();
    });
    let output = rheo(folder.path(), &["status", "--control", "x.sock"]);
    let text = shown(&output);
    assert!(text.contains(r"a\u001b]0;owned\u0007\u009b2Jb"), "{text}");
    instance.join().unwrap();
}
