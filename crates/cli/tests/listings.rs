//! Listings of a running instance. One run answers several commands.
//!
//! Timed: processes, sockets, sleep.

use std::fs;
use std::io::{BufRead, BufReader};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use serde_json::Value;

use crate::instance::{Instance, json, json_rows, rheo};

/// A firewall with two rules before a simulated NIC.
const FIREWALL: &str = r#"
[[device]]
name = "wire"
kind = "sim"
inside = ["10.0.0.0/8", "fd00::/8"]
rate = "20kpps"

[chain]
functions = ["firewall"]

[[function.firewall.rule]]
name = "udp out"
action = "allow"
from = "inside"
protocol = "udp"

[[function.firewall.rule]]
action = "reject"
source = "192.0.2.0/24"
"#;

fn start(config: &str, flags: &[&str]) -> Instance {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.toml");
    fs::write(&path, config).unwrap();
    Instance::start_with(&path, folder, flags)
}

/// The rows of a listing as JSON.
fn rows(instance: &Instance, arguments: &[&str]) -> Vec<Value> {
    json_rows(&instance.ask(&[arguments, &["--json"]].concat()))
}

#[test]
fn rules_are_listed_in_order_with_their_hits() {
    let instance = start(FIREWALL, &["--lanes", "2"]);
    let mut rules = rows(&instance, &["rules"]);
    while [0, 2].iter().any(|rule| rules[*rule]["hits"] == 0) {
        thread::sleep(Duration::from_millis(10));
        rules = rows(&instance, &["rules"]);
    }
    let names: Vec<_> = rules.iter().map(|rule| rule["rule"].as_str().unwrap()).collect();
    assert_eq!(names, ["udp out", "2", "default from inside", "default from outside"]);
    assert_eq!(rules[1]["hits"], 0);
    assert_eq!((&rules[1]["bytes"], &rules[1]["last_hit"]), (&Value::from(0), &Value::Null));
    assert!(rules[0]["bytes"].as_u64() >= rules[0]["hits"].as_u64().map(|hits| hits * 28));
    assert!(rules[0]["last_hit"].as_f64().is_some_and(|ago| ago >= 0.0));
    assert_eq!(rules[0]["text"], "allow from inside UDP");

    let text = instance.ask(&["rules"]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines[0].starts_with("function  number  rule"), "{text}");
    assert!(lines[2].ends_with("reject source 192.0.2.0/24"), "{text}");

    assert_eq!(instance.ask(&["rules", "--count"]).trim(), "4");
    let greatest = rows(&instance, &["rules", "--sort", "hits,desc", "--limit", "1"]);
    assert_eq!(greatest.len(), 1);
    assert_ne!(greatest[0]["hits"], 0);
    let page = rheo(&instance.socket(), &["rules", "--limit", "3"]);
    let note = String::from_utf8(page.stderr).unwrap();
    let cursor = note.split_whitespace().skip_while(|word| *word != "--cursor").nth(1).unwrap();
    let rest = rows(&instance, &["rules", "--cursor", cursor]);
    assert_eq!(rest.len(), 1, "{note}");
    assert_eq!(rest[0]["rule"], "default from outside");
    let refused = instance.refused(&["rules", "--sort", "age"]);
    assert!(refused.contains("the columns are place, function, number, rule, hits"), "{refused}");

    let refused = instance.refused(&["connections"]);
    assert!(refused.contains("`rheo flows` and `rheo rules` list"), "{refused}");
    let unknown = instance.ask_socket(r#"{"command":"list","of":"moons"}"#);
    assert!(unknown.contains("versions 1 to 2 of the control protocol"), "{unknown}");
    let hello = json(&instance.ask_socket(r#"{"command":"hello"}"#));
    assert_eq!((&hello["protocol"], &hello["oldest"]), (&Value::from(2), &Value::from(1)));
    assert_eq!(instance.stop()["invariants"], "ok");
}

#[test]
fn a_watched_listing_goes_on_until_it_is_interrupted_or_the_run_ends() {
    let instance = start(FIREWALL, &[]);
    let watch = |arguments: &[&str]| {
        let mut child = instance.begin(arguments);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines.map_while(Result::ok))
    };
    let (mut child, mut arrays) = watch(&["rules", "--json", "--watch", "100ms"]);
    for _ in 0..2 {
        let array: Vec<Value> = serde_json::from_str(&arrays.next().unwrap()).unwrap();
        assert_eq!(array.len(), 4);
    }
    rustix::process::kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());

    let (mut child, mut counts) = watch(&["rules", "--count", "--watch", "100ms"]);
    assert_eq!(counts.next().as_deref(), Some("4"));
    child.stderr.take();
    instance.stop();
    assert!(child.wait().unwrap().success());
}
