//! Packets of one set meet on one shard, whatever device they arrive on and whatever it hashes; packets
//! without a set are spread evenly.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::DeviceId;
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use rheostat_packet::{Family, FlowKey, Headers, LinkType, Tuple, tuple};
use rheostat_steer::{
    Fields, HashKey, HashOptions, Orientation, PacketSet, Protocols, Steering, Whose, hash_packet,
};

const LAN: DeviceId = DeviceId(0);
const WAN: DeviceId = DeviceId(1);
const BOTH: DeviceId = DeviceId(2);
const SHARDS: usize = 128;

/// Places packets as a lane does, and by way of what a device that hashes like this hashed.
struct Place {
    steering: Steering,
    options: HashOptions,
}

impl Place {
    fn by(set: PacketSet) -> Place {
        // The tables of the hash take longer to make than to copy.
        static STEERING: LazyLock<Steering> = LazyLock::new(|| {
            let inside = ["10.0.0.0/8".parse().unwrap()].into_iter().collect();
            let devices =
                vec![Orientation::Inside, Orientation::Outside, Orientation::ByPrefix(inside)];
            Steering::new(&HashKey::MICROSOFT, 512, SHARDS, devices).unwrap()
        });
        Place {
            steering: STEERING.clone().with_sets(&set, &set).unwrap(),
            options: HashOptions::AddressesOnly,
        }
    }

    /// The flow a frame belongs to, if it has one, and its shard.
    fn of(&self, device: DeviceId, frame: &[u8]) -> (Option<FlowKey>, usize) {
        let steering = &self.steering;
        let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).unwrap();
        let tuple = steering.tuple(frame, &headers, LinkType::Ethernet);
        let Tuple::Flow(key) = tuple else { panic!("{tuple:?} is not placed at once") };
        let oriented = steering.orient(device, key);
        let shard = steering.shard_of_key(&oriented.key);
        let outer = tuple::addresses(frame, &headers);
        let (hash, kind) = hash_packet(steering, self.options, device, &tuple, outer);
        let placed = steering.place(hash, kind, &oriented.key);
        assert_eq!(placed, shard, "the device thinks otherwise");
        let flow = steering.admits(&key, oriented.side).then_some(oriented.key);
        (flow, shard.index())
    }
}

/// An end of a conversation.
#[derive(Clone, Copy, Debug)]
struct End {
    mac: [u8; 6],
    v4: Ipv4Addr,
    v6: Ipv6Addr,
    port: u16,
}

fn end() -> impl Strategy<Value = End> {
    (any::<[u8; 6]>(), any::<u32>(), any::<u128>(), 1..=u16::MAX).prop_map(|(mac, v4, v6, port)| {
        End { mac, v4: Ipv4Addr::from_bits(v4), v6: Ipv6Addr::from_bits(v6), port }
    })
}

/// What travels between two ends.
#[derive(Clone, Copy, Debug)]
struct What {
    family: Family,
    protocol: u8,
    vlan: Option<u16>,
}

fn what() -> impl Strategy<Value = What> {
    let family = prop_oneof![Just(Family::V4), Just(Family::V6)];
    let protocol = prop_oneof![Just(6_u8), Just(17), Just(47)];
    (family, protocol, proptest::option::of(1_u16..4_000))
        .prop_map(|(family, protocol, vlan)| What { family, protocol, vlan })
}

fn frame(from: End, to: End, what: What) -> Vec<u8> {
    let ports = (from.port, to.port);
    let transport = match what.protocol {
        6 => Transport::Tcp(TcpHeader { ports, ..TcpHeader::default() }),
        17 => Transport::Udp { ports },
        number => Transport::Protocol(number),
    };
    let (source, destination) = match what.family {
        Family::V4 => (from.v4.into(), to.v4.into()),
        Family::V6 => (from.v6.into(), to.v6.into()),
    };
    let ethernet = Ethernet { source: from.mac, destination: to.mac, vlan: what.vlan };
    let packet = FrameBuilder::new(source, destination, transport, Payload::Pattern(32));
    packet.with_ethernet(ethernet).to_vec()
}

fn arp(from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    let mut frame = [&to[..], &from[..], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]].concat();
    frame.resize(60, 0);
    frame
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What a set leaves out may be anything.
    #[test]
    fn packets_of_one_set_meet(inner in end(), outer in end(), other in end(), what in what(), more in what()) {
        let tuple = PacketSet::five_tuple();
        let there = frame(inner, outer, what);
        let back = frame(outer, inner, what);
        let alike = |set, one: (DeviceId, &[u8]), two: (DeviceId, &[u8])| {
            let place = Place::by(set);
            let (one, two) = (place.of(one.0, one.1), place.of(two.0, two.1));
            assert!(one.0.is_some(), "{set}: no flow");
            assert_eq!(one, two, "{set}");
        };
        for set in [tuple, PacketSet::addresses(), PacketSet::inner_endpoint(), PacketSet::stations()] {
            alike(set, (LAN, &there), (WAN, &back));
        }
        alike(tuple, (BOTH, &there), (BOTH, &back));
        alike(PacketSet::stations(), (BOTH, &there), (BOTH, &back));

        let elsewhere = frame(inner, other, what);
        alike(PacketSet::inner_endpoint(), (LAN, &there), (LAN, &elsewhere));
        alike(PacketSet::outer_endpoint(), (WAN, &there), (WAN, &elsewhere));
        let source = Fields::SOURCE | Fields::VLAN;
        alike(PacketSet::per_side(source, source), (LAN, &there), (LAN, &elsewhere));
        alike(PacketSet::per_side(source, source), (WAN, &there), (WAN, &elsewhere));
        let mirrored = PacketSet::per_side(source, Fields::DESTINATION | Fields::VLAN);
        alike(mirrored, (LAN, &there), (WAN, &frame(other, inner, what)));

        let same_wire = What { vlan: what.vlan, ..more };
        let sender = PacketSet::station(Whose::Source);
        alike(sender, (LAN, &there), (WAN, &frame(inner, other, same_wire)));
        let ends = [inner, outer].map(|end| End { v4: other.v4, v6: other.v6, port: other.port, ..end });
        let same_version = What { family: what.family, ..same_wire };
        alike(PacketSet::stations(), (LAN, &there), (LAN, &frame(ends[0], ends[1], same_version)));
    }

    /// Packets of other protocols, of the other version, and from the other side have no flow, and are
    /// placed by their addresses all the same.
    #[test]
    fn others_have_no_flow(a in end(), b in end(), vlan in proptest::option::of(1_u16..4_000)) {
        let of = |family, protocol| frame(a, b, What { family, protocol, vlan });
        let tcp = PacketSet::five_tuple().only(Protocols::TCP.over(Family::V4));
        let (place, all) = (Place::by(tcp), Place::by(PacketSet::five_tuple()));
        for (family, protocol) in [(Family::V4, 17), (Family::V6, 6), (Family::V4, 47)] {
            let frame = of(family, protocol);
            prop_assert_eq!(place.of(LAN, &frame), (None, all.of(LAN, &frame).1));
        }
        prop_assert_eq!(place.of(LAN, &of(Family::V4, 6)), all.of(LAN, &of(Family::V4, 6)));
        let received = PacketSet::per_side(Fields::NONE, Fields::SOURCE | Fields::VLAN);
        let place = Place::by(received);
        prop_assert!(place.of(LAN, &of(Family::V4, 6)).0.is_none());
        prop_assert!(place.of(WAN, &of(Family::V4, 6)).0.is_some());
    }

    /// Without a set, the packets of a tuple or of a pair of stations stay together, in both directions.
    #[test]
    fn what_has_no_set_keeps_together(a in end(), b in end(), what in what()) {
        let place = Place::by(PacketSet::NONE);
        let there = place.of(LAN, &frame(a, b, what));
        prop_assert_eq!(there, place.of(WAN, &frame(b, a, what)));
        prop_assert_eq!(there.0, None);
        prop_assert_eq!(place.of(LAN, &arp(a.mac, b.mac)), place.of(WAN, &arp(b.mac, a.mac)));
        prop_assert_eq!(place.of(BOTH, &arp(a.mac, b.mac)), place.of(BOTH, &arp(b.mac, a.mac)));
    }
}

/// 64 k packets over 128 shards, of every kind: chi-square with 127 degrees of freedom stays below its
/// 99.9 % quantile, 181.
#[test]
fn packets_without_a_set_spread_evenly() {
    let mut rng = SmallRng::seed_from_u64(7);
    let mut random = || End {
        mac: rng.random(),
        v4: Ipv4Addr::from_bits(rng.random()),
        v6: Ipv6Addr::from_bits(rng.random()),
        port: rng.random(),
    };
    let place = Place::by(PacketSet::NONE);
    let server = random();
    let of = |family, protocol| What { family, protocol, vlan: None };
    type Maker<'a> = &'a dyn Fn(End) -> Vec<u8>;
    let kinds: [(&str, Maker<'_>); 6] = [
        ("TCP", &|client| frame(client, server, of(Family::V4, 6))),
        ("UDP over IPv6", &|client| frame(client, server, of(Family::V6, 17))),
        ("ports alone", &|client| {
            let client = End { v4: server.v4, ..client };
            frame(client, server, of(Family::V4, 17))
        }),
        ("no ports", &|client| frame(client, server, of(Family::V4, 47))),
        ("fragments", &|client| {
            let mut fragment = frame(client, server, of(Family::V4, 17));
            fragment[20] = 0x20;
            fragment
        }),
        ("no IP", &|client| arp(client.mac, server.mac)),
    ];
    for (kind, make) in kinds {
        let mut counts = [0_u32; SHARDS];
        for _ in 0..65_536 {
            let (flow, shard) = place.of(LAN, &make(random()));
            assert_eq!(flow, None);
            counts[shard] += 1;
        }
        let chi: f64 = counts.iter().map(|n| (f64::from(*n) - 512.0).powi(2) / 512.0).sum();
        assert!(chi < 181.0, "{kind}: chi-square {chi}");
    }
}

/// Which of those are distinguished, of frames between two stations.
#[test]
fn a_vlan_and_an_ethertype_have_places_of_their_own() {
    let place = Place::by(PacketSet::NONE);
    let shards: std::collections::HashSet<_> = (0..64)
        .map(|number: u8| {
            let mut frame = arp([2; 6], [4; 6]);
            // An Ethertype for experiments (IEEE 802) and its neighbours.
            frame[12..14].copy_from_slice(&[0x88, number]);
            place.of(LAN, &frame).1
        })
        .collect();
    assert!(shards.len() > 16, "{} of 64 in {SHARDS} shards", shards.len());
}
