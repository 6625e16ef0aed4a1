use std::net::Ipv4Addr;
use std::sync::Arc;

use rheostat_base::{DeviceId, LaneId, ShardId};
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::{BURST, HashKind, Mempool, MempoolConfig, PoolCache, usual};
use rheostat_state::{FlowTable, FragmentConfig, FragmentTracker, Probe};
use rheostat_state::{Shard, StateLayout, TableConfig};
use rheostat_steer::{
    HashKey, HashOptions, Orientation, PacketSet, Prefix, Protocols, Side, Translation, Whose,
    hash_packet,
};

use super::plain::LAG;
use super::*;
use crate::lane::batch::Spare;
use crate::load::{LoadReporting, ShardLoads};
use crate::migrate::Ownership;
use crate::shard_set::ShardSet;

const INSIDE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const LINK: Ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan: None };

fn classify(set: PacketSet, frame: &[u8]) -> PacketInfo {
    let [info, slowly] = both_ways(set, frame);
    let [told, slowly_told] = [info, slowly].map(|info| format!("{info:?}"));
    assert_eq!(told, slowly_told, "usual packets are found out about in two ways");
    info
}

/// As packets are classified, and as unusual ones are.
fn both_ways(set: PacketSet, frame: &[u8]) -> [PacketInfo; 2] {
    let pool = Mempool::new(&MempoolConfig { buffers: 64, ..MempoolConfig::default() }).unwrap();
    let mut cache = PoolCache::new(pool);
    let packet = cache.alloc_from(frame).unwrap();
    let steering = Steering::new(&HashKey::MICROSOFT, 128, 128, vec![Orientation::Inside]).unwrap();
    let steering = steering.with_sets(&set, &set).unwrap();
    let hasher = FlowHasher::fixed();
    let by = Classifier {
        steering: &steering,
        hasher: &hasher,
        time: TimeSource::Poll,
        now: Time::ZERO,
        unusual: Unusual::default(),
    };
    let info = by.one(&packet).unwrap();
    let slowly = PacketInfo::unusual(&packet, &by, Time::ZERO).unwrap();
    cache.free(packet);
    [info, slowly]
}

fn frame(transport: Transport<'_>, fragment: Option<(u16, bool)>) -> Vec<u8> {
    let packet = FrameBuilder::new(INSIDE.into(), OUTSIDE.into(), transport, Payload::Pattern(24));
    FrameBuilder { fragment, ..packet.with_ethernet(LINK) }.to_vec()
}

fn udp() -> Vec<u8> {
    frame(Transport::Udp { ports: (1, 2) }, None)
}

fn tcp() -> Vec<u8> {
    frame(Transport::Tcp(TcpHeader { ports: (7, 8), ..TcpHeader::default() }), None)
}

fn v6() -> Vec<u8> {
    let [inside, outside] = ["fd00::1", "2001:db8::1"].map(|address| address.parse().unwrap());
    let transport = Transport::Udp { ports: (1, 2) };
    FrameBuilder::new(inside, outside, transport, Payload::Pattern(24)).with_ethernet(LINK).to_vec()
}

fn tagged() -> Vec<u8> {
    let transport = Transport::Udp { ports: (1, 2) };
    let link = Ethernet { vlan: Some(7), ..LINK };
    let packet = FrameBuilder::new(INSIDE.into(), OUTSIDE.into(), transport, Payload::Pattern(24));
    packet.with_ethernet(link).to_vec()
}

/// An ICMP error about a UDP packet from outside.
fn unreachable() -> Vec<u8> {
    let about = FrameBuilder::new(
        OUTSIDE.into(),
        INSIDE.into(),
        Transport::Udp { ports: (2, 1) },
        Payload::Pattern(8),
    );
    let (quoted, transport) = (about.to_vec(), Transport::Icmp { kind: 3, code: 3, rest: 0 });
    let error =
        FrameBuilder::new(INSIDE.into(), OUTSIDE.into(), transport, Payload::Bytes(&quoted));
    error.with_ethernet(LINK).to_vec()
}

/// The shards that `lane` owns.
fn shards_of(lane: LaneId, owners: &[LaneId], hasher: FlowHasher) -> ShardSet {
    let mut shards = ShardSet::new(owners.len());
    for (number, _) in owners.iter().enumerate().filter(|(_, owner)| **owner == lane) {
        let table = TableConfig { capacity: 1, aliases: false };
        let table = FlowTable::new(table, Arc::new(StateLayout::new()), hasher).unwrap();
        let fragments = FragmentTracker::new(FragmentConfig::default());
        let id = ShardId(number as u16);
        shards.install(Box::new(Shard { id, table, fragments, local: () }));
    }
    shards
}

fn arp() -> Vec<u8> {
    let mut frame = [&[4; 6][..], &[2; 6], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    frame.resize(60, 0);
    frame
}

/// A frame of ICMP that is neither a query nor an error.
fn unknown_icmp() -> Vec<u8> {
    frame(Transport::Icmp { kind: 200, code: 0, rest: 0 }, None)
}

fn router_solicitation() -> Vec<u8> {
    let [from, routers] = ["fe80::7", "ff02::2"].map(|address| address.parse().unwrap());
    let transport = Transport::Icmp { kind: 133, code: 0, rest: 0 };
    FrameBuilder::new(from, routers, transport, Payload::Pattern(8)).with_ethernet(LINK).to_vec()
}

fn unknown_ethertype() -> Vec<u8> {
    let mut frame = arp();
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

/// A replay waits for every packet that the lane places elsewhere than the device did, and, of whole packets, for no other.
#[test]
fn packets_of_another_shard_than_their_buckets_are_misdirected() {
    let pool = Mempool::new(&MempoolConfig { buffers: 64, ..MempoolConfig::default() }).unwrap();
    let mut cache = PoolCache::new(pool);
    let hasher = FlowHasher::fixed();
    let ways = [
        (PacketSet::five_tuple(), PacketSet::five_tuple()),
        (PacketSet::five_tuple(), PacketSet::inner_endpoint()),
        (PacketSet::NONE, PacketSet::NONE),
        (PacketSet::none_with_ports(), PacketSet::none_with_ports()),
        (PacketSet::five_tuple().only(Protocols::TCP), PacketSet::five_tuple()),
        (PacketSet::stations(), PacketSet::stations()),
        (PacketSet::station(Whose::Source), PacketSet::station(Whose::Source)),
        (PacketSet::address(Whose::Outer, 24, 64), PacketSet::address(Whose::Outer, 24, 64)),
        (PacketSet::address(Whose::Source, 24, 64), PacketSet::address(Whose::Source, 24, 64)),
    ];
    let echo = frame(Transport::Icmp { kind: 8, code: 0, rest: 7 << 16 }, None);
    let fragment = frame(Transport::Protocol(17), Some((8, true)));
    let whole = [udp(), tcp(), v6(), tagged(), echo, arp(), unknown_ethertype(), unknown_icmp()];
    let frames = whole.into_iter().chain([router_solicitation(), unreachable(), fragment]);
    let frames: Vec<_> = frames.collect();
    let mut elsewhere = 0;
    for (flow, place) in ways {
        let sides = vec![Orientation::Inside, Orientation::Outside];
        let steering = Steering::new(&HashKey::MICROSOFT, 128, 128, sides).unwrap();
        let steering = steering.with_sets(&flow, &place).unwrap();
        let by = Classifier {
            steering: &steering,
            hasher: &hasher,
            time: TimeSource::Packet,
            now: Time::ZERO,
            unusual: Unusual::default(),
        };
        let options = [HashOptions::Full, HashOptions::AddressesOnly];
        let ways = options.into_iter().flat_map(|option| [0, 1].map(|device| (option, device)));
        for ((options, device), frame) in ways.flat_map(|way| frames.iter().map(move |f| (way, f)))
        {
            let device = DeviceId(device);
            let mut packet = cache.alloc_from(frame).unwrap();
            packet.set_device(device);
            let headers = Headers::parse(&packet).unwrap();
            let named = steering.tuple(frame, &headers, packet.link());
            let outer = rheostat_packet::tuple::addresses(frame, &headers);
            let (hash, kind) = hash_packet(&steering, options, device, &named, outer);
            packet.set_hash(hash, kind);
            let info = by.one(&packet).unwrap();
            let is_elsewhere = info.shard != steering.shard_of_hash(hash);
            let is_whole = !matches!(named, Tuple::Fragment(..) | Tuple::IcmpError(_));
            let is_misdirected = steering.is_misdirected(&packet, &headers);
            assert!(is_misdirected || !is_elsewhere, "{info:?}");
            assert!(is_elsewhere || !is_misdirected || !is_whole, "{info:?}");
            elsewhere += usize::from(is_elsewhere && is_whole);
            cache.free(packet);
        }
    }
    assert!(elsewhere > 40, "{elsewhere} whole packets belong elsewhere");
}

#[test]
fn without_a_set_every_packet_is_an_orphan_where_its_tuple_would_be() {
    let tuple = classify(PacketSet::five_tuple(), &udp());
    assert_eq!(tuple.kind(), PacketKind::Flow);
    let non_flow = classify(PacketSet::NONE, &udp());
    assert_eq!(non_flow.kind(), PacketKind::NonFlow);
    assert_eq!(
        (non_flow.shard, non_flow.key(), non_flow.side()),
        (tuple.shard, tuple.key(), tuple.side())
    );
    // No other packet is waited for: each goes by what it has.
    let fragment = frame(Transport::Protocol(17), Some((8, true)));
    for frame in [fragment.clone(), unreachable(), arp()] {
        assert_eq!(classify(PacketSet::NONE, &frame).kind(), PacketKind::NonFlow);
    }
    assert_ne!(classify(PacketSet::NONE, &arp()).shard, ShardId(0));
    // With ports, they are what flows would have.
    let set = PacketSet::none_with_ports();
    assert_eq!(classify(set, &fragment).kind(), PacketKind::Fragment);
    let error = classify(set, &unreachable());
    assert_eq!((error.kind(), error.key()), (PacketKind::NonFlow, tuple.key()));
}

#[test]
fn packets_of_other_protocols_have_no_flow_beside_those_that_have() {
    let tcp = PacketSet::five_tuple().only(Protocols::TCP);
    let both = PacketSet::five_tuple().only(Protocols::TCP_UDP);
    for frame in [udp(), unreachable()] {
        let (plain, non_flow) = (classify(PacketSet::five_tuple(), &frame), classify(tcp, &frame));
        assert_eq!((non_flow.kind(), non_flow.shard), (PacketKind::NonFlow, plain.shard));
        assert_eq!(classify(both, &frame).kind(), plain.kind());
    }
    assert_eq!(classify(tcp, &arp()).kind(), PacketKind::NonFlow);
}

/// As ever, where all packets with a tuple have flows: what has none comes to the first shard.
#[test]
fn frames_without_ip_stay_on_the_first_shard_beside_whole_sets() {
    let info = classify(PacketSet::five_tuple(), &arp());
    assert_eq!((info.kind(), info.shard), (PacketKind::NonFlow, ShardId(0)));
    assert_eq!((info.key(), info.side()), (FlowKey::NONE, Side::Inside));
}

#[test]
fn frames_of_two_stations_are_one_flow() {
    let [udp, arp] = [udp(), arp()].map(|frame| classify(PacketSet::stations(), &frame));
    assert_eq!((udp.kind(), arp.kind()), (PacketKind::Flow, PacketKind::Flow));
    assert_ne!(udp.key(), arp.key(), "the Ethertype counts");
    let set = PacketSet::station(Whose::Source);
    let [udp, arp] = [super::tests::udp(), super::tests::arp()].map(|frame| classify(set, &frame));
    assert_eq!((udp.key(), udp.shard), (arp.key(), arp.shard));
}

#[test]
fn a_burst_of_all_kinds_is_what_each_of_them_is_alone() {
    let pool = Mempool::new(&MempoolConfig { buffers: 64, ..MempoolConfig::default() }).unwrap();
    let mut cache = PoolCache::new(pool);
    let steering = Steering::new(&HashKey::MICROSOFT, 128, 128, vec![Orientation::Inside]).unwrap();
    let hasher = FlowHasher::fixed();
    let fragment = frame(Transport::Protocol(17), Some((8, true)));
    // A header that claims more than there is.
    let mut long = udp();
    long[16] = 0xff;
    let frames = [udp(), long.clone(), arp(), v6(), unreachable(), long, fragment, udp()];
    let mut burst = Vec::new();
    for (frame, second) in frames.iter().zip(1..) {
        let mut packet = cache.alloc_from(frame).unwrap();
        packet.set_timestamp(Time::from_secs(second));
        burst.push(packet);
    }
    for time in [TimeSource::Packet, TimeSource::Poll] {
        let by = Classifier {
            steering: &steering,
            hasher: &hasher,
            time,
            now: Time::ZERO,
            unusual: Unusual::default(),
        };
        let mut infos = [PacketInfo::default(); 8];
        let malformed = by.all(Places::first(8), &burst, &mut infos);
        for (place, packet) in burst.iter().enumerate() {
            match by.one(packet) {
                Ok(alone) => assert_eq!(format!("{alone:?}"), format!("{:?}", infos[place])),
                Err(_) => assert_eq!(infos[place].now, time.of(packet, Time::ZERO)),
            }
            assert_eq!(malformed.contains(place), [1, 5].contains(&place));
        }
        let kinds = infos.map(|info| info.kind());
        assert_eq!(kinds[3..5], [PacketKind::Flow, PacketKind::IcmpError]);
    }
    burst.into_iter().for_each(|packet| cache.free(packet));
}

/// Of plain packets the fast path finds out what the general code does, and it leaves all others to it.
#[test]
fn plain_packets_are_found_out_about_as_others_are() {
    let pool = Mempool::new(&MempoolConfig { buffers: 64, ..MempoolConfig::default() }).unwrap();
    let mut cache = PoolCache::new(pool);
    let sides = vec![Orientation::Inside, Orientation::Outside];
    let steering = Steering::new(&HashKey::MICROSOFT, 128, 128, sides).unwrap();
    let address = PacketSet::address(Whose::Outer, 24, 64);
    let reduced = steering.clone().with_sets(&address, &address).unwrap();
    // Devices do not know external addresses, nor what endpoints are translated to.
    let external: Prefix = "192.0.2.1".parse().unwrap();
    let mut translation = Translation::new([external].into_iter().collect());
    let mut by_host = translation.clone();
    by_host.place = Some(PacketSet::five_tuple());
    let tuple = PacketSet::five_tuple();
    let place = tuple.common(&PacketSet::address(Whose::Inner, 32, 64));
    let placed_by_host = steering.clone().with_sets(&tuple, &place).unwrap();
    let placed_by_host = placed_by_host.with_translation(by_host);
    translation.fix(17, (INSIDE, 1), (OUTSIDE, 9));
    let fixed = steering.clone().with_translation(translation);
    let hasher = FlowHasher::fixed();
    let sides = [Side::Inside, Side::Outside].into_iter().enumerate();
    let mut misdirected = 0;
    // A burst may begin with a packet of any kind.
    let firsts = [0, 1, 2, 6, 7];
    let steerings = [&steering, &reduced, &placed_by_host, &fixed];
    let cases = sides.flat_map(|side| steerings.map(|steering| (side, steering)));
    for (((device, side), steering), first) in
        cases.flat_map(|case| firsts.map(|first| (case, first)))
    {
        let device = DeviceId(device as u8);
        assert_eq!(steering.plain_side(device), Some(side));
        let mut by = Classifier {
            steering,
            hasher: &hasher,
            time: TimeSource::Packet,
            now: Time::ZERO,
            unusual: Unusual::default(),
        };
        let mut burst = Vec::new();
        let frames = [udp(), arp(), tcp(), udp(), udp(), unreachable(), v6(), tagged()];
        let turned = |place: usize| (place + 8 - first) % 8;
        let [tcp, not_hashed, followed] = [2, 3, 4].map(turned);
        let mut plain = [0, 2, 3, 6, 7].map(turned).to_vec();
        plain.sort();
        for (place, frame) in frames.iter().cycle().skip(first).take(8).enumerate() {
            let mut packet = cache.alloc_from(frame).unwrap();
            packet.set_device(device);
            packet.set_timestamp(Time::from_secs(place as u64));
            if place != not_hashed
                && let Some((_, key)) = usual::parse(&packet)
            {
                let key = steering.orient(device, key).key;
                let kind = steering.kind_of(&key);
                packet.set_hash(steering.hash(&key, kind), kind);
            }
            packet.set_mark(u8::from(place == followed));
            burst.push(packet);
        }
        let shard_of = |place: usize| by.one(&burst[place]).unwrap().shard;
        let shard = shard_of(tcp);
        plain.retain(|&place| {
            let (packet, shard) = (&burst[place], shard_of(place));
            let is_here = packet.hash_kind() == HashKind::None
                || steering.shard_of_hash(packet.hash()) == shard;
            misdirected += usize::from(!is_here);
            is_here
        });
        let in_others = plain.iter().copied().filter(|&place| shard_of(place) != shard).collect();
        let owned = |owner: u16| vec![LaneId(owner); 128];
        let mut elsewhere = owned(0);
        elsewhere[shard.index()] = LaneId(1);
        for (owners, unusual, plain) in [
            (owned(0), Unusual::default(), plain),
            (elsewhere, Unusual::default(), in_others),
            (owned(1), Unusual::default(), vec![]),
            (owned(0), Unusual::ALL, vec![]),
        ] {
            by.unusual = unusual;
            let shards = shards_of(LaneId(0), &owners, hasher);
            let ownership = Ownership::new(LaneId(0), owners);
            let loads = ShardLoads::new(128, LoadReporting::Shards);
            let owned = Owned { ownership: &ownership, shards: &shards, loads: &loads };
            let mut infos = [PacketInfo::default(); 8];
            let mut probes = [Probe::PENDING; 8];
            let spare = Spare { infos: &mut infos, probes: &mut probes };
            let found = by.plain(side, &burst, spare, &owned);
            for (place, packet) in burst.iter().enumerate() {
                assert_eq!(found.left.contains(place), !plain.contains(&place), "{place}");
                if !found.left.contains(place) {
                    let alone = by.one(packet).unwrap();
                    assert_eq!(format!("{alone:?}"), format!("{:?}", infos[place]));
                }
            }
            assert_eq!(
                found.latest,
                Time::from_secs(plain.last().map_or(0, |place| *place as u64))
            );
            let counted: u64 = loads.iter().map(|load| load.packets.get()).sum();
            assert_eq!(counted, plain.len() as u64);
        }
        burst.into_iter().for_each(|packet| cache.free(packet));
    }
    assert_eq!(misdirected, 2 * firsts.len(), "datagrams of the endpoint that is always the same");
}

/// The flows of plain packets are looked for while packets behind them are classified, and those of others are not, about which
/// nothing is known yet but what stood there before.
#[test]
fn plain_packets_are_probed_some_packets_behind() {
    let pool = Mempool::new(&MempoolConfig { buffers: 64, ..MempoolConfig::default() }).unwrap();
    let mut cache = PoolCache::new(pool);
    let steering = Steering::new(&HashKey::MICROSOFT, 128, 128, vec![Orientation::Inside]).unwrap();
    let hasher = FlowHasher::new([1, 2, 3, 4, 5, 6, 7]);
    let unusual = Unusual::default();
    let by = Classifier {
        steering: &steering,
        hasher: &hasher,
        time: TimeSource::Poll,
        now: Time::ZERO,
        unusual,
    };
    for frame in [tcp(), v6(), tagged()] {
        let other = 5;
        let mut burst: Vec<_> = (0..BURST).map(|_| cache.alloc_from(&frame).unwrap()).collect();
        for (place, packet) in burst.iter_mut().enumerate() {
            let known = by.one(packet).unwrap();
            let kind = steering.kind_of(&known.key());
            packet.set_hash(steering.hash(&known.key(), kind), kind);
            packet.set_mark(u8::from(place == other));
        }
        let owners = vec![LaneId(0); 128];
        let mut shards = shards_of(LaneId(0), &owners, hasher);
        let known = by.one(&burst[0]).unwrap();
        let table = &mut shards.get_mut(known.shard).unwrap().table;
        table.insert(known.hash, &known.key(), Time::ZERO).unwrap();
        let is_known = table.probe(known.hash, known.key().family());
        let ownership = Ownership::new(LaneId(0), owners);
        let loads = ShardLoads::new(128, LoadReporting::Shards);
        let owned = Owned { ownership: &ownership, shards: &shards, loads: &loads };
        let mut infos = [known; BURST];
        let mut probes = [Probe::PENDING; BURST];
        let spare = Spare { infos: &mut infos, probes: &mut probes };
        let found = by.plain(Side::Inside, &burst, spare, &owned);
        assert!(found.left.contains(other));
        for (place, probe) in probes.into_iter().enumerate() {
            let expected = match place == other || place >= BURST - LAG {
                true => Probe::PENDING,
                false => is_known,
            };
            assert_eq!(probe, expected, "{place}");
        }
        burst.into_iter().for_each(|packet| cache.free(packet));
    }
}
