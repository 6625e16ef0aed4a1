//! A case that is written for IPv4, told once more over IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packet::{CasePacketKind, PacketSpec};

impl PacketSpec {
    /// The same packet over IPv6: hosts of 10.0.0.0/8 become unique local addresses, groups become
    /// groups, every other host gets an address for documentation; ICMP messages become their
    /// counterparts in ICMPv6.
    pub(crate) fn over_ipv6(&self) -> Result<PacketSpec, String> {
        if !self.bytes.is_empty() {
            return Err("`byte` counts in one IP header and not in another".to_owned());
        }
        if matches!(self.kind, CasePacketKind::Arp { .. } | CasePacketKind::Discovery(_)) {
            return Err("neighbours find each other in another way over IPv6".to_owned());
        }
        let mut packet = self.clone();
        packet.source.0 = counterpart(self.source.0);
        packet.destination.0 = counterpart(self.destination.0);
        if let (IpAddr::V4(_), CasePacketKind::Icmp { kind, code, quoted, .. }) =
            (self.source.0, &mut packet.kind)
        {
            (*kind, *code) = message(*kind, *code)?;
            if let Some(quoted) = quoted {
                **quoted = quoted.over_ipv6()?;
            }
        }
        if let Some(carried) = &mut packet.carried {
            **carried = carried.over_ipv6()?;
        }
        if packet.kind == CasePacketKind::Protocol(4) {
            packet.kind = CasePacketKind::Protocol(41);
        }
        Ok(packet)
    }
}

fn counterpart(address: IpAddr) -> IpAddr {
    let IpAddr::V4(v4) = address else { return address };
    let [a, b, c, d] = v4.octets();
    let prefix = match v4 {
        _ if v4.is_multicast() => [0xff0e, 0],
        _ if a == 10 => [0xfd00, 0],
        _ if v4 == Ipv4Addr::UNSPECIFIED => [0, 0],
        _ => [0x2001, 0xdb8],
    };
    let [high, low] = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
    Ipv6Addr::new(prefix[0], prefix[1], 0, 0, 0, 0, high, low).into()
}

/// The type and code of ICMPv6 (RFC 4443) that mean what these of ICMP (RFC 792, RFC 1812) do.
fn message(kind: u8, code: u8) -> Result<(u8, u8), String> {
    Ok(match (kind, code) {
        (8, _) => (128, code),
        (0, _) => (129, code),
        // No route, no such host, no such port, too big, prohibited.
        (3, 0) => (1, 0),
        (3, 1) => (1, 3),
        (3, 3) => (1, 4),
        (3, 4) => (2, 0),
        (3, 13) => (1, 1),
        (11, _) => (3, code),
        _ => return Err(format!("ICMP {kind} {code} has no counterpart over IPv6")),
    })
}
