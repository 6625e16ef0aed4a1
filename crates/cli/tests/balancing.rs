//! `rheo run` with policies, on the simulated NIC and, as root, on real interfaces.
//!
//! Timed: threads, sleep, clock, processes, devices, sockets.

use std::net::UdpSocket;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::instance::{Instance, demo, json};
use rheostat_testkit::namespace::{isolated, shell};
use rheostat_testkit::veth::await_links;
use serde_json::Value;

/// How long to wait for what happens within a second on a machine that is not overloaded.
const TIMEOUT: Duration = Duration::from_secs(120);

#[test]
fn lanes_with_little_to_do_are_parked_while_packets_arrive() {
    // So little that lanes are not busy for long, either, where others have their cores most of the time.
    let flags = ["--device", "wire=sim:2kpps", "--lanes", "3", "--policy", "rsspp"];
    parks_a_lane(Instance::start_with(&demo(), tempfile::tempdir().unwrap(), &flags));
}

/// Waits until the shards of one lane of three have moved to the others, and returns the summary.
fn parks_a_lane(instance: Instance) -> Value {
    // A lane may be parked before the first packet has come.
    let is_done = |status: &Value| {
        status["migrations"].as_u64().unwrap() >= 128 / 3
            && status["sent"].as_u64().unwrap() > 0
            && status["imbalance"].is_number()
    };
    let start = Instant::now();
    let mut status = json(&instance.ask(&["status", "--json"]));
    while !is_done(&status) {
        assert!(start.elapsed() < TIMEOUT, "nothing moves: {status}");
        thread::sleep(Duration::from_millis(50));
        status = json(&instance.ask(&["status", "--json"]));
    }
    let summary = instance.stop();
    assert_eq!((&summary["invariants"], &summary["reordered"]), (&"ok".into(), &0.into()));
    assert_eq!((&summary["late_handoff"], &summary["held"]), (&0.into(), &0.into()));
    assert!(summary["imbalance"].as_f64().unwrap() >= 1.0, "{summary}");
    summary
}

#[test]
fn without_a_policy_nothing_moves() {
    let instance = Instance::start(&["--lanes", "3"]);
    // Until a lane has worked.
    while !json(&instance.ask(&["status", "--json"]))["imbalance"].is_number() {
        thread::sleep(Duration::from_millis(20));
    }
    let summary = instance.stop();
    assert_eq!(summary["migrations"], 0);
    assert!(summary["imbalance"].as_f64().unwrap() >= 1.0, "{summary}");
}

#[test]
fn a_policy_that_does_not_exist_is_refused_with_those_that_do() {
    let output = Command::new(env!("CARGO_BIN_EXE_rheo"))
        .args(["check", concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs/demo.toml")])
        .args(["--policy", "rss++"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    assert!(!output.status.success());
    assert!(errors.contains("--policy `rss++` is no policy"), "{errors}");
    assert!(errors.contains("`local-search`"), "{errors}");
}

#[test]
fn lanes_are_parked_on_af_xdp() {
    isolated(module_path!(), "lanes_are_parked_on_af_xdp", || parks_a_lane_of("af_xdp"));
}

#[test]
fn lanes_are_parked_on_af_packet() {
    isolated(module_path!(), "lanes_are_parked_on_af_packet", || parks_a_lane_of("af_packet"));
}

const FIREWALL: &str = r#"
[[device]]
name = "wire"
kind = "KIND"
interface = "rmig1"
inside = ["10.0.0.0/8"]

[chain]
functions = ["firewall"]

[balance]
policy = "rsspp"
interval = "100ms"
"#;

/// A firewall on one link of a namespace, which sends back what it lets through.
fn parks_a_lane_of(kind: &str) {
    shell(
        "ip link add rmig0 type veth peer name rmig1
         for each in rmig0 rmig1; do
           sysctl -qw net.ipv6.conf.$each.disable_ipv6=1
           ip link set $each up
         done
         ip addr add 10.9.0.2/24 dev rmig0
         ip neigh replace 10.9.0.1 lladdr 02:00:00:00:00:02 dev rmig0 nud permanent",
    );
    await_links(&["rmig0", "rmig1"]);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("firewall.toml");
    std::fs::write(&config, FIREWALL.replace("KIND", kind)).unwrap();
    let instance = Instance::start_with(&config, folder, &["--lanes", "3"]);
    // It ends with the process, which is this test's own.
    thread::spawn(|| send());
    let summary = parks_a_lane(instance);
    let count = |name: &str| summary[name].as_u64().unwrap();
    let dropped = summary["dropped"].as_object().unwrap();
    let lost: u64 = dropped.values().map(|count| count.as_u64().unwrap()).sum();
    assert!(count("sent") > 0, "{summary}");
    assert_eq!(count("received"), count("sent") + lost, "{summary}");
    // Lanes that share their cores with everything else have full queues at times, and so has the kernel.
    assert!(dropped.keys().all(|reason| FULL.contains(&reason.as_str())), "{summary}");
}

/// Reasons to drop a packet that is in order.
const FULL: [&str; 7] = [
    "queue_full",
    "no_buffer",
    "fill_empty",
    "handoff_full",
    "hold_full",
    "transmit_full",
    "transmit_refused",
];

/// Sends datagrams of many flows from behind the other end of the link, without end. Slowly: the kernel's queues are those
/// of tests in other namespaces as well, and where it does not get a core they are to have room for a while.
fn send() -> ! {
    let socket =
        |flow: u16| UdpSocket::bind(("10.9.0.2", 1_000 + flow)).expect("the address is ours");
    let sockets: Vec<_> = (0..64).map(socket).collect();
    loop {
        for socket in &sockets {
            socket.send_to(b"hello", ("10.9.0.1", 9_999)).expect("the link is up");
        }
        thread::sleep(Duration::from_millis(20));
    }
}
