//! Any packets through firewall and NAT, or the NAT alone, on two lanes: besides what every chain owes,
//! nothing that leaves for outside over IPv4 shows an inner address as its source.
#![no_main]

mod lanes;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

use lanes::{Made, made};
use libfuzzer_sys::fuzz_target;
use rheostat_functions::firewall::{Action, FirewallConfig, RuleSet, TcpOptions};
use rheostat_functions::nat::{Filtering, Forward, Mapping, NatConfig};
use rheostat_functions::{Firewall, Nat};
use rheostat_nf::{Chain2, Stage};
use rheostat_packet::{Headers, LinkType, tuple};
use rheostat_state::StateLayout;

const EXTERNAL: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);

/// Few ports, few flows and a fixed forward, so that short inputs meet every limit. The external address
/// lies within the prefix of those inside, and 10.0.0.0/16 alone is translated.
fn nat(mapping: Mapping, filtering: Filtering) -> Nat {
    let forward = Forward {
        protocol: 17,
        external: (EXTERNAL, 53),
        internal: (Ipv4Addr::new(10, 0, 0, 5), 5_353),
    };
    let config = NatConfig {
        mapping,
        filtering,
        ports: 2_000..=2_015,
        quota: Some(6),
        inside: ["10.0.0.0/16".parse().unwrap()].into_iter().collect(),
        forwards: vec![forward],
        ..NatConfig::new(vec![EXTERNAL])
    };
    Nat::new(config, None).unwrap()
}

fn alone() -> &'static [Made; 2] {
    static MADE: OnceLock<[Made; 2]> = OnceLock::new();
    MADE.get_or_init(|| {
        [
            (Mapping::EndpointIndependent, Filtering::EndpointIndependent),
            (Mapping::AddressAndPortDependent, Filtering::AddressAndPortDependent),
        ]
        .map(|(mapping, filtering)| {
            let mut layout = StateLayout::new();
            made(Stage::new(nat(mapping, filtering), &mut layout).unwrap(), layout)
        })
    })
}

fn behind_firewall() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut layout = StateLayout::new();
        let tcp = TcpOptions { pickup: true, ..TcpOptions::default() };
        let rules = RuleSet { default_outside: Action::Reject, ..RuleSet::default() };
        let firewall = Firewall::new(FirewallConfig { rules, tcp, ..FirewallConfig::default() });
        let firewall = Stage::new(firewall, &mut layout).unwrap();
        let nat = nat(Mapping::EndpointIndependent, Filtering::AddressDependent);
        let nat = Stage::new(nat, &mut layout).unwrap();
        made(Chain2(firewall, nat), layout)
    })
}

fuzz_target!(|input: (u8, Vec<(u16, Vec<u8>)>)| {
    let (which, frames) = input;
    if !lanes::is_small(&frames) {
        return;
    }
    let (left, _) = match which % 3 {
        2 => {
            let Made { chain, steering } = behind_firewall();
            lanes::run(chain, steering, &frames)
        }
        which => {
            let Made { chain, steering } = &alone()[usize::from(which)];
            lanes::run(chain, steering, &frames)
        }
    };
    for packet in left {
        // Both link types were tried; a packet that is neither is none of IPv4.
        for link in [LinkType::Ethernet, LinkType::Raw] {
            let Ok(headers) = Headers::parse_bytes(&packet.bytes, packet.bytes.len(), link) else {
                continue;
            };
            let Some(key) = tuple::addresses(&packet.bytes, &headers) else { continue };
            let (IpAddr::V4(from), IpAddr::V4(to)) = (key.first(), key.second()) else { continue };
            let came_in = frames.iter().any(|(_, frame)| *frame == packet.bytes);
            let hidden = |address: Ipv4Addr| address.octets()[..2] == [10, 0];
            assert!(came_in || !hidden(from) || hidden(to), "{from} is seen by {to}");
        }
    }
});
