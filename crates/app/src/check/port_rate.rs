//! How many new flows a second each external address of a NAT sustains.

use std::fmt;
use std::time::Duration;

use rheostat_control::Config;
use rheostat_functions::nat::{Mapping, NatConfig, NatFunction};
use serde_json::{Value, json};

/// What one external address sustains, in new flows a second, when nothing shows that ports are free sooner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PortRate {
    addresses: usize,
    ports: u32,
    /// TCP to one remote endpoint that remembers connections as long as the NAT does.
    tcp: f64,
    /// UDP from ever new inner ports; with address- and port-dependent mapping, to one remote endpoint.
    udp: f64,
    per_remote: bool,
}

impl PortRate {
    /// That of the chain's NAT, if it has one whose mappings lie in shards.
    pub(super) fn of(config: &Config) -> Option<PortRate> {
        let nat: &NatFunction = config.function()?;
        nat.sharing.is_none().then(|| PortRate::with(&nat.nat))
    }

    fn with(nat: &NatConfig) -> PortRate {
        let ports = u32::from(*nat.ports.end()) + 1 - u32::from(*nat.ports.start());
        let each = |kept: Duration| f64::from(ports) / kept.as_secs_f64().max(1.0);
        let per_remote = nat.mapping == Mapping::AddressAndPortDependent;
        let rest = if per_remote { Duration::ZERO } else { nat.rest };
        PortRate {
            addresses: nat.external.len(),
            ports,
            tcp: each(nat.timeouts.tcp_time_wait),
            udp: each(nat.timeouts.udp + rest),
            per_remote,
        }
    }

    /// The rates as an object of the report.
    pub(super) fn to_json(self) -> Value {
        json!({
            "external_addresses": self.addresses,
            "ports": self.ports,
            "tcp_unproven_per_remote": self.tcp,
            "udp": self.udp,
            "udp_per_remote": self.per_remote,
        })
    }
}

impl fmt::Display for PortRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PortRate { addresses, ports, tcp, udp, per_remote } = self;
        let plural = if *addresses == 1 { "address" } else { "addresses" };
        writeln!(
            f,
            "nat: {addresses} external {plural} with {ports} ports each; new flows a second for each address:"
        )?;
        writeln!(
            f,
            "  TCP, properly closed: no bound, but for {tcp:.0} to one remote endpoint if nothing proves SYNs to be new"
        )?;
        let towards = if *per_remote { " to one remote endpoint" } else { " from new inner ports" };
        write!(f, "  UDP: {udp:.0}{towards}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_ports_by_the_time_each_is_kept() {
        let mut nat = NatConfig::new(vec![[203, 0, 113, 1].into()]);
        let rate = PortRate::with(&nat);
        assert_eq!((rate.ports, rate.tcp.round(), rate.udp.round()), (64_512, 269.0, 154.0));
        assert!(rate.to_string().contains("for 269 to one remote endpoint"), "{rate}");
        nat.mapping = Mapping::AddressAndPortDependent;
        nat.timeouts.tcp_time_wait = Duration::ZERO;
        let rate = PortRate::with(&nat);
        assert_eq!((rate.tcp, rate.udp.round()), (64_512.0, 215.0));
    }
}
