//! Live devices of a running `rheo`, each test in a network namespace of its own: rights, interfaces that are
//! named twice, and interfaces that go away and come back. As root, with RHEO_ROOT_TESTS=1.

mod attachment;
mod capabilities;
mod claims;
mod instance;
mod link_events;
mod offloads;
mod place;
mod reopened;
mod sending;

use serde_json::Value;

const RHEO: &str = env!("CARGO_BIN_EXE_rheo");

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What entered a run, and what became of it: a summary has the same number of both.
fn sum(summary: &Value) -> (u64, u64) {
    let count = |name: &str| summary[name].as_u64().unwrap();
    let dropped: u64 =
        summary["dropped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    (
        count("received") + count("originated") + count("copied"),
        count("sent") + count("consumed") + count("held") + dropped,
    )
}

/// The entry of a device among the links of a status or summary.
fn link<'a>(status: &'a Value, name: &str) -> &'a Value {
    let links = status["links"].as_array().unwrap();
    links.iter().find(|link| link["device"] == name).unwrap()
}
