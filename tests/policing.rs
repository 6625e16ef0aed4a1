//! The policer in whole runs: whatever the number of lanes, each packet fares as it would with buckets
//! that one thread keeps in a map and never forgets.

#[allow(dead_code, reason = "a part of it is for others")]
#[path = "world/spliced.rs"]
mod spliced;

use std::collections::HashMap;
use std::net::IpAddr;

use rheostat::trial::TrialReport;
use rheostat::{Mix, MixConfig, NetworkFunction, Stage, StateLayout, Time, Trial};
use rheostat_io::CaptureSource;
use rheostat_nf::function::Policer;
use rheostat_nf::function::policer::{
    Action, Actions, Bucket, Burst, Classes, Colour, Count, Meter, PolicerConfig, Rate, Subject,
};
use rheostat_packet::{Headers, tuple};
use rheostat_run::Figures;
use rheostat_steer::{Prefix, Whose};
use rheostat_traffic::Source;
use spliced::Spliced;

/// Who shares a bucket: so many that some are always too empty, and so few that some get full.
fn subject(whose: Whose) -> Subject {
    let v4 = if whose == Whose::Outer { 24 } else { 20 };
    Subject { whose, v4, v6: 64 }
}

fn meters() -> [Meter; 2] {
    let rate = |bits| Rate::new(bits).unwrap();
    let burst = |bytes| Burst::new(bytes).unwrap();
    [
        Meter::single_rate(rate(8_000), burst(4_000), burst(6_000)).unwrap(),
        Meter::two_rate(rate(8_000), burst(3_000), rate(24_000), burst(6_000)).unwrap(),
    ]
}

/// A mix of which a minute passes, so that many buckets are forgotten on the way.
fn source() -> impl Source {
    let mix = MixConfig {
        flows: 300,
        packets_per_second: 500,
        packets: Some(30_000),
        ..MixConfig::default()
    };
    Spliced::new(Mix::new(mix).expect("a mix"))
}

fn config(whose: Whose, meter: Meter) -> PolicerConfig {
    let le = "le".parse().expect("a code point");
    PolicerConfig {
        subject: subject(whose),
        from: None,
        count: Count::Ip,
        classes: Classes::new(Some(meter)),
        colours: None,
        actions: Actions { yellow: Action::Remark(le), ..Actions::default() },
        pass_when_full: false,
        pass_non_ip: true,
    }
}

/// Whether an address is inside, as a trial has it.
fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[0] == 10,
        IpAddr::V6(v6) => v6.octets()[0] == 0xfd,
    }
}

/// The packets that are to leave, as their numbers and their colours, and all colours' counts.
fn expected(whose: Whose, meter: Meter, mut source: impl Source) -> (Vec<(u32, Colour)>, [u64; 3]) {
    let mut buckets: HashMap<(IpAddr, u32), Bucket> = HashMap::new();
    let (mut passed, mut counts) = (Vec::new(), [0; 3]);
    let mut frame = Vec::new();
    for number in 0.. {
        let Some(arrival) = source.next(&mut frame) else { break };
        let wire_len = arrival.wire_len as usize;
        let Ok(headers) = Headers::parse_bytes(&frame, wire_len, arrival.link) else { continue };
        let Some(hosts) = tuple::addresses(&frame, &headers) else {
            passed.push((number, Colour::Green));
            continue;
        };
        let (from, to) = (hosts.first(), hosts.second());
        let address = match whose {
            Whose::Source => from,
            Whose::Destination => to,
            Whose::Inner if is_inside(from) != is_inside(to) => {
                [from, to][usize::from(is_inside(to))]
            }
            Whose::Outer if is_inside(from) != is_inside(to) => {
                [from, to][usize::from(is_inside(from))]
            }
            _ => panic!("{from} and {to} are on one side"),
        };
        let length = if address.is_ipv4() { subject(whose).v4 } else { subject(whose).v6 };
        let bucket = buckets
            .entry((Prefix::containing(address, length).address(), headers.zone))
            .or_insert_with(|| meter.full(arrival.time));
        let bytes = headers.end - u32::from(headers.l3);
        let colour = meter.colour(bucket, arrival.time, bytes, Colour::Green);
        counts[colour as usize] += 1;
        if colour != Colour::Red {
            passed.push((number, colour));
        }
    }
    (passed, counts)
}

/// Sends packets through the policer.
fn run(
    whose: Whose,
    meter: Meter,
    lanes: usize,
    source: impl Source + 'static,
) -> (TrialReport, Figures) {
    let policer = Policer::new(config(whose, meter));
    let mut layout = StateLayout::new();
    let chain = Stage::new(policer.clone(), &mut layout).expect("room for one state");
    let trial = Trial { lanes, ..Trial::new(chain, layout) };
    let mut figures = Figures::default();
    let report = trial.run(source, |_, tally| policer.figures(tally, &mut figures));
    (report.expect("memory and lanes"), figures)
}

/// The colour that a frame was marked with.
fn colour(frame: &[u8]) -> Colour {
    let class = u16::from_be_bytes([frame[14], frame[15]]);
    let class = if frame[14] >> 4 == 4 { class as u8 } else { (class >> 4) as u8 };
    if class >> 2 == 1 { Colour::Yellow } else { Colour::Green }
}

#[test]
fn packets_fare_as_with_buckets_that_are_never_forgotten() {
    for whose in [Whose::Source, Whose::Destination, Whose::Inner, Whose::Outer] {
        for meter in meters() {
            let (passed, counts) = expected(whose, meter, source());
            assert!(counts.iter().all(|packets| *packets > 100), "{whose:?}: {counts:?}");
            for lanes in [1, 2, 8] {
                let name = format!("{whose:?}, {meter:?}, {lanes} lanes");
                let (report, figures) = run(whose, meter, lanes, source());
                assert!(report.violations.is_empty(), "{name}: {:?}", report.violations);
                let sent = report.sent.iter().map(|packet| (packet.stamp, colour(&packet.bytes)));
                let mut sent: Vec<_> = sent.collect();
                sent.sort_unstable();
                let differs = sent.iter().zip(&passed).find(|(sent, passed)| sent != passed);
                assert_eq!(differs, None, "{name}: first what left, then what was to");
                assert_eq!(sent.len(), passed.len(), "{name}");
                let counted = ["policer_green", "policer_yellow", "policer_red"]
                    .map(|figure| figures.get(figure));
                assert_eq!(counted, counts, "{name}");
                assert_eq!(report.counters.handoff_out, 0, "{name}");
                assert!(report.counters.flows_ended > 100, "{name}: nothing was forgotten");
            }
        }
    }
}

#[test]
fn captured_packets_fare_alike() {
    let Ok(folder) = std::env::var("RHEO_TRACES") else {
        println!("not run: RHEO_TRACES is not set");
        return;
    };
    let files = std::fs::read_dir(&folder).expect("RHEO_TRACES names a folder");
    let mut compared = 0;
    for path in files.map(|entry| entry.expect("a folder that can be read").path()) {
        let open = || CaptureSource::open(&path);
        let Ok(capture) = open() else { continue };
        if goes_back(capture) {
            continue;
        }
        for whose in [Whose::Source, Whose::Destination] {
            let (passed, counts) = expected(whose, meters()[0], open().expect("opened before"));
            for lanes in [1, 2, 8] {
                let name = format!("{}, {whose:?}, {lanes} lanes", path.display());
                let (report, _) = run(whose, meters()[0], lanes, open().expect("opened before"));
                assert!(report.violations.is_empty(), "{name}: {:?}", report.violations);
                let mut sent: Vec<_> = report.sent.iter().map(|packet| packet.stamp).collect();
                sent.sort_unstable();
                assert!(sent.iter().eq(passed.iter().map(|(number, _)| number)), "{name}");
            }
            compared += usize::from(counts[Colour::Red as usize] > 0);
        }
    }
    println!("{compared} captures compared of which something was dropped");
    assert!(compared > 0, "no captures in {folder}");
}

/// Whether a capture's packets are not in the order of their times: a bucket that was forgotten is
/// then not as full as one that is found.
fn goes_back(mut source: impl Source) -> bool {
    let (mut frame, mut latest) = (Vec::new(), Time::ZERO);
    while let Some(arrival) = source.next(&mut frame) {
        if arrival.time < latest {
            return true;
        }
        latest = arrival.time;
    }
    false
}
