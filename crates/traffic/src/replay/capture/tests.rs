use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use rheostat_io::CaptureWriter;
use rheostat_packet::checksum::{Validity, evaluate_packet};
use rheostat_packet::{
    FlowKey, Headers, LinkType, Mempool, MempoolConfig, Network, PoolCache, Tuple,
};

use super::*;
use crate::{Mix, MixConfig, Replay, ReplayConfig};

fn packets(mut source: impl Source) -> Vec<(u32, LinkType, Vec<u8>)> {
    let mut frame = Vec::new();
    std::iter::from_fn(|| source.next(&mut frame).map(|a| (a.wire_len, a.link, frame.clone())))
        .collect()
}

#[test]
fn a_capture_plays_the_same_from_memory_and_from_its_file_any_number_of_times() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mix.pcap");
    let mut pool =
        PoolCache::new(Mempool::new(&MempoolConfig { buffers: 64, ..Default::default() }).unwrap());
    let writer = CaptureWriter::create(&path).unwrap();
    let mut sink = writer.sink();
    let mix = Mix::new(MixConfig { flows: 100, packets: Some(500), ..MixConfig::default() });
    for (_, _, frame) in packets(mix.unwrap()) {
        let packet = pool.alloc_from(&frame).unwrap();
        sink.take(std::slice::from_ref(&packet));
        pool.free(packet);
    }
    writer.close().unwrap();
    let held = CaptureReel::open(&path).unwrap();
    let file = CaptureReel::holding(&path, 0).unwrap();
    assert!(matches!((&held.contents, &file.contents), (Contents::Held(_), Contents::File { .. })));
    let first = packets(held.play());
    assert_eq!(first.len(), 500);
    // Two readers of one file do not get into each other's way.
    let (mut one, mut other) = (file.play(), file.play());
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (_, _, frame) in &first {
        assert!(one.next(&mut a).is_some() && other.next(&mut b).is_some());
        assert_eq!((&a, &b), (frame, frame));
    }
    assert!(one.next(&mut a).is_none());
    assert_eq!(packets(file.play()), packets(held.play()));
}

/// What a packet is, apart from its sender.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    headers: Headers,
    kind: u8,
    ports: (u16, u16),
    checksum: Option<Validity>,
    ip_is_right: bool,
}

/// A packet's shape, and the key of its flow, ends sorted.
fn shape(
    pool: &mut PoolCache,
    packet: &(u32, LinkType, Vec<u8>),
) -> Option<(Shape, Option<FlowKey>)> {
    let (wire_len, link, frame) = packet;
    let mut buffer = pool.alloc_from(frame).unwrap();
    buffer.set_link(*link);
    buffer.set_wire_len(*wire_len);
    let headers = Headers::parse_bytes(frame, *wire_len as usize, *link).ok();
    let shape = headers.map(|headers| {
        let (kind, key) = match Tuple::of_bytes(frame, &headers) {
            Tuple::Flow(key) => (0, Some(key)),
            Tuple::IcmpError(key) => (1, Some(key)),
            Tuple::Fragment(key, _) => (2, Some(key)),
            Tuple::None => (3, None),
        };
        let sorted = key.map(|key| if key.is_sorted() { key } else { key.reversed() });
        let ports = key.map_or((0, 0), |key| (key.first_port(), key.second_port()));
        let ip = &frame[usize::from(headers.l3)..];
        let ip_is_right = headers.network != Network::Ipv4
            || rheostat_packet::wire::Ipv4Packet::new(ip).unwrap().is_checksum_valid();
        let checksum = evaluate_packet(&buffer, &headers);
        (Shape { headers, kind, ports, checksum, ip_is_right }, sorted)
    });
    pool.free(buffer);
    shape
}

/// Whether an end of the flow is a single host, which gets another name: not so where hosts ask for an
/// address by DHCP.
fn is_renamed(key: &FlowKey) -> bool {
    let is_host = |address: IpAddr| match address {
        IpAddr::V4(v4) => !matches!(v4.octets()[0], 0 | 224..),
        IpAddr::V6(v6) => !(v6.is_unspecified() || v6.is_loopback() || v6.is_multicast()),
    };
    is_host(key.first()) || is_host(key.second())
}

/// Every capture in RHEO_TRACES: renamed packets are what they were but for their addresses, flows are as
/// many in each loop, none is in two, and what belonged together still does.
#[test]
fn captures_keep_their_shape_under_other_names() {
    let Some(folder) = std::env::var_os("RHEO_TRACES") else {
        eprintln!("captures: not run (RHEO_TRACES is not set)");
        return;
    };
    let config = MempoolConfig { buffers: 256, ..MempoolConfig::default() };
    let mut pool = PoolCache::new(Mempool::new(&config).unwrap());
    let mut captures = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(reel) = CaptureReel::open(&path) else { continue };
        let reel: Arc<dyn Reel> = Arc::new(reel);
        let original = packets(reel.play());
        if original.is_empty() {
            continue;
        }
        captures += 1;
        let loops = 4;
        let config = ReplayConfig { loops: Some(loops), ..ReplayConfig::default() };
        let replayed = packets(Replay::new(&reel, &config).unwrap());
        assert_eq!(replayed.len(), original.len() * loops as usize, "{}", path.display());
        let before: Vec<_> = original.iter().map(|packet| shape(&mut pool, packet)).collect();
        let flows = |shapes: &[Option<(Shape, Option<FlowKey>)>]| -> HashSet<FlowKey> {
            shapes.iter().flatten().filter_map(|(_, key)| *key).collect()
        };
        let expected = flows(&before);
        let mut seen = HashSet::new();
        for (number, part) in replayed.chunks(original.len()).enumerate() {
            let after: Vec<_> = part.iter().map(|packet| shape(&mut pool, packet)).collect();
            let mut names: HashMap<FlowKey, FlowKey> = HashMap::new();
            for (index, (old, new)) in before.iter().zip(&after).enumerate() {
                let place = format!("{}, loop {number}, packet {}", path.display(), index + 1);
                assert_eq!(old.is_some(), new.is_some(), "{place}");
                let (Some((old, old_key)), Some((new, new_key))) = (old, new) else {
                    assert_eq!(original[index], part[index], "{place}: a broken packet changed");
                    continue;
                };
                assert_eq!(old, new, "{place}");
                if let (Some(old), Some(new)) = (old_key, new_key) {
                    let known = names.entry(*old).or_insert(*new);
                    assert_eq!(known, new, "{place}: a flow has two names");
                }
            }
            let now = flows(&after);
            assert_eq!(now.len(), expected.len(), "{}: flows of loop {number}", path.display());
            for key in now.iter().filter(|key| is_renamed(key)) {
                assert!(seen.insert(*key), "{}: {key} is in two loops", path.display());
                assert!(!expected.contains(key), "{}: {key} kept its name", path.display());
            }
        }
    }
    eprintln!("captures: {captures} replayed in loops");
    assert!(captures > 0, "there is no capture in RHEO_TRACES");
}
