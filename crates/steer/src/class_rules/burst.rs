//! Which rules the packets of a burst match, one condition for all packets at a time.

use std::net::IpAddr;

use rheostat_base::DeviceId;
use rheostat_base::simd::{COLUMN, Column, set_rows};
use rheostat_packet::FlowKey;

use super::{ClassRule, MAX_CLASSES};
use crate::prefix::PrefixList;

/// What rules look at of the packets of a burst, each word of all packets side by side.
#[derive(Clone, Debug)]
pub struct ClassBurst {
    /// First and second addresses of keys of IPv4; ports; protocols, and zones above them.
    keys: [Column; 4],
    /// The packets with keys of IPv6.
    v6: u32,
    /// Devices, and code points above them.
    origins: Column,
}

impl ClassBurst {
    /// The most packets.
    pub const MOST: usize = COLUMN;

    /// Takes the keys of these packets. Of one of IPv4 `key` returns [the two words](FlowKey); of one of IPv6 anything, and
    /// the last word. `v6` has a bit for each of those.
    ///
    /// # Panics
    /// With more than [`ClassBurst::MOST`] packets.
    #[inline]
    pub fn set_keys<T>(&mut self, packets: &[T], v6: u32, mut key: impl FnMut(&T) -> [u64; 2]) {
        assert!(packets.len() <= ClassBurst::MOST, "{} packets", packets.len());
        self.v6 = v6;
        let (groups, rest) = packets.as_chunks::<4>();
        for (number, [a, b, c, d]) in groups.iter().enumerate() {
            set_rows(&mut self.keys, number, [key(a), key(b), key(c), key(d)]);
        }
        if !rest.is_empty() {
            let mut rows = [[0; 2]; 4];
            rows.iter_mut().zip(rest).for_each(|(row, packet)| *row = key(packet));
            set_rows(&mut self.keys, groups.len(), rows);
        }
    }

    /// Takes the devices on which packets arrived, and their code points: only where
    /// [`ClassRules::may_split_flows`](super::ClassRules::may_split_flows).
    pub fn set_origins(&mut self, origins: impl Iterator<Item = (DeviceId, u8)>) {
        let mut words = [0; COLUMN];
        for (word, (device, dscp)) in words.iter_mut().zip(origins) {
            *word = u32::from(device.0) | u32::from(dscp & 63) << 8;
        }
        self.origins = Column::new(words);
    }
}

impl Default for ClassBurst {
    fn default() -> ClassBurst {
        ClassBurst { keys: [Column::ZERO; 4], v6: 0, origins: Column::ZERO }
    }
}

/// The packets of a burst that each rule matches first, a bit each, and behind those of the last rule the packets that no rule
/// matches.
pub type RulePlaces = [u32; MAX_CLASSES + 1];

/// What is compared with packets, rule by rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BurstMatcher {
    /// A rule asks for all of its conditions, and each condition for one of its tests.
    tests: Vec<Test>,
    /// By rule, what addresses of IPv6 may be in.
    prefixes: Vec<PrefixList>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Test {
    kind: TestKind,
    ends: BurstEnds,
    /// A mask, or the first of some ports.
    first: u32,
    /// What is expected under the mask, or how many ports follow.
    second: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestKind {
    /// Whether either address of IPv4 is in a prefix.
    Address,
    /// Whether either address of IPv6 is in a prefix of the rule.
    AddressOfV6,
    /// Whether either port is one of these.
    Port,
    /// What protocol and zone are.
    Tail,
    /// What protocol and zone are not.
    NotTail,
    /// What device and code point are.
    Origin,
}

/// What a test is the last of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BurstEnds {
    Nothing,
    Condition,
    Rule,
}

impl BurstMatcher {
    pub(super) fn of(rules: &[ClassRule]) -> BurstMatcher {
        let prefixes = rules.iter().map(|rule| rule.prefixes.clone()).collect();
        BurstMatcher { tests: rules.iter().flat_map(tests).collect(), prefixes }
    }

    /// Finds the rule of each of the packets at `places`. The `key` of a packet is asked for if it is of IPv6 and a rule has
    /// prefixes.
    #[inline]
    pub(super) fn find(
        &self,
        burst: &ClassBurst,
        places: u32,
        key: impl Fn(usize) -> FlowKey,
        found: &mut RulePlaces,
    ) {
        let ClassBurst { keys: [first, second, ports, tails], v6, origins } = burst;
        // Of the rule at hand the packets that match so far, and those of which one test of the condition at hand holds.
        let (mut left, mut hits, mut holds, mut rule) = (places, places, 0, 0);
        for test in &self.tests {
            holds |= match test.kind {
                TestKind::Address => first.either_equal(second, test.first, test.second) & !v6,
                TestKind::AddressOfV6 if hits & v6 == 0 => 0,
                TestKind::AddressOfV6 => self.within_v6(rule, hits & v6, &key),
                TestKind::Port => ports.half_within(test.first as u16, test.second as u16),
                TestKind::Tail => tails.equal(test.first, test.second),
                TestKind::NotTail => !tails.equal(test.first, test.second),
                TestKind::Origin => origins.equal(test.first, test.second),
            };
            if test.ends == BurstEnds::Nothing {
                continue;
            }
            hits &= holds;
            holds = 0;
            if test.ends == BurstEnds::Rule {
                found[rule] = hits;
                left &= !hits;
                hits = left;
                rule += 1;
            }
        }
        found[rule] = left;
    }

    /// Those of the packets at `places` of which an address is in a prefix of the rule.
    #[inline(never)]
    fn within_v6(&self, rule: usize, places: u32, key: impl Fn(usize) -> FlowKey) -> u32 {
        let prefixes = &self.prefixes[rule];
        let places = (0..ClassBurst::MOST).filter(|place| places >> place & 1 != 0);
        let places = places.filter(|&place| {
            let key = key(place);
            prefixes.contains(key.first()) || prefixes.contains(key.second())
        });
        places.fold(0, |within, place| within | 1 << place)
    }
}

/// The tests of a rule: one at least.
fn tests(rule: &ClassRule) -> Vec<Test> {
    let ClassRule { prefixes, ports, protocols, dscps, vlans, devices, .. } = rule;
    let test = |kind, first, second| Test { kind, ends: BurstEnds::Nothing, first, second };
    let mut tests = Vec::new();
    // What no packet passes.
    let never = test(TestKind::Tail, 0, 1);
    let mut add = |condition: Vec<Test>| {
        tests.extend(if condition.is_empty() { vec![never] } else { condition });
        end(&mut tests, BurstEnds::Condition);
    };
    if !prefixes.is_empty() {
        let v4 = prefixes.iter().filter_map(|prefix| match prefix.address() {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix.length())).unwrap_or(0);
                Some(test(TestKind::Address, mask, address.to_bits()))
            }
            IpAddr::V6(_) => None,
        });
        let has_v6 = prefixes.iter().any(|prefix| prefix.address().is_ipv6());
        let v6 = has_v6.then(|| test(TestKind::AddressOfV6, 0, 0));
        add(v4.chain(v6).collect());
    }
    if !ports.is_empty() {
        let ranges = ports.iter().filter_map(|ports| {
            let span = ports.end().checked_sub(*ports.start())?;
            Some(test(TestKind::Port, (*ports.start()).into(), span.into()))
        });
        add(ranges.collect());
    }
    if !dscps.is_empty() {
        let dscp = |dscp: &u8| test(TestKind::Origin, 0xff00, u32::from(dscp & 63) << 8);
        add(dscps.iter().map(dscp).collect());
    }
    if !vlans.is_empty() {
        // A number of more than twelve bits is that of no VLAN.
        let vlans = vlans.iter().map(|vlan| u32::from(*vlan)).filter(|vlan| *vlan < 1 << 12);
        let either = vlans.flat_map(|vlan| {
            [(0x000f_ff00, vlan << 8), (0xfff0_0000, vlan << 20)]
                .map(|(mask, bits)| test(TestKind::Tail, mask, bits))
        });
        add(either.collect());
        // No tag, no VLAN.
        add(vec![test(TestKind::NotTail, 0xffff_ff00, 0)]);
    }
    if !protocols.is_empty() {
        let protocol = |known: &u8| test(TestKind::Tail, 0xff, u32::from(*known));
        add(protocols.iter().map(protocol).collect());
    }
    if !devices.is_empty() {
        let device = |device: &DeviceId| test(TestKind::Origin, 0xff, device.0.into());
        add(devices.iter().map(device).collect());
    }
    if tests.is_empty() {
        // What every packet passes.
        tests.push(test(TestKind::NotTail, 0, 1));
    }
    end(&mut tests, BurstEnds::Rule);
    tests
}

fn end(tests: &mut [Test], ends: BurstEnds) {
    if let Some(last) = tests.last_mut() {
        last.ends = ends;
    }
}
