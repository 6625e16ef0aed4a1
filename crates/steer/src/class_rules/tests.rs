use std::net::{Ipv4Addr, Ipv6Addr};

use rheostat_packet::Family;

use super::*;

const DEVICE: DeviceId = DeviceId(1);

fn key(source: [u8; 4], sport: u16, dport: u16, zone: u32) -> FlowKey {
    let destination = (Ipv4Addr::new(198, 51, 100, 7), dport);
    FlowKey::v4((source.into(), sport), destination, 17, zone)
}

fn rule(change: impl FnOnce(&mut ClassRule)) -> ClassRule {
    let mut rule = ClassRule::any("voice", Class::Priority);
    change(&mut rule);
    rule
}

fn matches(rule: ClassRule, key: FlowKey) -> bool {
    let rules = ClassRules::new(vec![rule]);
    let find = |key: &FlowKey| rules.find(ClassSubject { device: DEVICE, key, dscp: 46 });
    assert_eq!(find(&key), find(&key.reversed()), "both directions of a flow are of one class");
    find(&key) == 0
}

#[test]
fn each_part_of_a_rule_narrows_it() {
    let flow = key([10, 1, 2, 3], 5_000, 5_060, 0x00a_014);
    assert!(matches(rule(|_| ()), flow));
    let prefixes = |text: &str| [text.parse().unwrap()].into_iter().collect::<PrefixList>();
    for (text, expected) in [
        ("10.1.0.0/16", true),
        ("198.51.100.7", true),
        ("10.2.0.0/16", false),
        ("0.0.0.0/0", true),
        ("::/0", false),
    ] {
        assert_eq!(matches(rule(|rule| rule.prefixes = prefixes(text)), flow), expected, "{text}");
    }
    for (ports, expected) in [(5_060..=5_061, true), (0..=5_000, true), (5_061..=5_061, false)] {
        assert_eq!(matches(rule(|rule| rule.ports = vec![ports.clone()]), flow), expected);
    }
    for (protocol, expected) in [(17, true), (6, false), (81, false)] {
        assert_eq!(matches(rule(|rule| rule.protocols = vec![protocol]), flow), expected);
    }
    for (dscp, expected) in [(46, true), (0, false)] {
        assert_eq!(matches(rule(|rule| rule.dscps = vec![dscp]), flow), expected);
    }
    for (vlan, expected) in [(10, true), (20, true), (30, false)] {
        assert_eq!(matches(rule(|rule| rule.vlans = vec![vlan]), flow), expected);
    }
    assert!(!matches(rule(|rule| rule.vlans = vec![0]), key([10; 4], 1, 2, 0)), "no tag, no VLAN");
    for (device, expected) in [(DEVICE, true), (DeviceId(0), false)] {
        assert_eq!(matches(rule(|rule| rule.devices = vec![device]), flow), expected);
    }
    let v6 = FlowKey::v6((Ipv6Addr::LOCALHOST, 1), (Ipv6Addr::from_bits(!0), 2), 17, 0);
    assert!(matches(rule(|rule| rule.prefixes = prefixes("::1")), v6));
    assert!(!matches(rule(|rule| rule.prefixes = prefixes("::2")), v6));
}

#[test]
fn the_first_rule_that_matches_decides_and_the_rest_is_regular() {
    let port = |name: &str, class, ports: RangeInclusive<u16>| ClassRule {
        ports: vec![ports],
        ..ClassRule::any(name, class)
    };
    let rules = ClassRules::new(vec![
        port("bulk", Class::Regular, 80..=80),
        port("web", Class::Priority, 1..=1_000),
    ]);
    let find = |dport| {
        let key = key([10; 4], 40_000, dport, 0);
        rules.find(ClassSubject { device: DEVICE, key: &key, dscp: 0 })
    };
    assert_eq!([80, 81, 2_000].map(find), [0, 1, rules.rest()]);
    let classes = [80, 81, 2_000].map(|port| rules.class_of(find(port)));
    assert_eq!(classes, [Class::Regular, Class::Priority, Class::Regular]);
    assert_eq!(rules.name_of(find(2_000)), "rest");
    assert!(rules.has_priority() && !rules.reads_dscp());
}

#[test]
fn a_rule_covers_those_that_are_narrower_in_every_part() {
    let wide = rule(|rule| rule.ports = vec![1..=500, 501..=1_000]);
    let narrow = rule(|rule| {
        rule.ports = vec![400..=600];
        rule.protocols = vec![6];
    });
    assert!(wide.covers(&narrow) && !narrow.covers(&wide));
    assert!(ClassRule::any("all", Class::Regular).covers(&wide));
    assert!(!wide.covers(&ClassRule::any("all", Class::Regular)));
}

/// A condition of a rule by itself: none, or one of these.
fn one_of<T>(list: &[T], holds: impl Fn(&T) -> bool) -> bool {
    list.is_empty() || list.iter().any(holds)
}

/// What the documentation of [`ClassRule`] says, condition by condition.
fn matches_one_by_one(rule: &ClassRule, device: DeviceId, key: &FlowKey, dscp: u8) -> bool {
    let ports = [key.first_port(), key.second_port()];
    let vlans = [(key.zone() >> 12) as u16 & 0xfff, key.zone() as u16 & 0xfff];
    let addresses = [key.first(), key.second()];
    one_of(&rule.devices, |known| *known == device)
        && one_of(&rule.protocols, |known| *known == key.protocol())
        && one_of(&rule.dscps, |known| *known == dscp)
        && one_of(&rule.ports, |range| ports.iter().any(|port| range.contains(port)))
        && one_of(&rule.vlans, |known| key.zone() != 0 && vlans.contains(known))
        && (rule.prefixes.is_empty() || addresses.iter().any(|it| rule.prefixes.contains(*it)))
}

#[test]
fn rules_together_are_those_one_by_one() {
    let mut state = 7_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % bound
    };
    let mut matched = 0;
    for _ in 0..400 {
        let mut rules = Vec::new();
        for _ in 0..1 + below(MAX_CLASSES as u64) {
            let mut rule = ClassRule::any("rule", Class::ALL[below(2) as usize]);
            // Each condition is in a third of the rules, so that some rules have none and some several.
            for condition in 0..6 {
                if below(3) > 0 {
                    continue;
                }
                let low = below(6) as u16;
                match condition {
                    0 => rule.ports = vec![low..=low + below(3) as u16, 65_535..=65_535],
                    1 => rule.protocols = vec![6 + 11 * below(2) as u8],
                    2 => rule.dscps = vec![below(4) as u8],
                    3 => rule.vlans = vec![below(4) as u16],
                    4 => rule.devices = vec![DeviceId(below(3) as u8)],
                    _ => {
                        let prefixes = ["10.0.0.0/31", "10.0.0.2", "0.0.0.0/0", "::2/127"];
                        let prefix = prefixes[below(4) as usize];
                        rule.prefixes = [prefix.parse().unwrap()].into_iter().collect();
                    }
                }
            }
            rules.push(rule);
        }
        let together = ClassRules::new(rules.clone());
        let mut packets = Vec::new();
        for _ in 0..50 {
            let (from, to) = (below(4), below(4));
            let ports = (below(8) as u16, if below(4) == 0 { 65_535 } else { below(8) as u16 });
            let zone = (below(4) << 12 | below(4)) as u32;
            let protocol = 6 + 11 * below(2) as u8;
            let v4 = |host: u64| Ipv4Addr::from_bits(0x0a00_0000 | host as u32);
            let v6 = |host: u64| Ipv6Addr::from_bits(host.into());
            let key = match below(4) {
                0 => FlowKey::v6((v6(from), ports.0), (v6(to), ports.1), protocol, zone),
                _ => FlowKey::v4((v4(from), ports.0), (v4(to), ports.1), protocol, zone),
            };
            let (device, dscp) = (DeviceId(below(3) as u8), below(4) as u8);
            let expected =
                rules.iter().position(|rule| matches_one_by_one(rule, device, &key, dscp));
            let found = together.find(ClassSubject { device, key: &key, dscp });
            assert_eq!(found, expected.unwrap_or(rules.len()), "{rules:?} {key:?}");
            matched += usize::from(expected.is_some());
            packets.push((key, device, dscp, found));
        }
        // Bursts of every length.
        let mut burst = ClassBurst::default();
        let mut packets = &packets[..];
        let mut places_of = [0; MAX_CLASSES + 1];
        while !packets.is_empty() {
            let count = (1 + below(ClassBurst::MOST as u64) as usize).min(packets.len());
            let (now, later) = packets.split_at(count);
            packets = later;
            let is_v6 = now.iter().map(|(key, ..)| key.family() == Family::V6);
            let v6 = is_v6.zip(0..).fold(0, |v6, (is_v6, place)| v6 | u32::from(is_v6) << place);
            burst.set_keys(now, v6, |(key, ..)| match key.family() {
                Family::V4 => [key.raw()[0], key.raw()[1]],
                Family::V6 => [key.raw()[0], key.raw()[4]],
            });
            burst.set_origins(now.iter().map(|&(_, device, dscp, _)| (device, dscp)));
            let all = ((1_u64 << count) - 1) as u32;
            together.find_all(&burst, all, |place| now[place].0, &mut places_of);
            for (place, &(key, .., expected)) in now.iter().enumerate() {
                let is_of = |rule: &usize| places_of[*rule] & 1 << place != 0;
                let found: Vec<usize> = (0..=rules.len()).filter(is_of).collect();
                assert_eq!(found, [expected], "{rules:?} {key:?}");
            }
            let is_priority = |rule: &usize| together.class_of(*rule) == Class::Priority;
            let priority =
                (0..rules.len()).filter(is_priority).fold(0, |all, rule| all | places_of[rule]);
            assert_eq!(together.priority_of(&places_of), priority);
        }
    }
    assert!(matched > 1_000, "{matched}");
}
