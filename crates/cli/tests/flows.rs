//! Flows and mappings of a running instance: listed, counted, deleted.
//!
//! Timed: sleep, processes, sockets.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::instance::{Instance, refused_at};

/// Hosts behind a NAT that reach servers, with a monitor that counts packets.
fn config(folder: &Path, mapping: &str) -> PathBuf {
    let path = folder.join("nat.toml");
    let log = folder.join("mappings.jsonl");
    let text = format!(
        r#"[[device]]
name = "lan"
kind = "sim"
side = "inside"
rate = "5kpps"

[device.traffic]
clients_only = true
ipv6_share = 0.0
flows = 400

[[device]]
name = "wan"
kind = "sim"
side = "outside"
replies = "1ms"

[chain]
functions = ["monitor", "nat"]

[function.nat]
log = "{}"
external = ["203.0.113.1"]
mapping = "{mapping}"

[[function.nat.forward]]
protocol = "tcp"
external = "203.0.113.1:80"
internal = "10.0.0.5:8080"

[state]
flows = "64k"
shards = 16
"#,
        log.display()
    );
    fs::write(&path, text).unwrap();
    path
}

fn start(mapping: &str) -> Instance {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), mapping);
    Instance::start_with(&config, folder, &["--lanes", "2"])
}

fn array(text: &str) -> Vec<Value> {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    value.as_array().unwrap_or_else(|| panic!("no array: {text}")).clone()
}

/// The flows, once both ends of some have sent.
fn flows(instance: &Instance) -> Vec<Value> {
    loop {
        let flows = array(&instance.ask(&["flows", "udp", "--json"]));
        if flows.iter().any(|flow| flow["functions"]["nat"]["state"] == "answered") {
            return flows;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field}: {value}"))
}

/// The expression that means one flow.
fn expression(flow: &Value) -> String {
    let [source, destination] = ["source", "destination"].map(|end| text(flow, end));
    let (address, port) = source.rsplit_once(':').unwrap();
    let (peer, peer_port) = destination.rsplit_once(':').unwrap();
    format!(
        "udp and src host {address} and src port {port} and dst host {peer} and dst port {peer_port}"
    )
}

#[test]
fn flows_are_listed_with_their_functions_and_deleted_as_by_a_time_out() {
    let instance = start("endpoint-independent");
    let flows = flows(&instance);
    let flow = flows.iter().find(|flow| flow["functions"]["nat"]["state"] == "answered").unwrap();
    assert_eq!(text(flow, "protocol"), "UDP");
    assert_eq!(text(flow, "opened_by"), "inside");
    let translated = &flow["translated"];
    assert!(text(translated, "source").starts_with("203.0.113.1:"), "{flow}");
    assert_eq!(translated["destination"], flow["destination"]);
    assert!(flow["packets"].as_u64().unwrap() >= 2 && flow["bytes"].as_u64().unwrap() >= 40);
    assert!(flow["age"].as_f64().unwrap() >= 0.0 && flow["timeout"].as_f64().unwrap() > 0.0);
    assert!(flow["lane"].as_u64().unwrap() < 2 && flow["shard"].as_u64().unwrap() < 16);
    assert_eq!(flow["functions"]["nat"]["outside"], translated["source"]);
    assert!(flow["functions"]["monitor"]["idle"].is_number());

    let only = expression(flow);
    let found = array(&instance.ask(&["flows", &only, "--json"]));
    assert_eq!(found.len(), 1, "{only}");
    let external = text(translated, "source").rsplit_once(':').unwrap().1;
    let by_external = format!("host 203.0.113.1 and port {external}");
    let found = array(&instance.ask(&["flows", &by_external, "--json"]));
    assert!(found.iter().any(|found| found["source"] == flow["source"]), "{by_external}");
    let table = instance.ask(&["flows", &only]);
    assert!(table.starts_with("protocol") && table.contains(text(flow, "source")), "{table}");
    let count = instance.ask(&["flows", "--count"]);
    assert!(count.trim().parse::<u64>().unwrap() >= flows.len() as u64, "{count}");
    let page = array(&instance.ask(&["flows", "--json", "--sort", "packets,desc", "--limit", "3"]));
    let packets: Vec<_> = page.iter().map(|flow| flow["packets"].as_u64().unwrap()).collect();
    assert!(packets.len() == 3 && packets.is_sorted_by(|a, b| a >= b), "{packets:?}");

    let deleted = instance.ask(&["flows", "--delete", &only]);
    assert_eq!(deleted, "1 flows deleted\n");
    assert!(instance.refused(&["flows", "--delete"]).contains("--all"));
    assert!(instance.refused(&["flows", "less 100"]).contains("about single packets"));
    assert!(instance.refused(&["flows", "port nonsense"]).contains("nonsense"));
    let deleted = instance.ask(&["flows", "--delete", "--all", "--json"]);
    let deleted: Value = serde_json::from_str(&deleted).unwrap();
    assert!(deleted["deleted"].as_u64().unwrap() >= flows.len() as u64 - 1, "{deleted}");
    // `closed` has run: the NAT has noted that the external endpoint was taken back, as often as it was given out at most.
    let log = instance.socket().with_file_name("mappings.jsonl");
    let events = |event: &str| {
        let lines = fs::read_to_string(&log).unwrap_or_default();
        let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_it = |line: &Value| {
            line["event"] == event
                && line["inner"] == flow["source"]
                && line["external"] == translated["source"]
        };
        lines.filter(is_it).count()
    };
    while events("ended") == 0 {
        thread::sleep(Duration::from_millis(50));
    }
    assert!(events("ended") <= events("created"));
    assert_eq!(instance.stop()["invariants"], "ok");
}

#[test]
fn mappings_are_listed_with_the_forwards_and_found_by_their_external_endpoint() {
    for mapping in ["endpoint-independent", "address-and-port-dependent"] {
        let instance = start(mapping);
        flows(&instance);
        let mappings = array(&instance.ask(&["nat", "--json"]));
        let forward = mappings.iter().find(|mapping| mapping["kind"] == "forward").unwrap();
        assert_eq!(text(forward, "external"), "203.0.113.1:80");
        assert_eq!(text(forward, "inside"), "10.0.0.5:8080");
        let kind = if mapping == "endpoint-independent" { "shared" } else { "own" };
        let one = mappings.iter().find(|one| one["kind"] == kind && one["state"] == "held");
        let one = one.unwrap_or_else(|| panic!("{mapping}: {mappings:?}"));
        assert!(one["flows"].as_u64().unwrap() > 0, "{one}");
        assert_eq!(one["timeout"].is_number(), kind == "own", "{one}");
        let external = text(one, "external");
        let found = array(&instance.ask(&["nat", "--external", external, "--json"]));
        assert!(
            found.iter().any(|found| found["inside"] == one["inside"]),
            "{external}: {found:?}"
        );
        assert!(found.iter().all(|found| text(found, "external") == external));
        let host = text(one, "inside").rsplit_once(':').unwrap().0;
        let of_host = array(&instance.ask(&["nat", &format!("host {host}"), "--json"]));
        assert!(!of_host.is_empty());
        assert!(of_host.iter().all(|of| text(of, "inside").starts_with(host)), "{of_host:?}");
        assert_eq!(instance.stop()["invariants"], "ok");
    }
}

#[test]
fn a_chain_without_nat_has_no_mappings_and_says_what_it_has() {
    let instance = Instance::start(&[]);
    let refusal = instance.refused(&["nat"]);
    assert!(refusal.contains("no mappings") && refusal.contains("`rheo flows`"), "{refusal}");
    assert!(instance.refused(&["connections"]).contains("`rheo flows`"));
    let path = instance.socket();
    let _folder = instance.kill();
    assert!(!refused_at(&path, &["flows"]).is_empty());
}
