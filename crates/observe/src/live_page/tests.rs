use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rheostat_base::{DropReason, LaneId};
use rheostat_io::DeviceCounters;
use rheostat_run::{LaneSample, Sample};
use serde_json::Value;

use super::*;
use crate::control::{BackendState, HealthWord, Status};
use crate::openmetrics::{PlanState, Snapshot};
use crate::{LinkLine, LinkWord, Summary};

fn at(second: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(second)
}

/// A run of two lanes, the second of which works half of the time, after so many seconds.
fn snapshot(seconds: u64, change: impl FnOnce(&mut Status)) -> Snapshot {
    let lane = |number: u64| LaneSample {
        received: number * 1_000 * seconds,
        sent: number * 900 * seconds,
        busy_ns: number * 500_000_000 * seconds,
        total_ns: 1_000_000_000 * seconds,
        ..LaneSample::default()
    };
    let device = DeviceCounters {
        arrived: 1_000 * seconds,
        arrived_bytes: 64_000 * seconds,
        ..DeviceCounters::default()
    };
    let sample = Sample {
        seconds: seconds as f64,
        lanes: vec![lane(0), lane(1)],
        devices: vec![device],
        ..Sample::default()
    };
    let mut status = Status {
        summary: Summary::so_far(&sample),
        devices: Vec::new(),
        tcp: Default::default(),
        service: Default::default(),
        application: Default::default(),
        connections: None,
        missing_shards: 0,
        tcp_by: None,
        backends: Vec::new(),
        config: None,
    };
    change(&mut status);
    Snapshot {
        devices: vec!["lan".into()],
        sample,
        owners: vec![LaneId(0), LaneId(0), LaneId(1)],
        ..Snapshot::of("1.2.3", status)
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn an_update_has_the_rates_of_its_interval_and_the_state_has_the_history() {
    let (mut recorder, log) = (Recorder::default(), EventLog::default());
    recorder.note(at(10), snapshot(10, |_| {}), &log);
    recorder.note(at(12), snapshot(12, |_| {}), &log);
    let update = json(&recorder.update());
    assert_eq!(update["unix_ms"], 12_000);
    assert_eq!(
        (&update["received"], &update["received_bits"]),
        (&1_000.0.into(), &512_000.0.into())
    );
    assert_eq!(update["lanes"][1]["load"], 0.5);
    assert_eq!((&update["lanes"][0]["shards"], &update["imbalance"]), (&2.into(), &2.0.into()));
    assert_eq!(update["devices"][0]["arrived"], 1_000.0);
    let state = json(&recorder.state(&log));
    assert_eq!(state["history"]["loads"], serde_json::json!([[0], [50]]));
    assert_eq!(state["update"]["events"][0]["kind"], "start");
}

#[test]
fn the_history_is_bounded() {
    let (mut recorder, log) = (Recorder::default(), EventLog::default());
    (0..KEPT as u64 + 50)
        .for_each(|second| recorder.note(at(second), snapshot(second, |_| {}), &log));
    let state = json(&recorder.state(&log));
    for series in ["received", "sent", "dropped", "imbalance"] {
        assert_eq!(state["history"][series].as_array().unwrap().len(), KEPT, "{series}");
    }
    assert_eq!(state["history"]["loads"][0].as_array().unwrap().len(), KEPT);
}

#[test]
fn lanes_moves_links_backends_and_first_drops_are_events() {
    let link = |state, down| LinkLine {
        device: "wan".into(),
        interface: "eth1".into(),
        state,
        vanished: 0,
        returned: 0,
        down,
    };
    let backend = |health| BackendState { service: "web".into(), backend: "b1".into(), health };
    let (mut recorder, log) = (Recorder::default(), EventLog::default());
    let before = snapshot(1, |status| {
        status.summary = status.summary.clone().with_roles(["working", "working"]);
        status.summary.links = vec![link(LinkWord::Up, 0)];
        status.backends = vec![backend(HealthWord::Up)];
    });
    let after = snapshot(2, |status| {
        status.summary = status.summary.clone().with_roles(["working", "parked"]);
        status.summary.links = vec![link(LinkWord::Down, 1)];
        status.backends = vec![backend(HealthWord::Down)];
        status.summary.dropped.insert(DropReason::Denied.name().into(), 3);
    });
    let plan = PlanState { policy: "hysteresis", plans: 4, why: vec!["lane 1 is idle".into()] };
    let after = Snapshot { owners: vec![LaneId(0); 3], plan, ..after };
    recorder.note(at(1), before, &log);
    recorder.note(at(2), after, &log);
    let texts: Vec<_> = log.since(1).into_iter().map(|event| event.text).collect();
    assert_eq!(
        texts,
        [
            "lane 1 is parked, was working",
            "1 shard moved: 1 from lane 1 to 0. lane 1 is idle",
            "wan (eth1) has no link",
            "backend b1 of web is down",
            "first drops for denied: 3 packets",
        ]
    );
    assert_eq!(json(&recorder.update())["events"].as_array().unwrap().len(), 5);
    // Nothing has changed since, and what others add comes with the next update.
    log.add(at(3), EventKind::Reload, "2 rules added");
    assert_eq!(json(&recorder.state(&log))["update"]["events"].as_array().unwrap().len(), 6);
    let same = snapshot(3, |_| {});
    recorder.note(at(3), Snapshot { owners: vec![LaneId(0); 3], ..same }, &log);
    let events = json(&recorder.update())["events"].clone();
    assert_eq!(
        (&events[0]["kind"], &events[0]["text"]),
        (&"reload".into(), &"2 rules added".into())
    );
}

#[test]
fn the_event_log_keeps_the_last_and_cuts_long_texts() {
    let log = EventLog::default();
    (0..1_000).for_each(|second| log.add(at(second), EventKind::Link, "é".repeat(5_000)));
    let events = log.since(0);
    assert_eq!((events.len(), events[0].id, log.next()), (200, 800, 1_000));
    assert!(events.iter().all(|event| event.text.chars().count() == 400));
}
