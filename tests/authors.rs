//! What authors of functions test with: packets, captures and sources through a `Harness`, and `cases!`.

use std::path::PathBuf;

use rheostat::harness::HarnessError;
use rheostat::{
    AnyChain, Attack, AttackConfig, DropReason, Firewall, FirewallConfig, Harness, Limited, Stage,
    StateLayout,
};

fn harness(lanes: usize) -> Harness<Stage<Firewall>> {
    let mut layout = StateLayout::new();
    let firewall = Stage::new(Firewall::new(FirewallConfig::default()), &mut layout).unwrap();
    Harness { lanes, ..Harness::new(firewall, layout) }
}

#[test]
fn each_packet_has_its_outcome_on_any_number_of_lanes() {
    let packets = [
        "10.0.0.1:1 > 198.51.100.1:80 tcp S seq 1",
        "198.51.100.1:80 > 10.0.0.1:1 tcp SA seq 9 ack 2",
        "[2001:db8::9]:53 > [fd00::1]:9 udp len 3",
        "at 2s fd00::1 > 2001:db8::1 icmp 128 0 id 7",
        "198.51.100.1:80 > 10.0.0.1:1 tcp A seq 99999999 ack 2",
    ];
    for lanes in [1, 2, 4] {
        let report = harness(lanes).packets(packets).unwrap();
        let outcomes: Vec<_> = report.outcomes.iter().map(ToString::to_string).collect();
        let expected = [
            "sent 10.0.0.1:1 > 198.51.100.1:80 tcp S seq 1",
            "sent 198.51.100.1:80 > 10.0.0.1:1 tcp SA seq 9 ack 2",
            "drop denied",
            "sent fd00::1 > 2001:db8::1 icmp 128 0 id 7",
            "drop tcp_invalid",
        ];
        assert_eq!(outcomes, expected, "{lanes} lanes");
        assert_eq!(report.outcomes[2].dropped, [DropReason::Denied]);
        // The bytes are those of the packet, and the order is that of the packets.
        assert_eq!(report.sent.len(), 3);
        assert_eq!(report.sent[2], report.outcomes[3].sent[0]);
        assert_eq!(report.sent[0].time.as_nanos(), 1_000);
        assert_eq!(report.sent[2].time.as_nanos(), 2_000_000_000);
        assert!(report.violations.is_empty(), "{:?}", report.violations);
    }
}

#[test]
fn frames_go_beside_words_and_wrong_words_are_an_error() {
    let report = harness(1).packets([vec![0xff; 60]]).unwrap();
    assert_eq!(report.outcomes[0].to_string(), "drop not_ip");
    let udp = "10.0.0.1:1 > 10.0.0.2:2 udp";
    for (words, part) in [
        ("10.0.0.1:1 > 10.0.0.2:2 sctp", "packet 2: `sctp` is not tcp"),
        ("10.0.0.1:1 > [fd00::1]:2 udp", "packet 2: both addresses"),
        ("at 0s 10.0.0.1:1 > 10.0.0.2:2 udp", "packet 2: time goes back"),
        ("", "packet 2: a packet is"),
    ] {
        let error = harness(1).packets([udp, words]).unwrap_err();
        assert!(matches!(error, HarnessError::Packet { number: 2, .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// A pcap file (Ethernet, microseconds) with one packet, of which `kept` bytes are there.
fn capture(name: &str, kept: usize) -> PathBuf {
    let words = "10.0.0.1:1 > 198.51.100.1:53 udp len 9";
    let report = harness(1).packets([words]).unwrap();
    let frame = &report.sent[0].bytes;
    let len = frame.len() as u32;
    let header = [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 1, 5, 0, len, len];
    let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(frame);
    bytes.truncate(kept);
    let path = std::env::temp_dir().join(format!("rheostat-{}-{name}.pcap", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_capture_runs_and_a_bad_one_is_an_error() {
    let run = |path: PathBuf| {
        let report = harness(2).capture(&path);
        let _ = std::fs::remove_file(path);
        report
    };
    let report = run(capture("whole", usize::MAX)).unwrap();
    assert_eq!((report.sent.len(), report.counters.received), (1, 1));
    let error = run(capture("cut", 70)).unwrap_err();
    assert!(matches!(error, HarnessError::Capture { .. }), "{error}");
    assert!(error.to_string().contains("cut off"), "{error}");
    let error = run(capture("short", 3)).unwrap_err();
    assert!(matches!(error, HarnessError::Open(_)), "{error}");
    let error = harness(2).capture("/no/such/file.pcap").unwrap_err();
    assert!(error.to_string().contains("/no/such/file.pcap"), "{error}");
}

#[test]
fn an_attack_is_a_source_like_any_other() {
    let attack = Attack::new(&AttackConfig::default()).unwrap();
    let report = harness(2).source(Limited::new(attack, Some(500), None)).unwrap();
    assert_eq!(report.counters.received, 500);
    assert!(report.violations.is_empty());
}

fn chain(_lanes: usize) -> Result<AnyChain, Box<dyn std::error::Error>> {
    let mut layout = StateLayout::new();
    let firewall = Stage::new(Firewall::new(FirewallConfig::default()), &mut layout)?;
    Ok(AnyChain::new(firewall, layout))
}

#[test]
fn cases_run_against_a_chain_of_ones_own() {
    rheostat::cases!("tests/nf/tcp-handshake.case", chain);
    rheostat::cases!("tests/nf/tcp-life.case", chain);
    rheostat::cases!("tests/nf/nat-tcp.case");
}

#[test]
#[should_panic(expected = "nat-tcp.case")]
fn a_case_with_a_chain_is_refused_where_one_is_given() {
    rheostat::cases!("tests/nf/nat-tcp.case", chain);
}
