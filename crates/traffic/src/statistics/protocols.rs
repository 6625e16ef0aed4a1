//! What packets are.

use rheostat_packet::wire::protocol::{ICMPV4, ICMPV6, TCP, UDP};
use rheostat_packet::{Headers, Network};

/// Packets by protocol.
#[derive(Debug, Default)]
pub(super) struct Protocols {
    pub(super) packets: u64,
    pub(super) tcp: u64,
    pub(super) udp: u64,
    pub(super) icmp: u64,
    pub(super) ipv6: u64,
    pub(super) unparsed: u64,
}

impl Protocols {
    pub(super) fn count(&mut self, headers: &Headers) {
        self.packets += 1;
        self.ipv6 += u64::from(headers.network == Network::Ipv6);
        match headers.protocol {
            TCP => self.tcp += 1,
            UDP => self.udp += 1,
            ICMPV4 | ICMPV6 => self.icmp += 1,
            _ => {}
        }
    }

    /// A packet that cannot be read.
    pub(super) fn count_unparsed(&mut self) {
        self.packets += 1;
        self.unparsed += 1;
    }
}
