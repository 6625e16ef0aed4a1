use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use rheostat_base::Time;
use rheostat_packet::build::{FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::{FlowKey, Headers, LinkType, Tuple};

use super::*;
use crate::{Limited, Mix, MixConfig};

/// A reel of raw IP packets at these times.
struct Film(Vec<(Time, Vec<u8>)>);

impl Source for Film {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.0.is_empty() {
            return None;
        }
        let (time, bytes) = self.0.remove(0);
        *frame = bytes;
        let wire_len = frame.len() as u32;
        Some(Arrival { time, len: frame.len(), wire_len, link: LinkType::Raw })
    }
}

fn reel(mut source: impl Source) -> Arc<dyn Reel> {
    Arc::new(Recording::of(&mut source))
}

fn some_mix() -> Arc<dyn Reel> {
    let config = MixConfig { flows: 500, packets: Some(10_000), ..MixConfig::default() };
    reel(Mix::new(config).unwrap())
}

fn played(reel: &Arc<dyn Reel>, config: &ReplayConfig) -> Vec<(Arrival, Vec<u8>)> {
    let mut replay = Replay::new(reel, config).unwrap();
    let mut frame = Vec::new();
    std::iter::from_fn(|| replay.next(&mut frame).map(|arrival| (arrival, frame.clone()))).collect()
}

fn flow(frame: &[u8], link: LinkType) -> Option<FlowKey> {
    let headers = Headers::parse_bytes(frame, frame.len(), link).ok()?;
    match Tuple::of_bytes(frame, &headers) {
        Tuple::Flow(key) if key.is_sorted() => Some(key),
        Tuple::Flow(key) => Some(key.reversed()),
        _ => None,
    }
}

#[test]
fn loops_and_copies_share_no_flow_and_have_as_many_each() {
    let reel = some_mix();
    let config = ReplayConfig { loops: Some(3), copies: 2, ..ReplayConfig::default() };
    let mut flows: HashMap<FlowKey, u32> = HashMap::new();
    let packets = played(&reel, &config);
    assert_eq!(packets.len(), 60_000);
    for (arrival, frame) in &packets {
        *flows.entry(flow(frame, arrival.link).unwrap()).or_default() += 1;
    }
    let once = played(&reel, &ReplayConfig { loops: Some(1), ..ReplayConfig::default() });
    let of_one: HashSet<_> = once.iter().map(|(a, frame)| flow(frame, a.link).unwrap()).collect();
    // One copy begins at its beginning and has three sets of names, the other midway and has four. What is
    // cut there belongs to the flows of two sets.
    let (sets, cut) = (6 * of_one.len(), flows.len() - 6 * of_one.len());
    assert!(
        cut > 0 && cut < of_one.len(),
        "{} flows, {sets} without those that are cut",
        flows.len()
    );
}

#[test]
fn a_loop_takes_as_long_as_the_rate_says_and_keeps_its_rhythm() {
    let at = |ms: u64| (Time::from_secs(50) + std::time::Duration::from_millis(ms), vec![0x45]);
    let film = reel(Film(vec![at(0), at(30), at(60), at(90)]));
    let config = ReplayConfig { packets_per_second: 4, loops: Some(2), ..ReplayConfig::default() };
    let times: Vec<_> = played(&film, &config).iter().map(|(a, _)| a.time.as_nanos()).collect();
    assert_eq!(times, [0, 250, 500, 750, 1_000, 1_250, 1_500, 1_750].map(|ms| ms * 1_000_000));
    let uneven = reel(Film(vec![at(0), at(10), at(90)]));
    let config = ReplayConfig { packets_per_second: 30, loops: Some(2), ..config };
    let times: Vec<_> = played(&uneven, &config).iter().map(|(a, _)| a.time.as_nanos()).collect();
    // 90 ms and, on average, 45 between the loops become 100.
    let expected = [0, 7_407_407, 66_666_666, 100_000_000, 107_407_407, 166_666_666];
    assert_eq!(times, expected);
}

#[test]
fn stamps_of_one_moment_are_spread_and_wrong_ones_survived() {
    let at = |seconds: u64| (Time::from_secs(seconds), vec![0x45]);
    let same = reel(Film(vec![at(9), at(9)]));
    let config = ReplayConfig { packets_per_second: 10, loops: Some(2), ..ReplayConfig::default() };
    let times: Vec<_> = played(&same, &config).iter().map(|(a, _)| a.time.as_nanos()).collect();
    assert_eq!(times, [0, 100_000_000, 200_000_000, 300_000_000]);
    let wrong = reel(Film(vec![at(9), at(u64::MAX / 2_000_000_000), at(8), at(9), at(10)]));
    let config = ReplayConfig { loops: Some(1), ..config };
    let times: Vec<_> = played(&wrong, &config).iter().map(|(a, _)| a.time).collect();
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
    assert!(*times.last().unwrap() < Time::from_millis(500), "{times:?}");
}

#[test]
fn copies_together_have_the_rate_and_do_not_keep_step() {
    let reel = some_mix();
    let config =
        ReplayConfig { packets_per_second: 1_000_000, copies: 4, ..ReplayConfig::default() };
    let second = std::time::Duration::from_secs(1);
    let mut replay = Limited::new(Replay::new(&reel, &config).unwrap(), None, Some(second / 2));
    let (mut count, mut together) = (0_u64, 0_u64);
    let (mut frame, mut last) = (Vec::new(), Time::NEVER);
    while let Some(arrival) = replay.next(&mut frame) {
        count += 1;
        together += u64::from(arrival.time == last);
        last = arrival.time;
    }
    // Half a second is 12.5 loops: the part of a loop may have more or fewer than its share.
    assert!(count.abs_diff(500_000) < 4_000, "{count}");
    assert!(together < count / 100, "{together} of {count} packets came at the time of another");
}

#[test]
fn a_seed_names_one_replay() {
    let reel = some_mix();
    let config = ReplayConfig { loops: Some(2), copies: 2, ..ReplayConfig::default() };
    let first = played(&reel, &config);
    assert_eq!(first, played(&reel, &config));
    assert_ne!(first, played(&reel, &ReplayConfig { seed: 2, ..config }));
}

#[test]
fn replays_that_make_no_sense_are_refused() {
    let refused = |reel, config: &ReplayConfig| Replay::new(&reel, config).err().unwrap();
    let none = ReplayConfig { copies: 0, ..ReplayConfig::default() };
    assert_eq!(refused(some_mix(), &none), SourceError::Copies(0));
    let still = ReplayConfig { packets_per_second: 0, ..ReplayConfig::default() };
    assert_eq!(refused(some_mix(), &still), SourceError::Rate);
    assert_eq!(refused(reel(Film(vec![])), &ReplayConfig::default()), SourceError::Empty);
}

fn address(v6: bool, bits: u128) -> IpAddr {
    if v6 { Ipv6Addr::from_bits(bits).into() } else { Ipv4Addr::from_bits(bits as u32).into() }
}

fn packet(kind: usize, from: (IpAddr, u16), to: (IpAddr, u16), payload: usize) -> Vec<u8> {
    let ports = (from.1, to.1);
    let transport = match kind {
        0 => Transport::Tcp(TcpHeader { ports, seq: 99, ..TcpHeader::default() }),
        1 => Transport::Udp { ports },
        _ => {
            let kind = if from.0.is_ipv6() { 128 } else { 8 };
            Transport::Icmp { kind, code: 0, rest: u32::from(from.1) << 16 | 5 }
        }
    };
    FrameBuilder::new(from.0, to.0, transport, Payload::Pattern(payload)).to_vec()
}

fn error(router: IpAddr, quote: &[u8]) -> Vec<u8> {
    let kind = if router.is_ipv6() { 1 } else { 3 };
    let transport = Transport::Icmp { kind, code: 1, rest: 0 };
    FrameBuilder::new(router, router, transport, Payload::Bytes(quote)).to_vec()
}

fn rename(names: &Names, frame: &mut [u8]) -> bool {
    let wire_len = frame.len() as u32;
    names.rename(frame, wire_len, LinkType::Raw)
}

proptest! {
    /// A renamed packet, and a renamed error about it, are those that would have been built for the renamed
    /// hosts.
    #[test]
    fn renaming_is_building_anew(
        v6: bool,
        kind in 0_usize..3,
        ends in any::<[(u128, u16); 2]>(),
        router: u128,
        payload in 0_usize..64,
        seed: u64,
        number: u64,
    ) {
        let names = Names::new(seed, number);
        let [from, mut to] = ends.map(|(bits, port)| (address(v6, bits), port));
        if kind == 2 {
            to.1 = from.1;
        }
        let renamed = |(host, port)| (names.of(host), port);
        let expected = packet(kind, renamed(from), renamed(to), payload);
        let mut frame = packet(kind, from, to, payload);
        let mut about = error(address(v6, router), &frame);
        prop_assert!(rename(&names, &mut frame));
        prop_assert_eq!(&frame, &expected);
        prop_assert!(rename(&names, &mut about));
        prop_assert_eq!(about, error(names.of(address(v6, router)), &expected));
    }

    /// Fragments, whichever of them has the checksum, are those of the renamed datagram.
    #[test]
    fn renamed_fragments_are_those_of_the_renamed_datagram(
        v6: bool,
        kind in 0_usize..2,
        ends in any::<[(u128, u16); 2]>(),
        payload in 30_usize..64,
        cut in 1_usize..3,
        number: u64,
    ) {
        let names = Names::new(1, number);
        let [from, to] = ends.map(|(bits, port)| (address(v6, bits), port));
        let renamed = |(host, port)| (names.of(host), port);
        let (header, cut) = (if v6 { 40 } else { 20 }, cut * 8);
        let fragments = |from: (IpAddr, u16), to: (IpAddr, u16)| {
            let whole = packet(kind, from, to, payload);
            let (first, last) = whole[header..].split_at(cut);
            let protocol = Transport::Protocol(if kind == 0 { 6 } else { 17 });
            [(first, (0, true)), (last, (cut as u16, false))].map(|(bytes, fragment)| {
                let bytes = Payload::Bytes(bytes);
                let builder = FrameBuilder::new(from.0, to.0, protocol, bytes);
                FrameBuilder { fragment: Some(fragment), ..builder }.to_vec()
            })
        };
        for (mut frame, expected) in
            fragments(from, to).into_iter().zip(fragments(renamed(from), renamed(to)))
        {
            prop_assert!(rename(&names, &mut frame));
            prop_assert_eq!(frame, expected);
        }
    }

    /// A checksum that the interface was still to compute covers the renamed pseudo header.
    #[test]
    fn a_partial_checksum_stays_partial(v6: bool, ends in any::<[(u128, u16); 2]>(), number: u64) {
        let names = Names::new(1, number);
        let [from, to] = ends.map(|(bits, port)| (address(v6, bits), port));
        let partial = |from: (IpAddr, u16), to: (IpAddr, u16)| {
            let mut frame = packet(0, from, to, 9);
            let l4 = if v6 { 40 } else { 20 };
            let mut sum = rheostat_packet::checksum::Sum::default();
            sum.add_pseudo_header(from.0, to.0, 6, (frame.len() - l4) as u32);
            frame[l4 + 16..l4 + 18].copy_from_slice(&sum.folded().to_be_bytes());
            frame
        };
        let mut frame = partial(from, to);
        rename(&names, &mut frame);
        prop_assert_eq!(frame, partial((names.of(from.0), from.1), (names.of(to.0), to.1)));
    }

    #[test]
    fn any_bytes_survive_and_broken_ones_do_not_change(
        bytes in prop::collection::vec(any::<u8>(), 0..100), number: u64,
    ) {
        let mut frame = bytes.clone();
        let renamed = Names::new(1, number).rename(&mut frame, bytes.len() as u32, LinkType::Raw);
        prop_assert_eq!(frame.len(), bytes.len());
        prop_assert!(renamed || frame == bytes);
    }
}
