//! Filters of pcap-filter(7) mean here what they mean to libpcap.
//!
//! Timed: processes.

use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use rheostat_capture::Expression;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};

/// Filters that both read. VLAN tags and IPv6 extension headers are left out: for libpcap, words behind `vlan` mean other bytes,
/// and extension headers hide what is behind them.
const FILTERS: [&str; 56] = [
    "ip",
    "ip6",
    "arp",
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "sctp",
    "proto 47",
    "ip proto \\udp",
    "ip6 proto 17",
    "ip proto 47 or 1",
    "tcp port 443",
    "tcp port 80 or 443",
    "udp dst port 53",
    "port 53",
    "not port 53",
    "src port 443",
    "src or dst port 80",
    "src and dst port 80",
    "dst and src port 80",
    "portrange 80-500",
    "src portrange 400-500 and tcp",
    "tcp dst portrange 53-80",
    "port 80 and not src port 80",
    "port 80 or 443 or 53",
    "host 10.0.0.1",
    "host 10.0.0.1 or 10.1.0.2",
    "host 10.0.0.1 and 10.1.0.2",
    "host 10.0.0.1 and not 10.1.0.2",
    "not host 10.0.0.1 and 10.1.0.2",
    "src 10.0.0.1",
    "dst 10.1.0.2 and icmp",
    "src host 10.0.0.1 or dst host 10.0.0.1",
    "src and dst host 10.0.0.1",
    "host fd00::1",
    "host fd00::1 or 10.0.0.1",
    "src host fd00::1 and tcp port 443",
    "ip host 10.0.0.1",
    "arp host 10.0.0.1",
    "arp and dst 10.1.0.2",
    "net 10.0.0.0/8",
    "net 10",
    "net 10.1",
    "net 10.0/15",
    "net 10.1.0.0 mask 255.255.0.0",
    "src net 10.0.0.0/16",
    "src net 10.0.0.0/16 or 10.1.0.0/16",
    "dst net fd00::/64 and not icmp6",
    "ip6 net fd00::/16",
    "src net 10.0.0.0/8 and not icmp",
    "(tcp or udp) and port 80",
    "tcp && (port 80 || port 443) && ! src host 10.0.0.1",
    "not (tcp or udp or arp)",
    "less 100",
    "greater 100 and tcp",
];

/// Frames of both versions of IP, some of them fragments, and ARP.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let ends: [&[&str]; 2] = [&["10.0.0.1", "10.1.0.2", "11.0.0.3"], &["fd00::1", "fd00:0:0:1::2"]];
    let ports = [(443, 80), (80, 80), (5_000, 53), (499, 501)];
    for (addresses, icmp) in ends.iter().zip([8, 128]) {
        for (from, to) in
            addresses.iter().flat_map(|from| addresses.iter().map(move |to| (from, to)))
        {
            let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
            let mut transports = vec![
                Transport::Icmp { kind: icmp, code: 0, rest: 7 },
                Transport::Protocol(47),
                Transport::Protocol(132),
            ];
            for ports in ports {
                transports.push(Transport::Tcp(TcpHeader { ports, ..TcpHeader::default() }));
                transports.push(Transport::Udp { ports });
            }
            for (number, transport) in transports.into_iter().enumerate() {
                let payload = vec![0xab; 8 * (number + 2)];
                let mut frame = FrameBuilder::new(from, to, transport, Payload::Bytes(&payload));
                frame.ethernet = Some(Ethernet { source: [2; 6], destination: [4; 6], vlan: None });
                frames.push(frame.to_vec());
                if from.is_ipv4() {
                    frame.fragment = Some((0, true));
                    frames.push(frame.to_vec());
                }
            }
            if from.is_ipv4() {
                let later = Transport::Protocol(6);
                let mut frame =
                    FrameBuilder::new(from, to, later, Payload::Bytes(&[0, 80, 0, 80, 1]));
                frame.ethernet = Some(Ethernet { source: [2; 6], destination: [4; 6], vlan: None });
                frame.fragment = Some((64, false));
                frames.push(frame.to_vec());
            }
        }
    }
    for (sender, target) in [([10, 0, 0, 1], [10, 1, 0, 2]), ([11, 0, 0, 3], [10, 0, 0, 1])] {
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 1, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1]);
        frame.extend(sender);
        frame.extend([0; 6]);
        frame.extend(target);
        frames.push(frame);
    }
    frames
}

/// What libpcap says: a line for each filter. `None` if it is not there.
fn libpcap(frames: &[Vec<u8>]) -> Option<Vec<String>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/libpcap.py");
    let mut python = Command::new("python3");
    let python = python.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut python = python.spawn().ok()?;
    let hexadecimal = |frame: &Vec<u8>| frame.iter().map(|byte| format!("{byte:02x}")).collect();
    let frames: Vec<String> = frames.iter().map(hexadecimal).collect();
    let input = format!("{}\n\n{}\n", FILTERS.join("\n"), frames.join("\n"));
    // A script that ends early shows by its status.
    let _ = python.stdin.take()?.write_all(input.as_bytes());
    let output = python.wait_with_output().unwrap();
    if output.status.code() == Some(3) {
        return None;
    }
    assert!(output.status.success(), "libpcap.py ended with {}", output.status);
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn filters_match_the_frames_that_libpcap_says() {
    let frames = frames();
    let Some(expected) = libpcap(&frames) else {
        println!("not run: python3 or libpcap is not installed");
        return;
    };
    assert_eq!(expected.len(), FILTERS.len());
    let pool = Mempool::new(&MempoolConfig { buffers: 1, ..MempoolConfig::default() }).unwrap();
    let mut pool = PoolCache::new(pool);
    for (filter, expected) in FILTERS.iter().zip(expected) {
        let expression: Expression = filter.parse().unwrap();
        let mut matches = String::new();
        for frame in &frames {
            let packet = pool.alloc_from(frame).unwrap();
            matches.push(if expression.matches(&packet) { '1' } else { '0' });
            pool.free(packet);
        }
        assert_eq!(matches, expected, "`{filter}`");
        let all = |bit| expected.chars().all(|matches| matches == bit);
        assert!(!all('0') && !all('1'), "`{filter}` distinguishes no frames: {expected}");
    }
}
