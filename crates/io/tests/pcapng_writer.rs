//! The pcapng that `rheo capture` writes, read by our own reader and, where it is installed, by tshark.
//!
//! Timed: processes.

use std::process::Command;

use rheostat_capture::{Pcapng, Taken};
use rheostat_io::backend::pcap::read_all;
use rheostat_packet::LinkType;

/// An ARP request, 42 bytes.
const ARP: [u8; 42] = [
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0,
    0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
];

fn file() -> Vec<u8> {
    let mut file = Pcapng::new(Vec::new(), 0).unwrap();
    file.interface("lan before", LinkType::Ethernet).unwrap();
    file.interface("lan after", LinkType::Ethernet).unwrap();
    let before = Taken {
        interface: "lan before",
        link: LinkType::Ethernet,
        nanos: 1_700_000_000_123_456_789,
        inbound: true,
        lane: 1,
        reason: None,
        comment: None,
        wire_len: 42,
        bytes: &ARP,
    };
    file.packet(&before).unwrap();
    let after = Taken { interface: "lan after", inbound: false, comment: Some("data"), ..before };
    file.packet(&after).unwrap();
    let dropped = Taken { interface: "lan dropped", reason: Some("denied"), ..before };
    // Cut to a length that needs padding.
    file.packet(&Taken { bytes: &ARP[..21], ..dropped }).unwrap();
    // The same name for other first bytes is another interface.
    file.packet(&Taken { link: LinkType::Raw, bytes: &[0x45; 20], wire_len: 20, ..dropped })
        .unwrap();
    file.finish(3).unwrap()
}

#[test]
fn our_own_reader_finds_what_was_written() {
    let (records, error) = read_all(&file()).unwrap();
    assert!(error.is_none(), "{error:?}");
    let seen: Vec<_> = records
        .into_iter()
        .map(|record| (record.link, record.time.as_nanos(), record.wire_len, record.bytes))
        .collect();
    let nanos = 1_700_000_000_123_456_789;
    assert_eq!(seen.len(), 4);
    assert_eq!(seen[0], (LinkType::Ethernet, nanos, 42, ARP.to_vec()));
    assert_eq!(seen[2], (LinkType::Ethernet, nanos, 42, ARP[..21].to_vec()));
    assert_eq!(seen[3], (LinkType::Raw, nanos, 20, vec![0x45; 20]));
}

#[test]
fn tshark_reads_names_directions_lanes_and_reasons() {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("not run: tshark is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.pcapng");
    std::fs::write(&path, file()).unwrap();
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(["-T", "fields", "-E", "separator=|"])
        .args(["-e", "frame.interface_name", "-e", "frame.packet_flags_direction"])
        .args(["-e", "frame.comment", "-e", "frame.time_epoch", "-e", "frame.len"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let time = "1700000000.123456789";
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!(lines[0], format!("lan before|0x00000001||{time}|42"));
    assert_eq!(lines[1], format!("lan after|0x00000002|data|{time}|42"));
    assert_eq!(lines[2], format!("lan dropped|0x00000001|dropped: denied, lane 1|{time}|42"));
}
