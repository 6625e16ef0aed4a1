//! Another configuration for a running instance: what changes, what is refused, and what SIGHUP does. No root is needed: the device is
//! the simulated NIC.
//!
//! Timed: threads, sleep, clock, processes, sockets.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::http::{address, ask};
use crate::instance::{GAVE_UP, Instance, json, lb_config, rheo};

/// How long to wait for what happens at once on a machine that has nothing else to do.
const TIMEOUT: Duration = Duration::from_secs(120);

const FIREWALL: &str = r#"
[[device]]
name = "wire"
kind = "sim"
rate = "20kpps"
inside = ["10.0.0.0/8"]

[chain]
functions = ["firewall"]

[[function.firewall.rule]]
from = "inside"
action = "allow"
"#;

/// Denies all that the file before admits.
const DENY: &str =
    "\n[[function.firewall.rule]]\nfrom = \"inside\"\naction = \"deny\"\nprotocol = \"udp\"\n";

fn write(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("x.toml");
    fs::write(&path, text).unwrap();
    path
}

fn start(text: &str, flags: &[&str]) -> (Instance, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), text);
    (Instance::start_with(&path, folder, flags), path)
}

fn texts(keys: &Value) -> Vec<&str> {
    keys.as_array().into_iter().flatten().filter_map(|key| key["text"].as_str()).collect()
}

/// Waits until a condition holds.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn status(instance: &Instance) -> Value {
    json(&instance.ask(&["status", "--json"]))
}

#[test]
fn changes_are_in_force_when_the_command_returns_and_are_named() {
    let (instance, path) = start(FIREWALL, &[]);
    assert_eq!(status(&instance)["config"]["generation"], 0);
    let other = FIREWALL.replace("\naction = \"allow\"", "\naction = \"deny\"");
    let other = format!(
        "{other}{DENY}[function.firewall.timeouts]\nudp = \"90s\"\n[run]\nduration = \"2h\"\n"
    );
    fs::write(&path, &other).unwrap();
    let trial = json(&instance.ask(&["reload", "--dry-run", "--json"]));
    assert_eq!((&trial["dry_run"], &trial["generation"]), (&true.into(), &0.into()));
    assert_eq!(status(&instance)["config"]["reloads"], serde_json::json!({}));
    let reloaded = json(&instance.ask_patiently(&["reload", "--json"]));
    let changes = texts(&reloaded["changes"]);
    assert_eq!(changes, texts(&trial["changes"]));
    let timeout = "firewall.timeouts.udp: ";
    assert!(changes[0].starts_with("firewall: 2 rules added, 1 removed"), "{changes:?}");
    assert!(changes[1].starts_with(timeout) && changes[1].ends_with(" -> 90s"), "{changes:?}");
    // The duration is that of a flag.
    assert_eq!(texts(&reloaded["hidden"]), ["run.duration: none -> 2h"]);
    // In force: new flows are denied.
    let denied = |status: &Value| status["dropped"]["denied"].as_u64().unwrap_or_default();
    let before = denied(&status(&instance));
    wait_until("flows are denied", || denied(&status(&instance)) > before);
    // Behind what flags hide, nothing differs.
    let text = instance.ask_patiently(&["reload"]);
    assert!(text.contains("nothing has changed"), "{text}");
    let config = &status(&instance)["config"];
    assert_eq!(config["generation"], 1);
    assert_eq!(config["reloads"]["unchanged"], 1);
    let text = instance.ask(&["status"]);
    assert!(text.contains("config    generation 1, last reload unchanged"), "{text}");
    assert_eq!(instance.stop()["invariants"], "ok");
}

#[test]
fn a_wrong_file_is_refused_with_its_line_and_the_run_goes_on_as_before() {
    let (instance, path) = start(FIREWALL, &[]);
    fs::write(&path, FIREWALL.replace("\"allow\"", "\"alow\"")).unwrap();
    let message = instance.refused(&["reload"]);
    assert!(message.contains("`alow` is not a value of `action`"), "{message}");
    let line = FIREWALL.lines().position(|line| line.contains("allow")).unwrap() + 1;
    assert!(message.contains(&format!("x.toml:{line}:")), "{message}");
    fs::remove_file(&path).unwrap();
    assert!(instance.refused(&["reload"]).contains("cannot read"), "a file that is gone");
    let config = &status(&instance)["config"];
    assert_eq!(config["reloads"]["refused"], 2);
    assert_eq!((&config["generation"], &config["last"]["result"]), (&0.into(), &"refused".into()));
    // A client sends a file of its own.
    let other = path.with_file_name("y.toml");
    fs::write(&other, format!("{FIREWALL}{DENY}")).unwrap();
    let sent = instance.ask_patiently(&["reload", other.to_str().unwrap()]);
    assert!(sent.contains("y.toml: 1 key changed\n  firewall: 1 rule added"), "{sent}");
    assert_eq!(instance.stop()["invariants"], "ok");
}

#[test]
fn what_needs_a_new_run_is_named_with_the_way_to_it() {
    let (instance, path) = start(FIREWALL, &[]);
    let other = FIREWALL
        .replace("20kpps", "30kpps")
        .replace("[\"firewall\"]", "[\"firewall\", \"monitor\"]");
    fs::write(&path, format!("{other}{DENY}[workers]\nlanes = 2\n")).unwrap();
    let message = instance.refused(&["reload"]);
    for part in [
        "workers.lanes: none -> 2; it is set when workers",
        "device[wire].rate: 20kpps -> 30kpps",
        "chain.functions: [firewall] -> [firewall, monitor]",
        "nothing has changed",
        "`rheo stop --control",
        "`rheo run ",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains("rule"), "{message}");
    assert_eq!(status(&instance)["config"]["generation"], 0);
    assert_eq!(instance.stop()["invariants"], "ok");
}

#[test]
fn a_policy_and_backends_change_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = lb_config(folder.path());
    let instance = Instance::start_with(&path, folder, &["--lanes", "2"]);
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("10.1.0.3", "10.1.0.4")
        + "\n[balance]\npolicy = \"rsspp\"\ninterval = \"50ms\"\n";
    fs::write(&path, text).unwrap();
    let reloaded = instance.ask_patiently(&["reload"]);
    assert!(reloaded.contains("1 backend added, 1 removed"), "{reloaded}");
    assert!(reloaded.contains("balance.policy: rss (default) -> rsspp"), "{reloaded}");
    let backends = status(&instance)["backends"].clone();
    let names: Vec<_> =
        backends.as_array().unwrap().iter().map(|one| one["backend"].clone()).collect();
    assert_eq!(names, ["10.1.0.1", "10.1.0.2", "10.1.0.4"]);
    instance.ask_patiently(&["backend", "web", "10.1.0.4", "draining"]);
    assert_eq!(instance.stop()["invariants"], "ok");
}

#[test]
fn the_page_has_the_configuration_in_force_and_the_log_the_levels_of_it() {
    let address = address(9465);
    let (instance, path) = start(FIREWALL, &["--http", &address.to_string()]);
    let get = |path: &str| {
        let mut reply = String::new();
        ask(address, path, "localhost", "*/*").read_to_string(&mut reply).unwrap();
        reply
    };
    assert!(!get("/config").contains("protocol"));
    fs::write(&path, format!("{FIREWALL}{DENY}[observe]\nlog = \"warn\"\n")).unwrap();
    let changes = json(&instance.ask_patiently(&["reload", "--json"]));
    let changes = texts(&changes["changes"]);
    assert!(changes.contains(&"observe.log: info (default) -> warn"), "{changes:?}");
    assert!(get("/config").contains("protocol = \"udp\""));
    let feed = BufReader::new(ask(address, "/events", "localhost", "text/event-stream")).lines();
    let event = "reloaded: firewall: 1 rule added";
    let feed: Vec<_> = feed.map(Result::unwrap).take(80).collect();
    assert!(feed.iter().any(|line| line.contains(event)), "{feed:#?}");
    assert_eq!(instance.stop()["invariants"], "ok");
}

#[test]
fn a_hangup_without_a_terminal_reloads_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (write(folder.path(), FIREWALL), folder.path().join("log"));
    let errors = fs::File::create(&log).unwrap();
    let instance = Instance::start_detached(&path, folder, errors.into());
    let process = Pid::from_raw(instance.pid() as i32).unwrap();
    let hang_up = || kill_process(process, Signal::HUP).unwrap();
    let printed = |part: &str| {
        let has = || fs::read_to_string(&log).unwrap().contains(part);
        wait_until(part, has);
    };
    fs::write(&path, format!("{FIREWALL}{DENY}")).unwrap();
    hang_up();
    printed("x.toml (generation 1): firewall: 1 rule added");
    fs::write(&path, "[chain\n").unwrap();
    hang_up();
    printed("error: not reloaded: ");
    assert_eq!(status(&instance)["config"]["reloads"]["refused"], 1);
    assert_eq!(instance.stop()["invariants"], "ok");
}

#[test]
fn a_hangup_that_nohup_ignores_does_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), FIREWALL);
    let instance = Instance::start_with_hangups_ignored(&path, folder);
    let process = Pid::from_raw(instance.pid() as i32).unwrap();
    kill_process(process, Signal::HUP).unwrap();
    fs::write(&path, format!("{FIREWALL}{DENY}")).unwrap();
    // The reload that a command requests is the first one.
    assert_eq!(json(&instance.ask_patiently(&["reload", "--json"]))["generation"], 1);
    assert_eq!(instance.stop()["invariants"], "ok");
}

/// An instance whose controlling terminal is that of the program `script`, with its summary in a file.
fn start_on_terminal(folder: &Path) -> Child {
    let path = write(folder, FIREWALL);
    let at = |name: &str| folder.join(name).display().to_string();
    let rheo = env!("CARGO_BIN_EXE_rheo");
    let (socket, summary, pid) = (at("x.sock"), at("summary"), at("pid"));
    // Nothing can be printed when the terminal is gone.
    let command = format!(
        "echo $$ >{pid}; exec env --default-signal=HUP {rheo} run {} --control {socket} --json >{summary} 2>/dev/full",
        path.display()
    );
    let script = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("script of bsdutils");
    let socket = folder.join("x.sock");
    wait_until("the instance answers", || rheo_answers(&socket));
    script
}

fn rheo_answers(socket: &Path) -> bool {
    rheo(socket, &["status"]).status.success()
}

#[test]
fn a_closed_terminal_ends_a_run_in_good_order() {
    // Each of the terminal's end, and of a signal from a shell, which may come more than once.
    for is_closed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut script = start_on_terminal(folder.path());
        if is_closed {
            script.kill().unwrap();
        } else {
            let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
            let process = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
            for _ in 0..3 {
                kill_process(process, Signal::HUP).unwrap();
            }
        }
        let summary = || fs::read_to_string(folder.path().join("summary")).unwrap();
        wait_until("the summary", || summary().ends_with("}\n"));
        assert_eq!(json(&summary())["invariants"], "ok");
        wait_until("the socket goes", || !folder.path().join("x.sock").exists());
        script.wait().unwrap();
    }
}

/// A conversation with an instance, without a process for each request.
struct Conversation(BufReader<UnixStream>);

impl Conversation {
    /// Sends a configuration, and returns the reply.
    fn reload(&mut self, text: &str) -> Value {
        let request = serde_json::json!({
            "command": "reload", "sent": { "name": "sent.toml", "bytes": text.len() },
        });
        let stream = self.0.get_mut();
        stream.write_all(format!("{request}\n{text}").as_bytes()).unwrap();
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        json(&line)
    }
}

#[test]
fn a_thousand_reloads_under_traffic_lose_nothing_that_both_configurations_admit() {
    // All is admitted that comes, and workers leave the cores to the reloads.
    let admitting =
        "[function.firewall]\ndefault_outside = \"allow\"\nliberal = true\npickup = true\n";
    let admitting = format!("{FIREWALL}{admitting}");
    let (instance, _) = start(&admitting, &["--lanes", "2", "--polling", "interrupt"]);
    let mut conversation =
        Conversation(BufReader::new(UnixStream::connect(instance.socket()).unwrap()));
    let others: Vec<_> = (1..=1_000)
        .map(|seconds| {
            format!("{admitting}[function.firewall.timeouts]\nudp = \"{}s\"\n", 180 + seconds)
        })
        .collect();
    let mut times = Vec::new();
    for text in &others {
        let reply = conversation.reload(text);
        // A lane that does not get its core for 5 s is named; the next reload is as good as this one.
        if reply["reply"] == "error" {
            assert!(reply["message"].as_str().unwrap().contains(GAVE_UP), "{reply}");
            continue;
        }
        assert_eq!(texts(&reply["changes"]).len(), 1, "{reply}");
        times.push(reply["seconds"].as_f64().unwrap());
    }
    let state = status(&instance)["config"].clone();
    assert_eq!(state["generation"], 1_000);
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] * 1e6;
    eprintln!(
        "from request to in force, of {} reloads: p50 {:.0} us, p99 {:.0} us, most {:.0} us",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    drop(conversation);
    let summary = instance.stop();
    assert_eq!(summary["invariants"], "ok");
    assert!(summary["received"].as_u64() > Some(0));
    // Of a worker that does not get its core, the NIC and the rings between lanes lose packets, with and without reloads, and the
    // firewall takes some of the packets behind those for segments of no connection.
    let known = ["queue_full", "tcp_invalid", "icmp_unrelated"];
    let lost = summary["dropped"].as_object().unwrap().keys();
    let lost: Vec<_> = lost
        .filter(|reason| !reason.starts_with("handoff") && !known.contains(&reason.as_str()))
        .collect();
    assert!(lost.is_empty(), "{summary}");
}

#[test]
fn what_follows_a_request_that_is_refused_is_no_request() {
    let (instance, _) = start(FIREWALL, &[]);
    let mut stream = UnixStream::connect(instance.socket()).unwrap();
    let request = r#"{"command":"reload","sent":{"name":"x","bytes":17000000}}"#;
    stream.write_all(format!("{request}\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines();
    let reply = lines.next().unwrap().unwrap();
    assert!(reply.contains("16777216 bytes at most"), "{reply}");
    assert!(lines.next().is_none(), "the conversation is over");
    assert_eq!(instance.stop()["invariants"], "ok");
}
