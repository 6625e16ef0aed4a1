//! Metrics and the live page over HTTP, of a run on the simulated NIC.
//!
//! Timed: processes, sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;

use crate::instance::{Instance, demo, json};

/// An address of this machine that no other process has, and no other test with another port.
pub(crate) fn address(port: u16) -> SocketAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // Process numbers have 22 bits at most.
    SocketAddr::from((Ipv4Addr::new(127, 128 | high, middle, low), port))
}

pub(crate) fn ask(address: SocketAddr, path: &str, host: &str, accept: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn get(address: SocketAddr, host: &str, accept: &str) -> String {
    let mut stream = ask(address, "/metrics", host, accept);
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// The states and updates of the feed, as JSON.
fn feed(address: SocketAddr) -> impl Iterator<Item = serde_json::Value> {
    let lines = BufReader::new(ask(address, "/events", "localhost", "text/event-stream")).lines();
    let data =
        lines.map(Result::unwrap).filter_map(|line| Some(line.strip_prefix("data: ")?.to_owned()));
    data.map(|data| serde_json::from_str(&data).unwrap())
}

/// The sum of a metric's samples.
fn sum(page: &str, metric: &str) -> f64 {
    let samples = page.lines().filter_map(|line| line.strip_prefix(metric));
    let values = samples.filter_map(|rest| rest.strip_prefix('{')?.split_once("} "));
    values.map(|(_, value)| value.parse::<f64>().unwrap()).sum()
}

#[test]
fn a_run_serves_its_metrics_under_its_address_and_under_no_foreign_name() {
    let address = address(9464);
    let flag = address.to_string();
    let instance = Instance::start(&["--lanes", "2", "--http", &flag]);
    let received = || json(&instance.ask(&["status", "--json"]))["received"].as_u64().unwrap();
    let before = received() as f64;
    let reply = get(address, &flag, "application/openmetrics-text; version=1.0.0");
    let (head, page) = reply.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    let arrived = sum(page, "rheo_device_packets_total");
    assert!(before <= arrived && arrived <= received() as f64, "{before} {arrived}");
    assert!(sum(page, "rheo_packets_total") <= arrived);
    assert!(page.contains("rheo_packets_total{lane=\"1\"} "), "{page}");
    assert!(page.contains("\nrheo_uptime_seconds "), "{page}");
    assert!(page.ends_with("# EOF\n"), "{page}");
    assert!(get(address, &flag, "*/*").contains("text/plain; version=0.0.4"));
    assert!(get(address, "evil.example", "*/*").starts_with("HTTP/1.1 421 "));
    assert!(page.contains("rheo_plans_total{policy=\"rss\"} "), "{page}");
    for metric in ["rheo_burst_packets_count", "rheo_lane_shards"] {
        assert!(sum(page, metric) > 0.0, "{metric}: {page}");
    }
    // The page, its feed, and the configuration.
    let whole = |path| {
        let mut reply = String::new();
        ask(address, path, &flag, "*/*").read_to_string(&mut reply).unwrap();
        reply
    };
    assert!(whole("/").contains("<script src=\"/live.js\""));
    let config = whole("/config");
    for part in ["# Started with: ", "--lanes 2", "[function.firewall]"] {
        assert!(config.contains(part), "{part}: {config}");
    }
    let mut feed = feed(address);
    let state = feed.next().unwrap();
    assert_eq!(state["update"]["events"][0]["kind"], "start", "{state}");
    let arrives = |update: &serde_json::Value| {
        let flows = update["top_flows"].as_array().unwrap();
        let is_shared = update["lanes"].as_array().unwrap().len() == 2;
        is_shared && update["received"].as_f64().unwrap() > 0.0 && !flows.is_empty()
    };
    assert!(feed.take(60).any(|update| arrives(&update)), "no flow is shown");
    // A second run at the same address.
    let second = Command::new(env!("CARGO_BIN_EXE_rheo"))
        .arg("run")
        .arg(demo())
        .args(["--http", &flag])
        .output()
        .unwrap();
    let errors = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2), "{errors}");
    let owner = format!("{flag} is in use by rheo (process {})", instance.pid());
    assert!(errors.replace("\n  ", " ").contains(&owner), "{errors}");
    assert_eq!(instance.stop()["invariants"], "ok");
    TcpStream::connect(address).unwrap_err();
}
