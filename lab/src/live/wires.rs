//! Source, middle and sink, and the interfaces between them.
//!
//! ```text
//! source  eth ── lan  middle  wan ── eth  sink
//! ```

use crate::testbed::{Namespace, NamespaceEnd, TestbedError, lay};

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
/// Frames are whole, with their checksums.
const WITHOUT: &[&str] = &["tx", "tso", "gso"];

/// Three namespaces and two virtual cables.
#[derive(Debug)]
pub(super) struct Wires {
    pub(super) source: Namespace,
    pub(super) middle: Namespace,
    pub(super) sink: Namespace,
}

impl Wires {
    pub(super) fn build() -> Result<Wires, TestbedError> {
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

    fn cable(
        &self,
        near: &str,
        end: &Namespace,
        near_mac: &str,
        end_mac: &str,
    ) -> Result<(), TestbedError> {
        let of = |namespace, interface, mac| NamespaceEnd {
            namespace,
            interface,
            mac: Some(mac),
            without: WITHOUT,
        };
        lay(of(&self.middle, near, near_mac), of(end, END, end_mac))
    }
}
