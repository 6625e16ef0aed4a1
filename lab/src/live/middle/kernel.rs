//! The kernel as a gateway.

use crate::live::wires::{LAN, SINK_ADDRESS, WAN, Wires};
use crate::testbed::TestbedError;

const RULES: &str = "
table ip gateway {
  chain out { type nat hook postrouting priority srcnat; oifname \"wan\" masquerade; }
}
";

/// Forwards and masquerades, as a home router does.
pub(super) fn masquerade(wires: &Wires) -> Result<(), TestbedError> {
    let middle = &wires.middle;
    middle.ip(&format!("addr add 192.168.77.1/24 dev {LAN}"))?;
    middle.ip(&format!("addr add 203.0.113.1/24 dev {WAN}"))?;
    middle.ip(&format!("route add default via {SINK_ADDRESS}"))?;
    middle.exec("sysctl -qw net.ipv4.ip_forward=1", "")?;
    middle.exec("nft -f -", RULES)?;
    // As long as rheo's NAT: flows do not expire between two windows.
    for state in ["timeout", "timeout_stream"] {
        middle.exec(&format!("sysctl -qw net.netfilter.nf_conntrack_udp_{state}=300"), "")?;
    }
    // Frames that are sent by XDP are received only where NAPI polls: an XDP program would cause that (and cost time), and
    // coalescing does as well.
    middle.exec(&format!("ethtool -K {LAN} gro on"), "")?;
    Ok(())
}
