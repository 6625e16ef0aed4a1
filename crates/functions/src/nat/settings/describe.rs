//! A NAT in words.

use std::fmt;

use rheostat_settings::quantity::{Count, Span};

use super::NatFunction;
use crate::nat::{Filtering, Mapping, NatConfig, Sharing};

/// Writes what is translated and how, and where mappings are kept and logged.
pub(in crate::nat) fn describe(
    NatFunction { nat, log, sharing }: &NatFunction,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    describe_nat(nat, f)?;
    if let Some(Sharing { flows, refresh_interval }) = sharing {
        let (flows, interval) = (Count(*flows as u64), Span(*refresh_interval));
        writeln!(f, "          shared by all lanes: {flows} flows, refreshed every {interval}")?;
    }
    match log {
        Some(log) => writeln!(f, "          mappings are logged to {}", log.display()),
        None => Ok(()),
    }
}

fn describe_nat(nat: &NatConfig, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mapping = match nat.mapping {
        Mapping::EndpointIndependent => "endpoint-independent",
        Mapping::AddressAndPortDependent => "address-and-port-dependent",
    };
    let filtering = match nat.filtering {
        Filtering::EndpointIndependent => "from any host",
        Filtering::AddressDependent => "from hosts that were sent to",
        Filtering::AddressAndPortDependent => "from endpoints that were sent to",
    };
    let addresses = nat.external.len();
    let (low, high) = (nat.ports.start(), nat.ports.end());
    write!(f, "{addresses} external, ports {low}-{high}; {mapping}; packets in {filtering}")?;
    if nat.deterministic {
        write!(f, "; a block of ports for each host")?;
    }
    if let Some(quota) = nat.quota {
        write!(f, "; {quota} ports for one host at most")?;
    }
    match nat.forwards.len() {
        0 => writeln!(f),
        count => writeln!(f, "; {count} forwarded"),
    }
}
