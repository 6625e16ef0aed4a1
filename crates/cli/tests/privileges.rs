//! What the threads of a running instance may do.
//!
//! Timed: sleep, clock, processes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, Instant};

use crate::instance::Instance;

/// The status of every thread, by its name.
fn threads(instance: &Instance) -> BTreeMap<String, String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", instance.pid())).unwrap();
    let read = |task: std::io::Result<fs::DirEntry>| {
        fs::read_to_string(task.unwrap().path().join("status"))
    };
    let named = tasks.filter_map(|task| {
        let status = read(task).ok()?;
        let name = status.lines().next()?.strip_prefix("Name:")?.trim().to_owned();
        Some((name, status))
    });
    named.collect()
}

/// The fields of a status that begin with this word.
fn field<'a>(status: &'a str, name: &str) -> Vec<&'a str> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name} in {status}")).split_whitespace().collect()
}

/// A monitor with a log, fed by a NIC with a thread of its own: threads from before and after devices are
/// opened.
fn config(run: &str) -> String {
    format!(
        "[run]\n{run}\n[workers]\nlanes = 2\n[[device]]\nname = \"wire\"\nkind = \"sim\"\nrate = \"1kpps\"\n\
         driver = \"threaded\"\ninside = \"10.0.0.0/8\"\n[chain]\nfunctions = [\"monitor\"]\n\
         [function.monitor]\nlog = \"LOG\"\n"
    )
}

fn start(run: &str) -> Instance {
    let folder = tempfile::tempdir().unwrap();
    // Others than root come here, too.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let log = folder.path().join("flows.jsonl");
    let path = folder.path().join("config.toml");
    fs::write(&path, config(run).replace("LOG", log.to_str().unwrap())).unwrap();
    Instance::start_with(&path, folder, &[])
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| field(&status, "Uid")[1] == "0")
}

/// Holds every thread to what it may have left.
fn check(instance: &Instance, user: &str, group: &str) {
    const NAMES: [&str; 6] =
        ["rheo", "rheo-log", "nic wire", "rheo-worker-0", "rheo-worker-1", "rheo-control"];
    // A thread has the name of the one that starts it until it has run for a moment, and what it gives up last it may
    // have a moment longer than all else.
    let deadline = Instant::now() + Duration::from_secs(120);
    let threads = loop {
        let threads = threads(instance);
        let are_there = NAMES.iter().all(|name| threads.contains_key(*name));
        let is_done = |status: &String| field(status, "NoNewPrivs") == ["1"];
        if are_there && threads.values().all(is_done) {
            break threads;
        }
        assert!(Instant::now() < deadline, "not {NAMES:?} without privileges: {threads:?}");
        thread::sleep(Duration::from_millis(5));
    };
    for (name, status) in &threads {
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            let none = field(status, set)[0].bytes().all(|digit| digit == b'0');
            assert!(none, "{set} of {name}:\n{status}");
        }
        assert_eq!(field(status, "Uid"), [user; 4], "{name}");
        assert_eq!(field(status, "Gid"), [group; 4], "{name}");
        if is_root() {
            let none = field(status, "CapBnd")[0].bytes().all(|digit| digit == b'0');
            assert!(none, "CapBnd of {name}:\n{status}");
        }
    }
}

#[test]
fn no_thread_keeps_a_capability() {
    let own = fs::read_to_string("/proc/self/status").unwrap();
    let instance = start("");
    check(&instance, field(&own, "Uid")[1], field(&own, "Gid")[1]);
    assert_eq!(instance.stop()["invariants"], "ok");
    if !is_root() {
        println!("not run in full: only root has capabilities to lose");
    }
}

#[test]
fn every_thread_becomes_the_user_of_the_configuration() {
    if !is_root() {
        println!("not run: only root can become another user");
        return;
    }
    let instance = start("user = \"65534\"\ngroup = \"65533\"");
    check(&instance, "65534", "65533");
    for (name, status) in threads(&instance) {
        assert_eq!(field(&status, "Groups"), [""; 0], "{name} is in other groups");
    }
    // The user that runs it can connect.
    let socket = fs::metadata(instance.socket()).unwrap();
    assert_eq!(socket.permissions().mode() & 0o777, 0o600);
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&socket), 65_534);
    assert_eq!(instance.stop()["invariants"], "ok");
}
