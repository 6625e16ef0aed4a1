//! Source, middle and sink, and the interfaces between them.
//!
//! ```text
//! source  eth ── lan  middle  wan ── eth  sink
//! ```

use std::process::Command;

use super::error::LiveError;
use super::namespace::Namespace;

/// The interface of source and sink.
pub(super) const END: &str = "eth";
/// The middle's interface towards the source.
pub(super) const LAN: &str = "lan";
/// The middle's interface towards the sink.
pub(super) const WAN: &str = "wan";
/// The address of `lan` on the link, and the source's: `traffic.bpf.c` writes them into frames.
const LAN_MAC: &str = "02:00:00:00:4d:01";
const SOURCE_MAC: &str = "02:00:00:00:4d:0a";
/// The sink, by which everything is routed.
pub(super) const SINK_ADDRESS: &str = "203.0.113.10";

/// Three namespaces and two virtual cables.
#[derive(Debug)]
pub(super) struct Wires {
    pub(super) source: Namespace,
    pub(super) middle: Namespace,
    pub(super) sink: Namespace,
}

impl Wires {
    pub(super) fn build() -> Result<Wires, LiveError> {
        let wires = Wires {
            source: Namespace::new("source")?,
            middle: Namespace::new("middle")?,
            sink: Namespace::new("sink")?,
        };
        wires.cable(LAN, &wires.source, LAN_MAC, SOURCE_MAC)?;
        wires.cable(WAN, &wires.sink, "02:00:00:00:71:01", "02:00:00:00:71:0a")?;
        // It answers ARP, so that its address on the link need not be configured.
        wires.sink.ip(&format!("addr add {SINK_ADDRESS}/24 dev {END}"))?;
        Ok(wires)
    }

    /// Whether an XDP program is on an interface of the middle.
    pub(super) fn has_program(&self, interface: &str) -> bool {
        let shown = Command::new("ip")
            .args(["-n", self.middle.name(), "-o", "link", "show", interface])
            .output();
        shown.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("prog/xdp"))
    }

    fn cable(
        &self,
        near: &str,
        end: &Namespace,
        near_mac: &str,
        end_mac: &str,
    ) -> Result<(), LiveError> {
        let middle = &self.middle;
        let peer = format!("peer name {END} address {end_mac} netns {}", end.name());
        middle.ip(&format!("link add {near} address {near_mac} type veth {peer}"))?;
        for (namespace, interface) in [(middle, near), (end, END)] {
            // No chatter of IPv6; and frames whole, with their checksums.
            namespace.exec(&format!("sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1"), "")?;
            namespace.exec(&format!("ethtool -K {interface} tx off tso off gso off"), "")?;
            namespace.ip(&format!("link set {interface} up"))?;
        }
        Ok(())
    }
}
