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
    let refused = instance.refused(&["neighbours"]);
    assert!(refused.contains("no addresses"), "{refused}");
    let unknown = instance.ask_socket(r#"{"command":"list","of":"moons"}"#);
    assert!(unknown.contains("versions 1 to 2 of the control protocol"), "{unknown}");
    let hello = json(&instance.ask_socket(r#"{"command":"hello"}"#));
    assert_eq!((&hello["protocol"], &hello["oldest"]), (&Value::from(2), &Value::from(1)));
    assert_eq!(instance.stop()["invariants"], "ok");
}

/// Functions whose rules are other than those of a firewall.
const OTHERS: &str = r#"
[[device]]
name = "wire"
kind = "sim"
inside = ["10.0.0.0/8", "fd00::/8"]
rate = "20kpps"

[chain]
functions = ["policer", "nat"]

[function.policer]
per = "inside"
rate = "8kbps"
burst = "1500B"

[function.nat]
external = ["203.0.113.1"]

[[function.nat.forward]]
protocol = "tcp"
external = "203.0.113.1:8080"
internal = "10.0.0.80:80"
"#;

#[test]
fn each_function_states_its_rules() {
    let instance = start(OTHERS, &[]);
    let mut rules = rows(&instance, &["rules"]);
    while rules[2]["hits"] == 0 {
        thread::sleep(Duration::from_millis(10));
        rules = rows(&instance, &["rules"]);
    }
    let shown: Vec<_> = rules
        .iter()
        .map(|rule| ["function", "rule", "text"].map(|key| rule[key].as_str().unwrap()))
        .collect();
    let policer = |colour, action| ["policer", colour, action];
    assert_eq!(
        shown,
        [
            policer("green", "pass"),
            policer("yellow", "pass"),
            policer("red", "drop"),
            ["nat", "TCP 203.0.113.1:8080", "forward to 10.0.0.80:80"],
        ]
    );
    assert_eq!((&rules[2]["bytes"], &rules[3]["hits"]), (&Value::Null, &Value::from(0)));
    assert_eq!(json(&instance.ask(&["status", "--json"]))["schema"], 1);
    assert_eq!(instance.stop()["schema"], 1);
}

/// A router of IPv4 and IPv6 before simulated NICs with addresses.
const ROUTER: &str = r#"
[[device]]
name = "lan"
kind = "sim"
side = "inside"
address = ["10.0.0.1/24", "fd00::1/64"]
rate = "1kpps"

[[device]]
name = "wan"
kind = "sim"
side = "outside"
address = ["203.0.113.1/24"]
rate = "1kpps"

[[neighbour]]
address = "203.0.113.254"
mac = "02:00:00:00:00:09"

[[route]]
to = "0.0.0.0/0"
via = "203.0.113.254"

[[route]]
to = "2001:db8::/32"
via = "fd00::9"

[chain]
functions = ["router"]
"#;

#[test]
fn lanes_shards_neighbours_and_routes_are_listed() {
    let instance = start(ROUTER, &["--lanes", "2"]);
    let routes = rows(&instance, &["routes"]);
    let route = |prefix: &str| {
        let found = routes.iter().find(|route| route["prefix"] == prefix);
        ["kind", "next_hop", "device", "origin"].map(|key| found.unwrap()[key].clone())
    };
    let text = |text: &str| Value::from(text);
    let router = |router, device| [text("gateway"), text(router), text(device), text("configured")];
    assert_eq!(route("0.0.0.0/0"), router("203.0.113.254", "wan"));
    assert_eq!(route("2001:db8::/32"), router("fd00::9", "lan"));
    let link = |device| [text("on_link"), Value::Null, text(device), text("interface")];
    assert_eq!(route("10.0.0.0/24"), link("lan"));
    assert_eq!(route("fd00::/64"), link("lan"));
    assert_eq!(route("10.0.0.1/32")[0], "local");
    let greatest = rows(&instance, &["routes", "--sort", "prefix,desc", "--limit", "1"]);
    assert_eq!(greatest[0]["prefix"], "fd00::1/128");

    let neighbours = rows(&instance, &["neighbours"]);
    let known = neighbours.iter().find(|known| known["address"] == "203.0.113.254").unwrap();
    assert_eq!((&known["mac"], &known["state"]), (&text("02:00:00:00:00:09"), &text("permanent")));
    assert_eq!((&known["device"], &known["age"]), (&text("wan"), &Value::Null));

    let lanes = rows(&instance, &["lanes"]);
    assert_eq!(lanes.len(), 2);
    assert_eq!(lanes.iter().map(|lane| lane["shards"].as_u64().unwrap()).sum::<u64>(), 128);
    assert_eq!(lanes[1]["queued"]["neighbour"], 0);
    let table = instance.ask(&["lanes", "--sort", "lane,desc"]);
    assert!(table.lines().nth(1).unwrap().trim_start().starts_with('1'), "{table}");

    let shards = rows(&instance, &["shards", "--sort", "shard,desc", "--limit", "2"]);
    assert_eq!(shards.iter().map(|shard| shard["shard"].clone()).collect::<Vec<_>>(), [127, 126]);
    assert_eq!((&shards[0]["moves"], &shards[0]["moving"]), (&Value::from(0), &Value::from(false)));
    assert!(shards[0]["packets"].is_u64() && shards[0]["flows"].is_u64(), "{}", shards[0]);

    let refused = instance.refused(&["backends"]);
    assert!(refused.contains("no load balancer"), "{refused}");
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
