//! `[function.lb.tunnel]`: how packets travel to backends that answer clients directly.

use crate::lb::TunnelConfig;
use rheostat_steer::Prefix;

use rheostat_settings::declared::kind::{Kind, integer};
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::convert::{list, prefix};
use rheostat_settings::reader::{Table, Value};

/// What a path may carry: with the longest outer header off, IPv6's least of 1,280 bytes remains, so that
/// nothing but IPv4 is ever fragmented.
const MTU: std::ops::RangeInclusive<u64> = 1_328..=65_535;

/// Reads the settings of tunnels.
pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> TunnelConfig {
    let keys = Keys::new(TunnelConfig::default());
    TunnelConfig {
        mtu: keys.mtu.read_or_default(table, findings),
        ttl: keys.ttl.read_or_default(table, findings),
        gue_port: keys.gue_port.read_or_default(table, findings),
        sources: keys.sources.read_or_default(table, findings),
    }
}

rheostat_settings::keys! {
    struct Keys(default: TunnelConfig) {
        /// The longest packet that the path to backends carries, outer header included.
        mtu: u16 = integer(MTU), default(default.mtu);
        /// The TTL, or hop limit, of outer headers.
        ttl: u8 = integer(1..=255), default(default.ttl);
        /// The UDP port of backends for generic UDP encapsulation.
        gue_port: u16 = integer(1..=65_535), default(default.gue_port);
        /// The prefixes that source addresses of outer headers are from, one of each version of IP; by default, the load balancer's own
        /// address.
        sources: Vec<Prefix> = Kind::new(Form::List, sources, |prefixes: &Vec<_>| shown(prefixes)).noun("address prefix").such_as("[\"10.0.0.0/24\"]"),
            default(default.sources);
    }
}

fn shown(prefixes: &[Prefix]) -> String {
    prefixes.iter().map(Prefix::to_string).collect::<Vec<_>>().join(", ")
}

/// The keys of `[function.lb.tunnel]`.
pub(super) fn keys() -> Vec<Setting> {
    Keys::new(TunnelConfig::default()).settings()
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
