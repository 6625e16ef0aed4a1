//! Checks of the transport header of a packet that is no fragment.

use super::Headers;
use crate::malformed::{Layer, Malformed};
use crate::wire::protocol::{
    AH, DCCP, ESP, GRE, ICMPV4, ICMPV6, SCTP, TCP, UDP, UDP_LITE, has_ports,
};
use crate::wire::{ah, esp, gre, icmpv4, icmpv6, sctp, tcp, udp};

/// Checks that the header is whole on the wire, that the lengths it states are possible, and that
/// the ports, where the protocol has them, were captured.
#[inline(always)]
pub(super) fn check(data: &[u8], headers: &Headers) -> Result<(), Malformed> {
    let l4 = usize::from(headers.l4);
    let len = headers.end as usize - l4;
    let held = data.get(l4..).unwrap_or_default();
    match headers.protocol {
        TCP => {
            // Usually the whole fixed header was captured.
            let Some(header) = held.first_chunk::<{ tcp::MIN_HEADER }>() else {
                return check_other(held.len(), len, TCP);
            };
            let header_len = tcp::header_len(header);
            if len < tcp::MIN_HEADER {
                Err(Malformed::Truncated(Layer::Tcp))
            } else if header_len < tcp::MIN_HEADER || header_len > len {
                Err(Malformed::HeaderLength(Layer::Tcp))
            } else {
                Ok(())
            }
        }
        UDP => {
            let Some(header) = held.first_chunk::<{ udp::HEADER }>() else {
                return check_other(held.len(), len, UDP);
            };
            let stated = usize::from(udp::len(header));
            if len < udp::HEADER {
                Err(Malformed::Truncated(Layer::Udp))
            } else if (udp::HEADER..=len).contains(&stated) {
                Ok(())
            } else if stated == 0 && len > usize::from(u16::MAX) {
                // A jumbogram (RFC 2675, section 4), or captured before segmentation offload.
                Ok(())
            } else {
                Err(Malformed::Length(Layer::Udp))
            }
        }
        protocol => check_other(held.len(), len, protocol),
    }
}

/// Checks that `len` bytes on the wire, of which `held` were captured, are enough for the header.
#[inline(never)]
fn check_other(held: usize, len: usize, protocol: u8) -> Result<(), Malformed> {
    let (layer, min) = match protocol {
        TCP => (Layer::Tcp, tcp::MIN_HEADER),
        UDP | UDP_LITE => (Layer::Udp, udp::HEADER),
        DCCP => (Layer::Dccp, 12),
        SCTP => (Layer::Sctp, sctp::HEADER),
        ICMPV4 => (Layer::Icmpv4, icmpv4::HEADER),
        ICMPV6 => (Layer::Icmpv6, icmpv6::HEADER),
        GRE => (Layer::Gre, gre::MIN_HEADER),
        ESP => (Layer::Esp, esp::HEADER),
        AH => (Layer::Ah, ah::FIXED),
        _ => return Ok(()),
    };
    if len < min || has_ports(protocol) && held < 4 {
        Err(Malformed::Truncated(layer))
    } else {
        Ok(())
    }
}
