//! The control socket of a running instance, with the commands that people use. No root is needed: the
//! device is the simulated NIC.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use crate::instance::{Instance, json, lb_config};

#[test]
fn a_run_is_asked_how_it_stands_and_told_to_stop() {
    let instance = Instance::start(&["--lanes", "2"]);
    let status = json(&instance.ask(&["status", "--json"]));
    assert!(status["received"].as_u64().unwrap() > 0, "{status}");
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
fn a_rewritten_table_leads_packets_to_other_lanes_and_they_are_handed_to_their_owners() {
    let instance = Instance::start(&["--lanes", "2"]);
    let table = json(&instance.ask(&["table", "show", "--device", "wire", "--json"]));
    let entries: Vec<_> = table["entries"].as_array().unwrap().clone();
    assert_eq!(entries.len(), 128);
    assert!(entries.iter().enumerate().all(|(bucket, lane)| lane == bucket % 2));

    let shuffled =
        instance.ask(&["table", "shuffle", "--device", "wire", "--times", "50", "--seed", "3"]);
    assert!(shuffled.starts_with("wire: 128 entries, rewritten 50 times"), "{shuffled}");

    // Every bucket to the lane that does not own its shard: now all packets are handed over.
    let swapped: Vec<_> = (0..128).map(|bucket| ((bucket + 1) % 2).to_string()).collect();
    let mut arguments = vec!["table", "set", "--device", "wire"];
    arguments.extend(swapped.iter().map(String::as_str));
    instance.ask(&arguments);
    let handoffs = |instance: &Instance| {
        let status = json(&instance.ask(&["status", "--json"]));
        (status["received"].as_u64().unwrap(), status["handoff"].as_u64().unwrap())
    };
    let (received, handed) = handoffs(&instance);
    let mut later = handoffs(&instance);
    while later.0 < received + 10_000 {
        later = handoffs(&instance);
    }
    let share = (later.1 - handed) as f64 / (later.0 - received) as f64;
    assert!(share > 0.8, "{share} of the packets were handed over");
    let summary = instance.stop();
    assert_eq!(summary["invariants"], "ok");
}

#[test]
fn a_program_that_has_said_all_it_has_to_say_is_still_answered() {
    let instance = Instance::start(&[]);
    let mut stream = UnixStream::connect(instance.socket()).unwrap();
    let request = r#"{"command":"table","device":"wire","shuffle":{"times":5,"pause_ms":20}}"#;
    writeln!(stream, "{request}").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
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
    let refused = instance.refused(&["backend", "web", "10.0.0.1", "down"]);
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
    let said = instance.ask(&["backend", "web", "10.1.0.2", "down"]);
    assert!(said.starts_with("web 10.1.0.2 is down now; "), "{said}");
    let status = json(&instance.ask(&["status", "--json"]));
    let health: Vec<_> = status["backends"].as_array().unwrap().iter().collect();
    assert_eq!(health.len(), 3);
    assert_eq!(health[1]["health"], "down");
    instance.ask(&["backend", "web", "10.1.0.2", "draining"]);
    let text = instance.ask(&["status"]);
    assert!(text.contains("backend   web 10.1.0.2 draining"), "{text}");
    let refused = instance.refused(&["backend", "web", "10.1.0.9", "up"]);
    assert!(refused.contains("its backends are 10.1.0.1, 10.1.0.2, 10.1.0.3"), "{refused}");
    instance.stop();
}
