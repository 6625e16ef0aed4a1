//! Clients that behave badly, before a server without a run. The commands are tested on running
//! instances in `crates/cli/tests/control.rs`.
//!
//! Timed: threads, sleep, sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rheostat_control::BalanceBoard;
use rheostat_observe::OutputFiles;
use rheostat_observe::control::LONGEST_REQUEST;
use rheostat_run::RunView;
use tempfile::TempDir;

use super::*;
use crate::active_config::ActiveConfig;
use crate::attachment::Trial;
use crate::control::{Instance, MappingPlace};

fn serve() -> (Server, Arc<AtomicBool>, PathBuf, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sock");
    let interrupted = Arc::new(AtomicBool::new(false));
    let instance = Instance {
        view: Arc::new(RunView::empty()),
        interrupted: interrupted.clone(),
        trial: Trial::default(),
        live: Arc::default(),
        reloader: None,
        progress: BalanceBoard::default(),
        functions: Vec::new(),
        objects: None,
        files: OutputFiles::default(),
        in_use: Vec::new(),
        links: Arc::default(),
        network: None,
        followed: None,
        cores: Vec::new(),
        rules: Arc::default(),
        walks: None,
        mappings: MappingPlace::default(),
        service: None,
        config: ActiveConfig::default(),
        events: Arc::default(),
    };
    let server = Server::start(ControlSocket::bind(&path).unwrap(), Arc::new(instance)).unwrap();
    (server, interrupted, path, folder)
}

fn connect(path: &Path) -> UnixStream {
    let stream = UnixStream::connect(path).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream
}

fn ask(stream: &mut UnixStream, line: &str) -> String {
    let mut answer = String::new();
    // A server that refuses may close before it has read.
    let _ = writeln!(stream, "{line}");
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

#[test]
fn one_connection_may_ask_many_things() {
    let (server, interrupted, path, _folder) = serve();
    let mut stream = connect(&path);
    assert!(ask(&mut stream, r#"{"command":"status"}"#).contains(r#""reply":"status""#));
    assert!(ask(&mut stream, "nonsense").contains("not a request"));
    assert!(ask(&mut stream, r#"{"command":"table","device":"lan"}"#).contains("no device `lan`"));
    let backend = r#"{"command":"backend","service":"a","backend":"b","health":"up"}"#;
    assert!(ask(&mut stream, backend).contains("no load balancer"));
    assert!(!interrupted.load(Ordering::Relaxed));
    assert_eq!(ask(&mut stream, r#"{"command":"stop"}"#), "{\"reply\":\"stopping\"}\n");
    assert!(interrupted.load(Ordering::Relaxed));
    drop(server);
    assert!(!path.exists());
    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0, "the conversation is over");
}

#[test]
fn a_line_without_end_is_cut_off() {
    let (_server, _, path, _folder) = serve();
    let mut stream = connect(&path);
    stream.write_all(&vec![b'x'; LONGEST_REQUEST + 1]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("65536 bytes at most"), "{answer}");
}

#[test]
fn silent_clients_take_up_places_until_they_go() {
    let (_server, _, path, _folder) = serve();
    let mut silent: Vec<_> = (0..CLIENTS).map(|_| connect(&path)).collect();
    let mut answer = String::new();
    connect(&path).read_to_string(&mut answer).unwrap();
    assert!(answer.contains("try again later"), "{answer}");
    assert!(ask(&mut silent[3], r#"{"command":"status"}"#).contains("status"));
    silent.clear();
    let served = || {
        thread::sleep(Duration::from_millis(20));
        ask(&mut connect(&path), r#"{"command":"status"}"#).contains(r#""reply":"status""#)
    };
    assert!((0..6_000).any(|_| served()), "the places of clients that left are taken");
}

#[test]
fn a_client_that_does_not_read_does_not_keep_the_run_from_ending() {
    let (server, _, path, _folder) = serve();
    let mut stream = connect(&path);
    stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    // Until neither side's buffer takes more.
    while stream.write_all(b"{\"command\":\"status\"}\n").is_ok() {}
    drop(server);
    assert!(!path.exists());
}
