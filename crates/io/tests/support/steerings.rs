//! Ways to steer, one of each kind that programs in the kernel must follow.

use std::net::Ipv4Addr;

use rheostat_base::DeviceId;
use rheostat_packet::{HashKind, Headers, LinkType, Network, tuple};
use rheostat_steer::{
    HashKey, HashOptions, Orientation, PacketSet, PrefixList, Steering, Translation, Whose,
    hash_packet,
};

/// The devices of every steering: facing inside, facing outside, carrying both.
pub(crate) const DEVICES: [DeviceId; 3] = [DeviceId(0), DeviceId(1), DeviceId(2)];

fn prefixes(list: &[&str]) -> PrefixList {
    list.iter().map(|prefix| prefix.parse().unwrap()).collect()
}

/// Named, over `buckets` buckets.
pub(crate) fn steerings(buckets: usize) -> Vec<(&'static str, Steering)> {
    let inside = prefixes(&["10.0.0.0/24", "fd00::/8", "9.0.0.1/32"]);
    let orientations =
        vec![Orientation::Inside, Orientation::Outside, Orientation::ByPrefix(inside)];
    let key: [u8; 40] = std::array::from_fn(|i| (i as u8).wrapping_mul(151).wrapping_add(43));
    let plain = Steering::new(&HashKey::new(key), buckets, buckets, orientations).unwrap();
    let tuple = PacketSet::five_tuple();
    let placed = |place: PacketSet| plain.clone().with_sets(&tuple, &place).unwrap();
    let single = |whose| {
        let set = PacketSet::address(whose, 24, 56);
        plain.clone().with_sets(&set, &set).unwrap()
    };
    let external = || {
        let mut translation =
            Translation::new(prefixes(&["9.0.0.0/24", "2000::/8", "10.0.0.0/30"]));
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(9, 0, 0, 2));
        translation.fix(17, (from, 80), (to, 8_080));
        translation
    };
    vec![
        (
            "inner endpoint, translated",
            placed(PacketSet::inner_endpoint()).with_translation(external()),
        ),
        ("translated", plain.clone().with_translation(external())),
        ("outer endpoint", placed(PacketSet::outer_endpoint())),
        ("addresses", placed(PacketSet::addresses())),
        ("inner prefix", single(Whose::Inner)),
        ("outer prefix", single(Whose::Outer)),
        ("source prefix", single(Whose::Source)),
        ("destination prefix, translated", single(Whose::Destination).with_translation(external())),
        ("no set", plain.clone().with_sets(&PacketSet::NONE, &PacketSet::NONE).unwrap()),
        ("whole tuple", plain),
    ]
}

/// What user space makes of an Ethernet frame.
pub(crate) fn expected(
    steering: &Steering,
    hashing: HashOptions,
    device: DeviceId,
    frame: &[u8],
) -> (u32, HashKind) {
    let Ok(headers) = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet) else {
        return (0, HashKind::None);
    };
    // Told from malformed packets only in user space: no link carries them.
    let l3 = usize::from(headers.l3);
    if headers.network == Network::Ipv6 && frame[l3 + 4..l3 + 7] == [0, 0, 0] {
        return (0, HashKind::None);
    }
    // The programs hash nothing of frames without IP; lanes place them.
    if matches!(headers.network, Network::Arp | Network::Other) {
        return (0, HashKind::None);
    }
    let tuple = steering.tuple(frame, &headers, LinkType::Ethernet);
    hash_packet(steering, hashing, device, &tuple, tuple::addresses(frame, &headers))
}
