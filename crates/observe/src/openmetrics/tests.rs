mod shipped;

use std::collections::BTreeMap;

use rheostat_base::DropReason;
use rheostat_io::DeviceCounters;
use rheostat_run::{LanePolling, LaneSample, Vacations, WorkerPolling};

use super::*;
use crate::control::{BackendState, ConfigState, HealthWord, ReloadResult, RuleLine};
use crate::{LinkLine, LinkWord, PortLine, Summary};

fn snapshot() -> Snapshot {
    let mut busy =
        LaneSample { received: 8, flows_created: 4, busy_ns: 250_000_000, ..LaneSample::default() };
    busy.dropped[DropReason::Denied as usize] = 3;
    let device =
        DeviceCounters { arrived: 10, queue_full: vec![1, 2], ..DeviceCounters::default() };
    let mut sample = Sample {
        seconds: 2.5,
        lanes: vec![busy, LaneSample::default()],
        devices: vec![device],
        ..Sample::default()
    };
    let vacations =
        Vacations { count: 2, bins: vec![(9_000, 1), (11_000, 1)], ..Vacations::default() };
    sample.polling.lanes.push(LanePolling {
        mode: rheostat_run::poll::metronome::Mode::Busy,
        spent: Default::default(),
        tries: 0,
        lost: 0,
        target: None,
        vacations,
        won_by_other: 0,
    });
    sample.polling.workers.push(WorkerPolling { sleeps: 30, ..WorkerPolling::default() });
    let link = LinkLine {
        device: "lan".into(),
        interface: "eth0".into(),
        state: LinkWord::Up,
        vanished: 1,
        returned: 1,
        down: 0,
    };
    let port = PortLine {
        address: "203.0.113.1".into(),
        protocol: "udp".into(),
        remote: None,
        in_use: 5,
        ports: 100,
        scarce_since: None,
        scarce_seconds: None,
    };
    let functions = [("denied".into(), 3)].into();
    let summary =
        Summary { links: vec![link], ports: vec![port], functions, ..Summary::so_far(&sample) };
    let mut config = ConfigState { generation: 2, ..ConfigState::default() };
    config.note(ReloadResult::Refused, "1 mistake".into(), std::time::SystemTime::UNIX_EPOCH);
    let status = Status {
        summary,
        devices: vec![],
        tcp: BTreeMap::from([("tcpCurrEstab".into(), 2), ("tcpInSegs".into(), 70)]),
        service: BTreeMap::from([("half_open".into(), 1), ("refused".into(), 4)]),
        application: BTreeMap::from([("requests".into(), 9)]),
        connections: None,
        missing_shards: 0,
        tcp_by: None,
        backends: vec![BackendState {
            service: "a \"web\"\\\n".into(),
            backend: "10.0.0.2".into(),
            health: HealthWord::Draining,
        }],
        config: Some(config),
    };
    let latencies = Histogram::new();
    latencies.record(3_000);
    let times = LaneTimes::default();
    times.bursts.record(32);
    times.held.record(15_000);
    Snapshot {
        devices: vec!["lan".into()],
        sample,
        shards: vec![7, 1],
        moves: Histogram::new(),
        classes: vec![("voice".into(), latencies.clone())],
        transactions: vec![],
        rules: vec![RuleLine {
            place: 1,
            function: "firewall".into(),
            number: 1,
            rule: "web in".into(),
            hits: 3,
            bytes: Some(180),
            last_hit: None,
            text: "allow".into(),
        }],
        times: vec![Arc::new(times)],
        owners: vec![LaneId(0), LaneId(1), LaneId(1)],
        plan: PlanState { policy: "rss", plans: 6, why: vec![] },
        latencies: vec![latencies],
        ..Snapshot::of("1.2.3", status)
    }
}

#[test]
fn openmetrics_has_totals_units_and_an_end() {
    let page = encode(snapshot(), Format::OpenMetrics);
    for line in [
        "# TYPE rheo_packets counter",
        "rheo_packets_total{lane=\"0\"} 8",
        "rheo_packets_total{lane=\"1\"} 0",
        "rheo_build_info{version=\"1.2.3\"} 1",
        "rheo_reloads_total{result=\"refused\"} 1",
        "rheo_reloads_total{result=\"applied\"} 0",
        "rheo_config_last_reload_successful 0",
        "rheo_config_generation 2",
        "rheo_uptime_seconds 2.5",
        "rheo_dropped_packets_total{lane=\"0\",reason=\"denied\"} 3",
        "rheo_device_dropped_packets_total{device=\"lan\",reason=\"queue_full\"} 3",
        "# UNIT rheo_busy_seconds seconds",
        "rheo_busy_seconds_total{lane=\"0\"} 0.25",
        "rheo_flows{lane=\"0\"} 4",
        "rheo_link_up{device=\"lan\",interface=\"eth0\"} 1",
        "rheo_nat_ports_in_use{address=\"203.0.113.1\",protocol=\"udp\",remote=\"\"} 5",
        "rheo_function_total{event=\"denied\"} 3",
        "rheo_connections 2",
        "rheo_tcp_total{object=\"tcpInSegs\"} 70",
        "rheo_half_open_connections 1",
        "rheo_application_total{event=\"requests\"} 9",
        "rheo_worker_sleeps_total{worker=\"0\"} 30",
        "rheo_vacation_seconds_bucket{le=\"0.00001\",lane=\"0\"} 1",
        "rheo_vacation_seconds_count{lane=\"0\"} 2",
        "rheo_class_latency_seconds_bucket{le=\"+Inf\",class=\"voice\"} 1",
        "rheo_shard_packets_total{shard=\"0\"} 7",
        "# UNIT rheo_burst_packets packets",
        "rheo_burst_packets_bucket{le=\"32.0\",lane=\"0\"} 1",
        "rheo_hold_seconds_bucket{le=\"0.00002\",lane=\"0\"} 1",
        "rheo_latency_seconds_count{lane=\"0\"} 1",
        "rheo_lane_shards{lane=\"1\"} 2",
        "rheo_plans_total{policy=\"rss\"} 6",
    ] {
        assert!(page.lines().any(|written| written == line), "{line} is missing in\n{page}");
    }
    assert!(page.ends_with("# EOF\n"), "{page}");
    assert!(
        !page.contains("object=\"tcpCurrEstab\"") && !page.contains("rheo_shard_move"),
        "{page}"
    );
}

#[test]
fn the_older_format_has_neither_units_nor_an_end() {
    let page = encode(snapshot(), Format::Prometheus);
    assert!(
        page.contains("# TYPE rheo_packets_total counter\nrheo_packets_total{lane=\"0\"} 8\n"),
        "{page}"
    );
    assert!(!page.contains("# EOF") && !page.contains("# UNIT"), "{page}");
}

#[test]
fn names_of_services_are_escaped() {
    let page = encode(snapshot(), Format::OpenMetrics);
    let line = r#"rheo_backend{service="a \"web\"\\\n",backend="10.0.0.2",health="draining"} 1"#;
    assert!(page.lines().any(|written| written == line), "{page}");
}

#[test]
fn every_family_is_written_once_and_under_one_name() {
    let names: Vec<_> = families().map(Family::sample_name).collect();
    for (at, name) in names.iter().enumerate() {
        assert!(name.starts_with("rheo_") && !names[..at].contains(name), "{name}");
    }
    assert!(names.contains(&"rheo_packets_total".to_owned()));
    let page = encode(snapshot(), Format::OpenMetrics);
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let declared = |family: &String| name == family || name.starts_with(&format!("{family}_"));
        assert!(names.iter().any(declared), "{name} is not declared");
    }
}

#[test]
fn the_format_is_the_one_that_a_client_prefers() {
    let openmetrics =
        Some("application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.5,*/*;q=0.1");
    assert_eq!(Format::preferred(openmetrics), Format::OpenMetrics);
    for accept in [
        None,
        Some(""),
        Some("*/*"),
        Some("text/html"),
        Some("application/openmetrics-text;q=0"),
        Some("application/openmetrics-text; q=0.1, text/plain; version=0.0.4; q=0.9"),
        Some(";q=,,;;"),
    ] {
        assert_eq!(Format::preferred(accept), Format::Prometheus, "{accept:?}");
    }
}
