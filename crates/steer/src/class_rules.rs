//! Which class a packet belongs to: the first rule that matches decides, and what no rule matches is regular.
//!
//! A rule looks at what both directions of a flow have in common: an address or port matches at either end. Code points,
//! VLANs and devices may differ between packets of a flow, so such a rule may put a flow's packets into several classes.

mod burst;
mod matcher;

use std::ops::RangeInclusive;

use rheostat_base::DeviceId;
use rheostat_packet::FlowKey;

use self::burst::BurstMatcher;
pub use self::burst::{ClassBurst, RulePlaces};
use self::matcher::Matcher;
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
    burst_matcher: BurstMatcher,
    /// Those of the priority class, a bit each.
    priority: u16,
    reads_dscp: bool,
    may_split_flows: bool,
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

impl ClassRules {
    /// The rules in the order in which they are tried.
    ///
    /// # Panics
    /// When there are more than [`MAX_CLASSES`].
    pub fn new(rules: Vec<ClassRule>) -> ClassRules {
        assert!(rules.len() <= MAX_CLASSES, "{} rules", rules.len());
        ClassRules {
            matcher: Matcher::of(&rules),
            burst_matcher: BurstMatcher::of(&rules),
            priority: rules
                .iter()
                .rev()
                .fold(0, |priority, rule| priority << 1 | u16::from(rule.class == Class::Priority)),
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
        self.priority != 0
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

    /// Finds the first rule that matches for each of the packets of a burst at `places`. `key` returns the key of the packet at
    /// a place, for those of IPv6 where rules have prefixes. O(rules), and O(packets) of those.
    #[inline]
    pub fn find_all(
        &self,
        burst: &ClassBurst,
        places: u32,
        key: impl Fn(usize) -> FlowKey,
        found: &mut RulePlaces,
    ) {
        self.burst_matcher.find(burst, places, key, found);
    }

    /// Of packets that were found to match these rules, those of the priority class.
    #[inline]
    pub fn priority_of(&self, found: &RulePlaces) -> u32 {
        let (mut rules, mut places) = (self.priority, 0);
        while rules != 0 {
            places |= found[rules.trailing_zeros() as usize];
            rules &= rules - 1;
        }
        places
    }

    /// The number that stands for packets that no rule matches.
    pub fn rest(&self) -> usize {
        self.rules.len()
    }

    /// The class of what the rule with this number matches.
    #[inline]
    pub fn class_of(&self, rule: usize) -> Class {
        match u32::from(self.priority).checked_shr(rule as u32) {
            Some(rules) if rules & 1 != 0 => Class::Priority,
            _ => Class::Regular,
        }
    }

    /// The name of what the rule with this number matches.
    pub fn name_of(&self, rule: usize) -> &str {
        self.rules.get(rule).map_or("rest", |rule| &rule.name)
    }
}

#[cfg(test)]
mod tests;
