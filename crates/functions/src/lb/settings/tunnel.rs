//! `[function.lb.tunnel]`: how packets travel to backends that answer clients directly.

use crate::lb::TunnelConfig;
use rheostat_steer::Prefix;

use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::number::integer;
use rheostat_settings::reader::convert::{list, prefix};
use rheostat_settings::reader::{Table, Value};

/// What a path may carry: with the longest outer header off, IPv6's least of 1,280 bytes remains, so that
/// nothing but IPv4 is ever fragmented.
const MTU: std::ops::RangeInclusive<u64> = 1_328..=65_535;

/// Reads the settings of tunnels.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> TunnelConfig {
    let default = TunnelConfig::default();
    let mtu = table.read("mtu", findings, integer(MTU));
    let ttl = table.read("ttl", findings, integer(1..=255));
    let port = table.read("gue_port", findings, integer(1..=65_535));
    let sources = table.read("sources", findings, sources);
    TunnelConfig {
        mtu: mtu.map_or(default.mtu, |mtu| mtu as u16),
        ttl: ttl.map_or(default.ttl, |ttl| ttl as u8),
        sources: sources.unwrap_or(default.sources),
        gue_port: port.map_or(default.gue_port, |port| port as u16),
    }
}

/// A conversion to one prefix per family at most.
fn sources(value: &Value<'_>, findings: &mut Findings) -> Option<Vec<Prefix>> {
    let prefixes = list(prefix)(value, findings)?;
    let v4 = prefixes.iter().filter(|prefix| prefix.address().is_ipv4()).count();
    if v4 > 1 || prefixes.len() - v4 > 1 {
        let finding = value.mistake("outer headers have several prefixes of one version of IP");
        findings.push(finding.help("write one prefix of IPv4, and one of IPv6 if there is any"));
        return None;
    }
    Some(prefixes)
}
