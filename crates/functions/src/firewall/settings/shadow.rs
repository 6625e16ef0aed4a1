//! Rules that can never match, because an earlier one matches all that they would.

use crate::firewall::{FirewallConfig, PortList, PortRange, Rule};
use rheostat_steer::PrefixList;

use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;

/// Warns of each rule that a single earlier rule covers. Rules that only several earlier ones cover
/// together are not found.
pub(in crate::firewall) fn check(firewall: &FirewallConfig, findings: &mut Findings) {
    const KEY: &str = "function.firewall.rule";
    if !findings.clean(KEY) {
        return;
    }
    let rules = &firewall.rules.rules;
    for (index, rule) in rules.iter().enumerate() {
        let Some(earlier) = rules[..index].iter().position(|earlier| covers(earlier, rule)) else {
            continue;
        };
        let (first, second) = (format!("{KEY}[{earlier}]"), format!("{KEY}[{index}]"));
        let message = format!("{} can never match", title(rule, index));
        let finding = Finding::warning(&second, message)
            .at(
                findings.place(&first),
                format!("{} matches first", title(&rules[earlier], earlier)),
            )
            .at(findings.place(&second), "whatever this would match")
            .help("put the narrower rule first, or remove it");
        findings.push(finding);
    }
}

fn title(rule: &Rule, index: usize) -> String {
    match &rule.name {
        Some(name) => format!("rule `{name}`"),
        None => format!("rule {}", index + 1),
    }
}

/// Whether `wide` matches everything that `narrow` does.
fn covers(wide: &Rule, narrow: &Rule) -> bool {
    (wide.from.is_none() || wide.from == narrow.from)
        && (wide.device.is_none() || wide.device == narrow.device)
        && covers_prefixes(&wide.source, &narrow.source)
        && covers_prefixes(&wide.destination, &narrow.destination)
        && covers_items(&wide.protocols, &narrow.protocols)
        && covers_ports(&wide.source_ports, &narrow.source_ports)
        && covers_ports(&wide.destination_ports, &narrow.destination_ports)
        && covers_items(&wide.icmp_types, &narrow.icmp_types)
}

/// In each part of a rule, nothing said means everything.
fn covers_items<T: PartialEq>(wide: &[T], narrow: &[T]) -> bool {
    wide.is_empty() || !narrow.is_empty() && narrow.iter().all(|item| wide.contains(item))
}

fn covers_prefixes(wide: &PrefixList, narrow: &PrefixList) -> bool {
    let within = |prefix| wide.iter().any(|wider| wider.covers(prefix));
    wide.is_empty() || !narrow.is_empty() && narrow.iter().all(within)
}

fn covers_ports(wide: &PortList, narrow: &PortList) -> bool {
    let joined = join(&wide.0);
    let within =
        |range: &PortRange| joined.iter().any(|w| w.low <= range.low && range.high <= w.high);
    wide.is_any() || !narrow.is_any() && narrow.0.iter().all(within)
}

/// The same ports in as few ranges as possible.
fn join(ranges: &[PortRange]) -> Vec<PortRange> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| range.low);
    let mut joined: Vec<PortRange> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.low <= last.high.saturating_add(1) => {
                last.high = last.high.max(range.high);
            }
            _ => joined.push(range),
        }
    }
    joined
}
