//! Which class a packet belongs to: the first rule that matches decides, and what no rule matches is regular.
//!
//! A rule looks at what both directions of a flow have in common: an address or port matches at either end. Code points,
//! VLANs and devices may differ between packets of a flow, so such a rule may put a flow's packets into several classes.

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
    masks: Vec<Masks>,
    has_priority: bool,
    reads_dscp: bool,
    may_split_flows: bool,
}

/// Code points, protocols, and leading bits of IPv4 addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Masks {
    dscps: u64,
    protocols: [u64; 4],
    /// Mask and bits.
    v4: Vec<(u32, u32)>,
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

    #[inline]
    fn matches(&self, masks: &Masks, subject: ClassSubject<'_>) -> bool {
        let ClassSubject { device, key, dscp } = subject;
        let protocol = key.protocol();
        let has_bit = |bits: u64, bit: u8| bits >> bit & 1 != 0;
        (self.devices.is_empty() || self.devices.contains(&device))
            && (masks.dscps == 0 || has_bit(masks.dscps, dscp & 63))
            && (self.protocols.is_empty()
                || has_bit(masks.protocols[usize::from(protocol >> 6)], protocol & 63))
            && self.matches_ports(key)
            && self.matches_vlans(key)
            && self.matches_addresses(masks, key)
    }

    #[inline]
    fn matches_ports(&self, key: &FlowKey) -> bool {
        let (first, second) = (key.first_port(), key.second_port());
        let either =
            |range: &RangeInclusive<u16>| range.contains(&first) || range.contains(&second);
        self.ports.is_empty() || self.ports.iter().any(either)
    }

    #[inline]
    fn matches_vlans(&self, key: &FlowKey) -> bool {
        let (outer, inner) = ((key.zone() >> 12) as u16 & 0xfff, key.zone() as u16 & 0xfff);
        let either = |vlan: &u16| *vlan == inner || *vlan == outer;
        self.vlans.is_empty() || key.zone() != 0 && self.vlans.iter().any(either)
    }

    #[inline]
    fn matches_addresses(&self, masks: &Masks, key: &FlowKey) -> bool {
        if self.prefixes.is_empty() {
            return true;
        }
        match key.family() {
            Family::V4 => {
                let [first, second] = [key.raw()[0] as u32, (key.raw()[0] >> 32) as u32];
                let either =
                    |(mask, bits): &(u32, u32)| first & mask == *bits || second & mask == *bits;
                masks.v4.iter().any(either)
            }
            Family::V6 => {
                self.prefixes.contains(key.first()) || self.prefixes.contains(key.second())
            }
        }
    }
}

/// In each part of a rule, nothing named means everything.
fn covers_items<T: PartialEq>(wide: &[T], narrow: &[T]) -> bool {
    wide.is_empty() || !narrow.is_empty() && narrow.iter().all(|item| wide.contains(item))
}

impl Masks {
    fn of(rule: &ClassRule) -> Masks {
        let mut masks = Masks::default();
        for dscp in &rule.dscps {
            masks.dscps |= 1 << (dscp & 63);
        }
        for protocol in &rule.protocols {
            masks.protocols[usize::from(protocol >> 6)] |= 1 << (protocol & 63);
        }
        let v4 = rule.prefixes.iter().filter_map(|prefix| match prefix.address() {
            std::net::IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix.length())).unwrap_or(0);
                Some((mask, address.to_bits()))
            }
            std::net::IpAddr::V6(_) => None,
        });
        masks.v4 = v4.collect();
        masks
    }
}

impl ClassRules {
    /// The rules in the order in which they are tried.
    ///
    /// # Panics
    /// When there are more than [`MAX_CLASSES`].
    pub fn new(rules: Vec<ClassRule>) -> ClassRules {
        assert!(rules.len() <= MAX_CLASSES, "{} rules", rules.len());
        ClassRules {
            masks: rules.iter().map(Masks::of).collect(),
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
        let mut rules = self.rules.iter().zip(&self.masks);
        rules.position(|(rule, masks)| rule.matches(masks, subject)).unwrap_or(self.rules.len())
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
}
