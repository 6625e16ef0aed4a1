//! The monitor in whole runs: everything passes, its records together are what passed, and they are the
//! same for any number of lanes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rheostat::harness::HarnessReport;
use rheostat::{DropReason, Harness, Mix, MixConfig, NetworkFunction, Stage, StateLayout};
use rheostat_functions::Monitor;
use rheostat_functions::monitor::{
    EndReason, FlowRecord, MonitorConfig, MonitorLog, TopConfig, TopReport,
};
use rheostat_packet::{FlowKey, Headers};
use rheostat_run::{Metrics, Ranking};
use rheostat_testkit::captures;
use rheostat_testkit::spliced::Spliced;
use rheostat_traffic::{Arrival, Source};

const LANES: [(usize, usize, usize); 7] =
    [(1, 1, 0), (2, 1, 0), (2, 2, 0), (4, 2, 0), (8, 1, 0), (3, 1, 1), (4, 1, 2)];

/// What the monitor has told.
#[derive(Default)]
struct Told {
    records: Vec<FlowRecord>,
    reports: Vec<TopReport>,
}

/// A source that reads the monitor's log while packets come, as a writer would.
struct Followed<S> {
    source: S,
    log: MonitorLog,
    told: Arc<Mutex<Told>>,
}

impl<S: Source> Source for Followed<S> {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        drain(&self.log, &self.told);
        self.source.next(frame)
    }
}

fn drain(log: &MonitorLog, told: &Mutex<Told>) {
    let mut told = told.lock().expect("no thread panicked with it");
    log.drain(|record| told.records.push(record));
    log.drain_reports(|report| told.reports.push(report));
}

/// A run with everything that was told.
struct Run {
    report: HarnessReport,
    metrics: Metrics,
    told: Told,
}

fn run(
    config: &MonitorConfig,
    (lanes, claimants, offloading): (usize, usize, usize),
    source: impl Source + 'static,
) -> Run {
    let log = MonitorLog::new();
    let monitor = Monitor::new(config.clone(), Some(log.clone()));
    // For its figures alone.
    let reader = Monitor::new(config.clone(), None);
    let mut layout = StateLayout::new();
    let chain = Stage::new(monitor, &mut layout).expect("room for one state");
    let harness = Harness { lanes, claimants, offloading, ..Harness::new(chain, layout) };
    let mut metrics = Metrics::default();
    let told = Arc::default();
    let followed = Followed { source, log: log.clone(), told: Arc::clone(&told) };
    let report = harness.run(followed, |_, local| reader.metrics(local, &mut metrics));
    let report = report.expect("memory and lanes");
    drain(&log, &told);
    let told = std::mem::take(&mut *told.lock().expect("no thread panicked with it"));
    Run { report, metrics, told }
}

/// Bytes above the link layer of each packet, in order; `None` for what cannot be read.
fn sizes(mut source: impl Source) -> Vec<Option<u64>> {
    let (mut frame, mut sizes) = (Vec::new(), Vec::new());
    while let Some(arrival) = source.next(&mut frame) {
        let headers = Headers::parse_bytes(&frame, arrival.wire_len as usize, arrival.link);
        sizes.push(headers.ok().map(|headers| u64::from(headers.end - u32::from(headers.l3))));
    }
    sizes
}

/// Holds the records of a run against the packets that passed. Returns how many records there are.
fn check(name: &str, sizes: &[Option<u64>], run: &Run) -> usize {
    let Run { report, metrics, told } = run;
    assert!(report.violations.is_empty(), "{name}: {:?}", report.violations);
    assert_eq!(metrics.get("monitor_records_lost"), 0, "{name}");
    assert_eq!(metrics.get("monitor_records"), told.records.len() as u64, "{name}");
    // Lanes drop what cannot be read, and fragments that make no datagram; the monitor drops nothing.
    let lane_drops = [
        DropReason::Malformed,
        DropReason::FragmentsFull,
        DropReason::FragmentInvalid,
        DropReason::FragmentIncomplete,
    ];
    let dropped: u64 =
        lane_drops.iter().map(|reason| report.counters.dropped[*reason as usize]).sum();
    assert_eq!(report.counters.dropped_total(), dropped, "{name}: something else was dropped");
    let sent = report.sent.len() as u64;
    assert_eq!(sent + dropped, sizes.len() as u64, "{name}: packets");
    let sent_bytes: u64 = report
        .sent
        .iter()
        .map(|packet| sizes[packet.stamp as usize].expect("what passed could be read"))
        .sum();
    let ways = || told.records.iter().flat_map(|record| &record.ways);
    let packets: u64 = ways().map(|way| u64::from(way.packets)).sum();
    let bytes: u64 = ways().map(|way| way.bytes).sum();
    assert_eq!(packets, metrics.get("monitor_packets"), "{name}");
    assert_eq!(bytes, metrics.get("monitor_bytes"), "{name}");
    assert_eq!(packets + metrics.get("monitor_other_packets"), sent, "{name}: packets in records");
    assert_eq!(bytes + metrics.get("monitor_other_bytes"), sent_bytes, "{name}: bytes in records");
    told.records.len()
}

/// A record without what cannot be sorted by, for comparing sets of them.
fn sorted(run: &Run) -> Vec<String> {
    let mut lines: Vec<_> = run.told.records.iter().map(|record| format!("{record:?}")).collect();
    lines.sort_unstable();
    lines
}

/// A mix of which minutes pass, so that flows end and go on.
fn source() -> impl Source {
    let mix = MixConfig {
        flows: 300,
        packets_per_second: 500,
        packets: Some(60_000),
        ..MixConfig::default()
    };
    Spliced::of_flows(Mix::new(mix).expect("a mix"))
}

fn config() -> MonitorConfig {
    let top = TopConfig { listed: 10, counters: 4_096, interval: Some(Duration::from_secs(10)) };
    MonitorConfig { idle: Duration::from_secs(5), active: Duration::from_secs(20), top: Some(top) }
}

#[test]
fn records_together_are_what_passed_whatever_the_number_of_lanes() {
    let sizes = sizes(source());
    let mut known = None;
    for lanes in LANES {
        let run = run(&config(), lanes, source());
        check(&format!("{lanes:?} lanes"), &sizes, &run);
        let lines = sorted(&run);
        for reason in [EndReason::Idle, EndReason::Active, EndReason::Closed, EndReason::Forced] {
            let count = run.told.records.iter().filter(|record| record.reason == reason).count();
            assert!(count > 20, "{count} records are {reason:?}");
        }
        let known = known.get_or_insert_with(|| lines.clone());
        assert!(lines == *known, "other records on {lanes:?} lanes");
    }
}

#[test]
fn captures_give_the_same_records_on_any_number_of_lanes() {
    let mut records = 0;
    let ran = captures::for_each(|capture| {
        let sizes = sizes(capture.open());
        let mut known = None;
        for lanes in LANES {
            let run = run(&config(), lanes, capture.open());
            let name = format!("{}, {lanes:?} lanes", capture.name());
            records += check(&name, &sizes, &run);
            let lines = sorted(&run);
            let known = known.get_or_insert_with(|| lines.clone());
            if lines != *known {
                let differs = lines.iter().zip(known.iter()).find(|(a, b)| a != b);
                panic!("{name}: {differs:#?}");
            }
        }
    });
    assert!(!ran || records > 100, "{records} records prove little");
}

/// Exact counts of every flow and host from the records.
fn exact(records: &[FlowRecord]) -> HashMap<&'static str, HashMap<String, u64>> {
    let mut exact: HashMap<&str, HashMap<String, u64>> = HashMap::new();
    let mut count = |ranking, name: String, count: u64| {
        *exact.entry(ranking).or_default().entry(name).or_default() += count;
    };
    for FlowRecord { key, ways, .. } in records {
        let packets = ways.iter().map(|way| u64::from(way.packets)).sum();
        let bytes = ways.iter().map(|way| way.bytes).sum();
        count("flows_by_packets", key.to_string(), packets);
        count("flows_by_bytes", key.to_string(), bytes);
        let mut hosts = vec![key.first(), key.second()];
        hosts.dedup();
        for host in hosts {
            count("hosts_by_packets", host.to_string(), packets);
            count("hosts_by_bytes", host.to_string(), bytes);
        }
    }
    exact
}

fn rankings(run: &Run) -> Vec<(&'static str, Ranking)> {
    run.metrics.rankings().map(|(name, ranking)| (name, ranking.clone())).collect()
}

#[test]
fn rankings_are_exact_with_room_for_all_and_keep_their_bounds_with_less() {
    for counters in [4_096, 8] {
        let top = TopConfig { counters, listed: 10, interval: None };
        let run = run(&MonitorConfig { top: Some(top), ..config() }, (2, 1, 0), source());
        let exact = exact(&run.told.records);
        let rankings = rankings(&run);
        assert_eq!(rankings.len(), 4);
        for (name, ranking) in rankings {
            let exact = &exact[name];
            let mut by_count: Vec<_> = exact.iter().map(|(name, count)| (*count, name)).collect();
            by_count.sort_unstable_by(|a, b| b.cmp(a));
            for (count, talker) in &by_count {
                match ranking.of(talker) {
                    Some(known) => assert!(
                        known.least() <= *count && *count <= known.most,
                        "{name}: {talker} has {count}, not {known:?}"
                    ),
                    None => assert!(*count <= ranking.floor(), "{name}: {talker} is not known"),
                }
            }
            let listed = ranking.top();
            assert_eq!(listed.len(), 10);
            if counters == 4_096 {
                let counts = listed.iter().map(|(_, count)| (count.most, count.error));
                let counts: Vec<_> = counts.collect();
                let largest: Vec<_> = by_count[..10].iter().map(|(count, _)| (*count, 0)).collect();
                assert_eq!(counts, largest, "{name}");
            }
        }
    }
}

#[test]
fn intervals_add_up_to_no_more_than_the_run() {
    let run = run(&config(), (2, 1, 0), source());
    let mut intervals: HashMap<u64, Ranking> = HashMap::new();
    for report in &run.told.reports {
        for ranked in report.ranked.iter().filter(|ranked| ranked.name() == "flows_by_packets") {
            ranked.merge_into(intervals.entry(report.interval).or_default());
        }
    }
    // The mix lasts two minutes, and the first and the last interval are not whole.
    assert!((10..=13).contains(&intervals.len()), "{} intervals", intervals.len());
    let exact = &exact(&run.told.records)["flows_by_packets"];
    let mut told = 0;
    for (flow, count) in exact {
        let of_intervals: u64 =
            intervals.values().filter_map(|ranking| Some(ranking.of(flow)?.most)).sum();
        assert!(of_intervals <= *count, "{flow} has {count}, not {of_intervals}");
        told += of_intervals;
    }
    let all: u64 = exact.values().sum();
    assert!(told * 10 > all * 7, "{told} packets of {all} in intervals");
}

#[test]
fn whose_flow_it_is_reads_as_in_the_key() {
    let run = run(&config(), (1, 1, 0), source());
    let inside = |key: &FlowKey| key.first().to_string();
    let inner = run.told.records.iter().filter(|record| {
        let host = inside(&record.key);
        host.starts_with("10.") || host.starts_with("fd")
    });
    assert_eq!(inner.count(), run.told.records.len(), "the inner end comes first");
}
