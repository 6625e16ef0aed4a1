//! Which rules one packet matches, all rules at a time.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use rheostat_base::DeviceId;
use rheostat_packet::{Family, FlowKey};

use super::{ClassRule, ClassSubject};

/// What packets are compared with, all rules at a time: bit n stands for rule n.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Matcher {
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

impl Matcher {
    pub(super) fn of(rules: &[ClassRule]) -> Matcher {
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
    pub(super) fn matching(&self, rules: &[ClassRule], subject: ClassSubject<'_>) -> u16 {
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
