//! The chains that can be tried, and their configuration.

/// A chain between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TriedChain {
    /// A firewall, and behind it a NAT that lets the host inside share the gateway's address.
    Nat,
    /// A firewall: connections from inside, and nothing else.
    Firewall,
}

/// Devices, addresses and firewall. The hosts have 192.168.77.2 and 203.0.113.254.
const GATEWAY: &str = r#"# A gateway between two hosts of `rheo try`: change rules here and run it again, or reload it.

[[device]]
name = "lan"
kind = "af_packet"
interface = "lan"
side = "inside"
address = ["192.168.77.1/24", "fd77::1/64"]

[[device]]
name = "wan"
kind = "af_packet"
interface = "wan"
side = "outside"
address = ["203.0.113.1/24", "2001:db8:113::1/64"]

[[function.firewall.rule]]  # the first rule that matches decides about a new connection
name = "no telnet"
action = "reject"
from = "inside"
protocol = "tcp"
destination_port = 23

[function.firewall]
default_inside = "allow"
default_outside = "deny"    # replies come in, and nothing else

[polling]
policy = "interrupt"

[state]
flows = "64k"
"#;

/// What the NAT adds.
const NAT: &str = r#"
[function.nat]
external = ["203.0.113.1"]  # the gateway's own address outside
inside = ["192.168.77.0/24"]
"#;

impl TriedChain {
    /// Its word on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            TriedChain::Nat => "nat",
            TriedChain::Firewall => "firewall",
        }
    }

    /// A configuration for the interfaces `lan` and `wan`.
    pub(super) fn config(self) -> String {
        match self {
            TriedChain::Nat => {
                format!("{GATEWAY}\n[chain]\nfunctions = [\"firewall\", \"nat\"]\n{NAT}")
            }
            TriedChain::Firewall => format!("{GATEWAY}\n[chain]\nfunctions = [\"firewall\"]\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use rheostat_control::Config;

    use super::*;
    use crate::App;

    #[test]
    fn every_chain_has_a_configuration_without_mistakes() {
        for chain in TriedChain::value_variants() {
            let parsed = Config::parse(&chain.config(), chain.name(), &App::new().registry);
            let (_, warnings) = parsed.unwrap_or_else(|report| panic!("{}", report.render(false)));
            assert!(warnings.is_empty(), "{}", warnings.render(false));
        }
    }
}
