use rheostat_base::Time;
use rheostat_traffic::Limited;

use super::*;
use crate::scenario::Scenario;

/// One of each kind, as a scenario has it.
const KINDS: [&str; 6] = [
    "kind = \"mix\"\nflows = 1000",
    "kind = \"replay\"\nfile = \"some.pcap\"\ncopies = 2",
    "kind = \"imix\"\nflows = 1000\nipv6_share = 0.5",
    "kind = \"elephant\"\nshare = 0.3\nflows = 1000",
    "kind = \"flash-crowd\"\nfactor = 100\nat = \"50ms\"\nlasting = \"20ms\"\nevery = \"200ms\"\nflows = 1000",
    "kind = \"attack\"\nattack = \"syn-flood\"\nshare = 0.5\nflows = 1000",
];

fn traffic(text: &str) -> Result<Traffic, String> {
    let scenario = format!(
        "title = \"t\"\nquestion = \"q?\"\npolicies = [\"rss\"]\nlanes = [1]\nloads = [0.5]\nwork = \"1us\"\n\
         warm_up = \"0s\"\nduration = \"1s\"\nseeds = [1]\n[traffic]\n{text}\n"
    );
    Scenario::parse("s.toml", &scenario)
        .map(|scenario| scenario.traffic)
        .map_err(|error| error.to_string())
}

/// Packets within this time at 500,000 per second.
fn count(traffic: &Traffic, duration: Duration) -> u64 {
    let source = traffic.source(500_000, 3).unwrap();
    let mut source = Limited::new(source, None, Some(duration));
    let (mut frame, mut count, mut last) = (Vec::new(), 0, Time::ZERO);
    while let Some(arrival) = source.next(&mut frame) {
        assert!(arrival.time >= last, "an open loop goes forward");
        last = arrival.time;
        count += 1;
    }
    count
}

#[test]
fn every_kind_has_the_rate_asked_for_on_average() {
    let folder = tempfile::tempdir().unwrap();
    // A capture of three empty IP packets, 10 ms apart, in the old format.
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    capture.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 101, 0, 0, 0]);
    for packet in 0..3_u32 {
        for word in [7, packet * 10_000, 1, 1] {
            capture.extend(u32::to_le_bytes(word));
        }
        capture.push(0x45);
    }
    std::fs::write(folder.path().join("some.pcap"), capture).unwrap();
    for kind in KINDS {
        let mut traffic = traffic(kind).unwrap();
        traffic.resolve(folder.path());
        // Two rounds of the flash crowd: 200,000 packets with a deviation of 447.
        let counted = count(&traffic, Duration::from_millis(400));
        assert!(counted.abs_diff(200_000) < 5 * 447, "{kind}: {counted} packets");
    }
}

#[test]
fn what_cannot_be_made_is_refused_before_anything_runs() {
    for (kind, part) in [
        ("kind = \"elephant\"\nshare = 1.5\nflows = 10", "`share` is 1.5"),
        ("kind = \"replay\"\nfile = \"x\"\ncopies = 0", "0 copies"),
        ("kind = \"imix\"\nflows = 0", "0 flows"),
        ("kind = \"attack\"\nattack = \"smurf\"\nshare = 0.5\nflows = 10", "smurf"),
        (
            "kind = \"attack\"\nattack = \"scan\"\nshare = 0.5\nflows = 10\ntarget = \"here\"",
            "address",
        ),
        (
            "kind = \"flash-crowd\"\nfactor = 1\nat = \"1s\"\nlasting = \"1s\"\nflows = 10",
            "1 times",
        ),
        ("kind = \"elephants\"\nflows = 10", "unknown variant `elephants`"),
    ] {
        let message = traffic(kind).unwrap_err();
        assert!(message.contains(part), "{kind}: {message}");
    }
}

#[test]
fn a_capture_that_is_not_there_is_named() {
    let mut traffic = traffic(KINDS[1]).unwrap();
    traffic.resolve(Path::new("nowhere"));
    let message = traffic.source(1_000, 1).err().unwrap().to_string();
    assert!(message.contains("nowhere/some.pcap"), "{message}");
}
