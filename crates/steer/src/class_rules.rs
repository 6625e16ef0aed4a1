//! Which class a packet belongs to: the first rule that matches decides, and what no rule matches is regular.
//!
//! A rule looks at what both directions of a flow have in common: an address or port matches at either end. Code points,
//! VLANs and devices may differ between packets of a flow, so such a rule may put a flow's packets into several classes.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use rheostat_base::DeviceId;
use rheostat_packet::{Family, FlowKey};

use crate::policy::Class;
use crate::prefix::PrefixList;

/// The most rules there may be.
pub const MAX_CLASSES: usize = 16;

/// What packets of a named class have. A part that is empty matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRule {
    /// The name, for people.
    pub name: String,
    /// How the packets are treated.
    pub class: Class,
    /// One of a packet's addresses is in one of these.
    pub prefixes: PrefixList,
    /// One of its ports is in one of these.
    pub ports: Vec<RangeInclusive<u16>>,
    /// The protocol above IP.
    pub protocols: Vec<u8>,
    /// The code point of its differentiated service.
    pub dscps: Vec<u8>,
    /// The outer or the inner of its VLANs.
    pub vlans: Vec<u16>,
    /// The device on which it arrived.
    pub devices: Vec<DeviceId>,
}

/// What is looked at of a packet.
#[derive(Clone, Copy, Debug)]
pub struct ClassSubject<'a> {
    /// The device on which it arrived; none where a flow is asked about.
    pub device: DeviceId,
    /// The key of its flow, in any direction.
    pub key: &'a FlowKey,
    /// Its code point; 0 without IP.
    pub dscp: u8,
}

/// The rules of a run, at most [`MAX_CLASSES`], each with what it takes to match fast.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassRules {
    rules: Vec<ClassRule>,
    matcher: Matcher,
    has_priority: bool,
    reads_dscp: bool,
    may_split_flows: bool,
}

/// What packets are compared with, all rules at a time: bit n stands for rule n.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Matcher {
    /// By number, the rules that allow a device, a protocol, a code point.
    devices: Vec<u16>,
    protocols: Vec<u16>,
    dscps: Vec<u16>,
    /// The rules that name ports, VLANs, prefixes.
    with_ports: u16,
    with_vlans: u16,
    with_prefixes: u16,
    /// The first port, how many follow, and the rule.
    ports: Vec<(u16, u16, u16)>,
    /// Mask and bits of IPv4 addresses, and the rule.
    v4: Vec<(u32, u32, u16)>,
}

impl ClassRule {
    /// A rule without conditions.
    pub fn any(name: &str, class: Class) -> ClassRule {
        ClassRule {
            name: name.to_owned(),
            class,
            prefixes: PrefixList::default(),
            ports: Vec::new(),
            protocols: Vec::new(),
            dscps: Vec::new(),
            vlans: Vec::new(),
            devices: Vec::new(),
        }
    }

    /// Whether it has no condition.
    pub fn is_any(&self) -> bool {
        self.prefixes.is_empty()
            && self.ports.is_empty()
            && self.protocols.is_empty()
            && self.dscps.is_empty()
            && self.vlans.is_empty()
            && self.devices.is_empty()
    }

    /// Whether it matches everything that `other` does, as far as single conditions show.
    pub fn covers(&self, other: &ClassRule) -> bool {
        let within = |prefix| self.prefixes.iter().any(|wider| wider.covers(prefix));
        let prefixes = self.prefixes.is_empty()
            || !other.prefixes.is_empty() && other.prefixes.iter().all(within);
        let holds = |port: u16| self.ports.iter().any(|range| range.contains(&port));
        let ports = self.ports.is_empty()
            || !other.ports.is_empty() && other.ports.iter().cloned().flatten().all(holds);
        prefixes
            && ports
            && covers_items(&self.protocols, &other.protocols)
            && covers_items(&self.dscps, &other.dscps)
            && covers_items(&self.vlans, &other.vlans)
            && covers_items(&self.devices, &other.devices)
    }
}

/// In each part of a rule, nothing named means everything.
fn covers_items<T: PartialEq>(wide: &[T], narrow: &[T]) -> bool {
    wide.is_empty() || !narrow.is_empty() && narrow.iter().all(|item| wide.contains(item))
}

impl Matcher {
    fn of(rules: &[ClassRule]) -> Matcher {
        let mut matcher = Matcher {
            devices: allowed(rules, 256, |rule, device| {
                rule.devices.is_empty() || rule.devices.contains(&DeviceId(device))
            }),
            protocols: allowed(rules, 256, |rule, protocol| {
                rule.protocols.is_empty() || rule.protocols.contains(&protocol)
            }),
            dscps: allowed(rules, 64, |rule, dscp| {
                rule.dscps.is_empty() || rule.dscps.iter().any(|known| known & 63 == dscp)
            }),
            ..Matcher::default()
        };
        for (number, rule) in rules.iter().enumerate() {
            let bit = 1 << number;
            let set = |bits: &mut u16, is_set: bool| *bits |= if is_set { bit } else { 0 };
            set(&mut matcher.with_ports, !rule.ports.is_empty());
            set(&mut matcher.with_vlans, !rule.vlans.is_empty());
            set(&mut matcher.with_prefixes, !rule.prefixes.is_empty());
            let range = |ports: &RangeInclusive<u16>| {
                let span = ports.end().checked_sub(*ports.start())?;
                Some((*ports.start(), span, bit))
            };
            matcher.ports.extend(rule.ports.iter().filter_map(range));
            matcher.v4.extend(rule.prefixes.iter().filter_map(|prefix| match prefix.address() {
                IpAddr::V4(address) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(prefix.length())).unwrap_or(0);
                    Some((mask, address.to_bits(), bit))
                }
                IpAddr::V6(_) => None,
            }));
        }
        matcher
    }

    /// The rules that match, a bit each. There is at least one rule.
    #[inline]
    fn matching(&self, rules: &[ClassRule], subject: ClassSubject<'_>) -> u16 {
        let ClassSubject { device, key, dscp } = subject;
        let mut left = self.devices[device.index() & 255]
            & self.protocols[usize::from(key.protocol())]
            & self.dscps[usize::from(dscp & 63)];
        if left & self.with_ports != 0 {
            let (first, second) = (key.first_port(), key.second_port());
            let found = self.ports.iter().fold(!self.with_ports, |found, &(low, span, bit)| {
                let either = first.wrapping_sub(low) <= span || second.wrapping_sub(low) <= span;
                found | if either { bit } else { 0 }
            });
            left &= found;
        }
        if left & self.with_prefixes != 0 {
            left &= !self.with_prefixes | self.of_addresses(rules, key);
        }
        if left & self.with_vlans != 0 {
            left &= !self.with_vlans | of_vlans(rules, key);
        }
        left
    }

    /// The rules that name one of the addresses.
    #[inline]
    fn of_addresses(&self, rules: &[ClassRule], key: &FlowKey) -> u16 {
        match key.family() {
            Family::V4 => {
                let [first, second] = [key.raw()[0] as u32, (key.raw()[0] >> 32) as u32];
                self.v4.iter().fold(0, |found, &(mask, bits, bit)| {
                    let either = first & mask == bits || second & mask == bits;
                    found | if either { bit } else { 0 }
                })
            }
            Family::V6 => of_rules(rules, |rule| {
                rule.prefixes.contains(key.first()) || rule.prefixes.contains(key.second())
            }),
        }
    }
}

/// The rules that name one of the VLANs.
fn of_vlans(rules: &[ClassRule], key: &FlowKey) -> u16 {
    let (outer, inner) = ((key.zone() >> 12) as u16 & 0xfff, key.zone() as u16 & 0xfff);
    let either = |vlan: &u16| *vlan == inner || *vlan == outer;
    of_rules(rules, |rule| key.zone() != 0 && rule.vlans.iter().any(either))
}

fn of_rules(rules: &[ClassRule], holds: impl Fn(&ClassRule) -> bool) -> u16 {
    rules.iter().rev().fold(0, |found, rule| found << 1 | u16::from(holds(rule)))
}

/// By value, the rules that allow it.
fn allowed(rules: &[ClassRule], values: u16, allows: impl Fn(&ClassRule, u8) -> bool) -> Vec<u16> {
    (0..values).map(|value| of_rules(rules, |rule| allows(rule, value as u8))).collect()
}

impl ClassRules {
    /// The rules in the order in which they are tried.
    ///
    /// # Panics
    /// When there are more than [`MAX_CLASSES`].
    pub fn new(rules: Vec<ClassRule>) -> ClassRules {
        assert!(rules.len() <= MAX_CLASSES, "{} rules", rules.len());
        ClassRules {
            matcher: Matcher::of(&rules),
            has_priority: rules.iter().any(|rule| rule.class == Class::Priority),
            reads_dscp: rules.iter().any(|rule| !rule.dscps.is_empty()),
            may_split_flows: rules
                .iter()
                .any(|rule| !rule.dscps.is_empty() || !rule.devices.is_empty()),
            rules,
        }
    }

    /// The rules, in order.
    pub fn rules(&self) -> &[ClassRule] {
        &self.rules
    }

    /// Whether any packet can be of the priority class.
    #[inline]
    pub fn has_priority(&self) -> bool {
        self.has_priority
    }

    /// Whether a code point makes a difference.
    #[inline]
    pub fn reads_dscp(&self) -> bool {
        self.reads_dscp
    }

    /// Whether packets of one direction of a flow may be of several classes.
    #[inline]
    pub fn may_split_flows(&self) -> bool {
        self.may_split_flows
    }

    /// The number of the first rule that matches; [`ClassRules::rest`] when none does. O(rules).
    #[inline]
    pub fn find(&self, subject: ClassSubject<'_>) -> usize {
        if self.rules.is_empty() {
            return 0;
        }
        let found = self.matcher.matching(&self.rules, subject).trailing_zeros() as usize;
        found.min(self.rules.len())
    }

    /// The number that stands for packets that no rule matches.
    pub fn rest(&self) -> usize {
        self.rules.len()
    }

    /// The class of what the rule with this number matches.
    #[inline]
    pub fn class_of(&self, rule: usize) -> Class {
        self.rules.get(rule).map_or(Class::Regular, |rule| rule.class)
    }

    /// The name of what the rule with this number matches.
    pub fn name_of(&self, rule: usize) -> &str {
        self.rules.get(rule).map_or("rest", |rule| &rule.name)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

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
            assert_eq!(
                matches(rule(|rule| rule.prefixes = prefixes(text)), flow),
                expected,
                "{text}"
            );
        }
        for (ports, expected) in [(5_060..=5_061, true), (0..=5_000, true), (5_061..=5_061, false)]
        {
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
        assert!(
            !matches(rule(|rule| rule.vlans = vec![0]), key([10; 4], 1, 2, 0)),
            "no tag, no VLAN"
        );
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
                let mut rule = ClassRule::any("rule", Class::Regular);
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
            }
        }
        assert!(matched > 1_000, "{matched}");
    }
}
