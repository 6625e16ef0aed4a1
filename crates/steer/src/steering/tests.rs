use super::*;
use crate::{HashOptions, Prefix, PrefixList, hash_packet};
use proptest::prelude::*;

fn steering() -> Steering {
    let inside: PrefixList =
        ["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()].into_iter().collect();
    let orientations =
        vec![Orientation::Inside, Orientation::Outside, Orientation::ByPrefix(inside)];
    Steering::new(&HashKey::MICROSOFT, 512, 128, orientations).unwrap()
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let new = |buckets, shards| Steering::new(&HashKey::MICROSOFT, buckets, shards, vec![]).err();
    assert_eq!(new(100, 4), Some(SteeringError::Buckets(100)));
    assert_eq!(new(128, 256), Some(SteeringError::Shards { shards: 256, buckets: 128 }));
    assert_eq!(new(128, 3), Some(SteeringError::Shards { shards: 3, buckets: 128 }));
    assert_eq!(new(128, 128), None);
}

fn any_key() -> impl Strategy<Value = FlowKey> {
    let v4 = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<u8>()).prop_map(
        |(a, b, pa, pb, protocol)| {
            FlowKey::v4((Ipv4Addr::from_bits(a), pa), (Ipv4Addr::from_bits(b), pb), protocol, 7)
        },
    );
    let v6 = (any::<u128>(), any::<u128>(), any::<u16>(), any::<u16>(), any::<u8>()).prop_map(
        |(a, b, pa, pb, protocol)| {
            FlowKey::v6((Ipv6Addr::from_bits(a), pa), (Ipv6Addr::from_bits(b), pb), protocol, 7)
        },
    );
    prop_oneof![v4, v6]
}

/// What is hashed of a key, and how much of it are addresses.
fn input_of(key: &FlowKey) -> ([u8; 36], usize) {
    let mut input = [0; 36];
    let at = match (key.first(), key.second()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            input[..4].copy_from_slice(&a.octets());
            input[4..8].copy_from_slice(&b.octets());
            8
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            input[..16].copy_from_slice(&a.octets());
            input[16..32].copy_from_slice(&b.octets());
            32
        }
        _ => unreachable!("of one family"),
    };
    input[at..at + 2].copy_from_slice(&key.first_port().to_be_bytes());
    input[at + 2..at + 4].copy_from_slice(&key.second_port().to_be_bytes());
    (input, at)
}

proptest! {
    #[test]
    fn both_directions_meet(key in any_key()) {
        let steering = steering();
        let (lan, wan, both) = (DeviceId(0), DeviceId(1), DeviceId(2));
        let there = steering.orient(lan, key);
        let back = steering.orient(wan, key.reversed());
        prop_assert_eq!(there.key, back.key);
        prop_assert!(there.forward && !back.forward);
        let there = steering.orient(both, key);
        let back = steering.orient(both, key.reversed());
        prop_assert_eq!(there.key, back.key);
        if key.first() != key.second() || key.first_port() != key.second_port() {
            prop_assert_ne!(there.forward, back.forward);
        }
    }

    #[test]
    fn the_device_and_software_agree(key in any_key()) {
        let inner = PacketSet::inner_endpoint();
        let by_endpoint = steering().with_sets(&PacketSet::five_tuple(), &inner).unwrap();
        let mut fixed = Translation::default();
        let (inside, outside) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(192, 0, 2, 1));
        fixed.fix(17, (inside, 80), (outside, 8_080));
        let translating = by_endpoint.clone().with_translation(fixed);
        for steering in [steering(), by_endpoint, translating] {
            for kind in [HashKind::Ports, HashKind::Addresses, HashKind::None] {
                let placed = steering.place(steering.hash(&key, kind), kind, &key);
                prop_assert_eq!(placed, steering.shard_of_key(&key));
            }
        }
    }

    #[test]
    fn what_the_input_mask_leaves_out_does_not_count(key in any_key()) {
        let (input, at) = input_of(&key);
        let inner = PacketSet::inner_endpoint();
        let by_endpoint = steering().with_sets(&PacketSet::five_tuple(), &inner).unwrap();
        for steering in [steering(), by_endpoint.clone(),
            by_endpoint.with_translation(Translation::default())] {
            for kind in [HashKind::Addresses, HashKind::Ports] {
                let mask = steering.input_mask(DeviceId(0), key.family(), kind);
                let read = at + if kind == HashKind::Ports { 4 } else { 0 };
                let seen: Vec<u8> = (0..read).map(|i| input[i] & mask[i]).collect();
                let hash = steering.toeplitz().hash_bytes(&seen);
                prop_assert_eq!(hash, steering.hash(&key, kind));
            }
        }
    }

    #[test]
    fn an_endpoint_decides_alone(key in any_key(), other in any_key()) {
        let tuple = PacketSet::five_tuple();
        let inner = steering().with_sets(&tuple, &PacketSet::inner_endpoint()).unwrap();
        let outer = steering().with_sets(&tuple, &PacketSet::outer_endpoint()).unwrap();
        prop_assume!(key.family() == other.family());
        let ported = steering().kind_of(&key);
        let with_end_of = |turned: bool| {
            let (a, b) = if turned { (other, key) } else { (key, other) };
            match (a.first(), b.second()) {
                (IpAddr::V4(x), IpAddr::V4(y)) => FlowKey::v4(
                    (x, a.first_port()), (y, b.second_port()), key.protocol(), 7),
                (IpAddr::V6(x), IpAddr::V6(y)) => FlowKey::v6(
                    (x, a.first_port()), (y, b.second_port()), key.protocol(), 7),
                _ => unreachable!("of one family"),
            }
        };
        prop_assert_eq!(inner.hash(&key, ported), inner.hash(&with_end_of(false), ported));
        prop_assert_eq!(outer.hash(&key, ported), outer.hash(&with_end_of(true), ported));
    }

    #[test]
    fn an_address_names_flows_alone(key in any_key()) {
        let (lan, wan) = (DeviceId(0), DeviceId(1));
        for whose in [Whose::Inner, Whose::Outer, Whose::Source, Whose::Destination] {
            let set = PacketSet::address(whose, 24, 64);
            let steering = steering().with_sets(&set, &set).unwrap();
            let there = steering.orient(lan, key);
            let back = steering.orient(wan, key.reversed());
            let meets = set.directions_meet();
            prop_assert!(!meets || there.key == back.key);
            let address = match whose {
                Whose::Inner | Whose::Source => key.first(),
                Whose::Outer | Whose::Destination => key.second(),
            };
            let bits = if address.is_ipv4() { 24 } else { 64 };
            prop_assert_eq!(there.key.first(), Prefix::containing(address, bits).address());
            prop_assert_eq!((there.key.protocol(), there.key.zone()), (0, 7));
            let tuple = Tuple::Flow(key);
            let (hash, kind) = hash_packet(&steering, HashOptions::Full, lan, &tuple, None);
            prop_assert_eq!(kind, steering.kind_of(&there.key));
            prop_assert_eq!(steering.shard_of_key(&there.key), steering.shard_of_hash(hash));
        }
    }
}

/// 64 k random flows over 128 shards: chi-square with 127 degrees of freedom stays below its
/// 99.9 % quantile, 181.
#[test]
fn flows_spread_evenly() {
    let steering = steering();
    let mut counts = [0_f64; 128];
    let mut state = 1_u64;
    for _ in 0..65_536 {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = state ^ state >> 29;
        let a = (Ipv4Addr::from_bits((mixed >> 8) as u32), (mixed >> 40) as u16);
        let key = FlowKey::v4(a, (Ipv4Addr::new(192, 0, 2, 1), 443), 6, 0);
        counts[steering.shard_of_key(&key).index()] += 1.0;
    }
    let chi: f64 = counts.iter().map(|count| (count - 512.0).powi(2) / 512.0).sum();
    assert!(chi < 181.0, "chi-square {chi}");
}

proptest! {
    /// A policer by inner address before a NAT: the NAT takes external ports that lead to the shard of the host inside.
    #[test]
    fn external_ports_lead_to_the_shard_of_an_inner_address(
        hash: [u8; 40],
        (host, port, peer, peer_port) in any::<(u32, u16, u32, u16)>(),
        protocol in prop::sample::select(vec![6_u8, 17]),
    ) {
        let external = Ipv4Addr::new(203, 0, 113, 1);
        prop_assume!(Ipv4Addr::from_bits(host) != external);
        let prefix: Prefix = "203.0.113.1/32".parse().unwrap();
        let mut translation = Translation::new([prefix].into_iter().collect());
        translation.place = Some(PacketSet::inner_endpoint());
        let by_address = PacketSet::address(Whose::Inner, 32, 64);
        let place = PacketSet::five_tuple().common(&PacketSet::inner_endpoint()).common(&by_address);
        let sides = vec![Orientation::Inside, Orientation::Outside];
        let steering = Steering::new(&HashKey::new(hash), 512, 16, sides).unwrap();
        let steering = steering.with_sets(&PacketSet::five_tuple(), &place).unwrap();
        let steering = steering.with_translation(translation);
        let outer = (Ipv4Addr::from_bits(peer), peer_port);
        let inside = |port| FlowKey::v4((Ipv4Addr::from_bits(host), port), outer, protocol, 0);
        let shard = steering.shard_of_key(&inside(port));
        prop_assert_eq!(steering.shard_of_key(&inside(port ^ 1)), shard, "one host, one shard");
        let outside = |port| FlowKey::v4((external, port), outer, protocol, 0);
        let classes = crate::port_class::PortClasses::new(&steering, protocol);
        for &port in classes.leading_to(shard, &outside(0), &steering).iter().take(64) {
            let key = outside(port);
            prop_assert_eq!(steering.shard_of_key(&key), shard);
            // So a device brings packets there that knows by its side alone which addresses are external.
            let (input, _) = input_of(&key);
            let mask = steering.input_mask(DeviceId(1), Family::V4, HashKind::Ports);
            let seen: Vec<u8> = (0..12).map(|i| input[i] & mask[i]).collect();
            prop_assert_eq!(steering.shard_of_hash(steering.toeplitz().hash_bytes(&seen)), shard);
        }
        let mask = |device, family| steering.input_mask(DeviceId(device), family, HashKind::Ports);
        prop_assert_ne!(mask(0, Family::V4), mask(1, Family::V4));
        prop_assert_eq!(mask(0, Family::V6), mask(1, Family::V6), "IPv6 is not translated");
    }
}
