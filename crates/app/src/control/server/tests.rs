//! Clients that behave badly, before a server without a run. The commands are tested on running
//! instances in `crates/cli/tests/control.rs`.
//!
//! Timed: threads, sleep, sockets.

mod hostile;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rheostat_control::BalanceBoard;
use rheostat_observe::OutputFiles;
use rheostat_observe::control::LONGEST_REQUEST;
use rheostat_run::RunView;
use tempfile::TempDir;

use super::*;
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
        config: Arc::default(),
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

/// An instance whose answers go on for 4 GiB, and what it could send of them.
#[derive(Default)]
struct Endless(AtomicU64, EventLog);

impl Answers for Endless {
    fn answer(&self, _: Request, peer: &mut Peer) -> io::Result<()> {
        let reply = Reply::Error { message: "x".repeat(64 << 10) };
        let line = control::line(&reply).len() as u64;
        for _ in 0..(4_u64 << 30) / line {
            peer.send(&reply)?;
            self.0.fetch_add(line, Ordering::Relaxed);
        }
        Ok(())
    }

    fn snapshot(&self, _: Depth) -> Snapshot {
        unreachable!("nobody scrapes it")
    }

    fn config(&self) -> String {
        String::new()
    }

    fn events(&self) -> &EventLog {
        &self.1
    }

    fn view(&self) -> Option<&Arc<RunView>> {
        None
    }
}

#[test]
fn of_4_gib_that_nobody_reads_the_buffers_of_a_socket_are_all_that_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.sock");
    let instance = Arc::new(Endless::default());
    let server = Server::start(ControlSocket::bind(&path).unwrap(), instance.clone()).unwrap();
    let mut stalled = connect(&path);
    stalled.write_all(b"{\"command\":\"status\"}\n").unwrap();
    while instance.0.load(Ordering::Relaxed) == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    // Others are answered meanwhile, and read what they want of theirs.
    assert!(ask(&mut connect(&path), r#"{"command":"status"}"#).contains("xxx"));
    drop(server);
    let sent = instance.0.load(Ordering::Relaxed);
    assert!(sent < 64 << 20, "{sent} bytes were sent to clients that do not read");
}

#[test]
fn of_a_hundred_listeners_some_are_served_and_the_others_are_refused() {
    let (server, _, path, _folder) = serve();
    let mut listeners: Vec<_> = (0..100).map(|_| connect(&path)).collect();
    let mut answers = listeners.iter_mut().map(|listener| ask(listener, r#"{"command":"status"}"#));
    let (served, refused): (Vec<_>, Vec<_>) =
        answers.by_ref().partition(|answer| answer.contains(r#""reply":"status""#));
    assert_eq!(served.len(), CLIENTS);
    assert!(refused.iter().all(|answer| answer.contains("try again later")), "{refused:?}");
    drop(answers);
    drop(server);
    assert!(!path.exists());
}

#[test]
fn a_flood_of_requests_keeps_no_other_client_from_its_answer() {
    let (server, _, path, _folder) = serve();
    let over = Arc::new(AtomicBool::new(false));
    let floods: Vec<_> = (0..CLIENTS - 1)
        .map(|_| {
            let (over, mut stream) = (over.clone(), connect(&path));
            stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
            thread::spawn(move || {
                // Nothing of the answers is read.
                while !over.load(Ordering::Relaxed) {
                    let _ = stream.write(b"{\"command\":\"status\"}\n");
                }
            })
        })
        .collect();
    let mut client = connect(&path);
    for _ in 0..100 {
        assert!(ask(&mut client, r#"{"command":"status"}"#).contains(r#""reply":"status""#));
    }
    over.store(true, Ordering::Relaxed);
    floods.into_iter().for_each(|flood| flood.join().unwrap());
    drop(server);
    assert!(!path.exists());
}
