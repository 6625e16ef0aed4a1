//! One endpoint of a packet of TCP or UDP, address and port, replaced at once: what address translation does with most packets.

use std::net::{IpAddr, Ipv4Addr};

use super::field::{put_u16, put_u32, u16_at, u32_at};
use super::protocol::{TCP, UDP};
use super::rewrite::{Rewrite, RewriteError};
use super::{ipv4, tcp, udp};
use crate::checksum::Delta;
use crate::{Headers, Network};

/// Which endpoint of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The sender.
    Source,
    /// The receiver.
    Destination,
}

/// Replaces an endpoint of the packet that starts with `data` and has these headers, as [`Rewrite`] does in two steps.
///
/// # Errors
/// As those of [`Rewrite`]. They cannot occur where the transport header of TCP or UDP lies whole in `data`, and the address is
/// of the packet's family.
#[inline(always)]
pub fn replace_endpoint(
    data: &mut [u8],
    headers: &Headers,
    end: End,
    (address, port): (IpAddr, u16),
) -> Result<(), RewriteError> {
    if headers.network == Network::Ipv4
        && headers.fragment.is_none()
        && let IpAddr::V4(address) = address
        && let Some(()) = replace_v4(data, headers, end, (address, port))
    {
        return Ok(());
    }
    replace_in_steps(data, headers, end, (address, port))
}

/// Both checksums are adjusted once, and each byte is read and written once. `None`, and nothing changed, when there is no room
/// for the headers.
#[inline(always)]
fn replace_v4(
    data: &mut [u8],
    headers: &Headers,
    end: End,
    (address, port): (Ipv4Addr, u16),
) -> Option<()> {
    let (front, transport) = data.split_at_mut_checked(headers.l4.into())?;
    let ip: &mut [u8; ipv4::MIN_HEADER] =
        front.get_mut(usize::from(headers.l3)..)?.first_chunk_mut()?;
    let (at_address, at_port) = match end {
        End::Source => (ipv4::SOURCE, 0),
        End::Destination => (ipv4::DESTINATION, 2),
    };
    let address = address.to_bits();
    let of_address = Delta::of_u32(u32_at(ip, at_address), address);
    match headers.protocol {
        TCP => {
            let segment: &mut [u8; tcp::MIN_HEADER] = transport.first_chunk_mut()?;
            if tcp::header_len(segment) < tcp::MIN_HEADER {
                return None;
            }
            let delta = of_address.and(Delta::of_u16(u16_at(segment, at_port), port));
            put_u16(segment, at_port, port);
            let checksum = delta.apply(u16_at(segment, tcp::CHECKSUM));
            put_u16(segment, tcp::CHECKSUM, checksum);
        }
        UDP => {
            let datagram: &mut [u8; udp::HEADER] = transport.first_chunk_mut()?;
            let delta = of_address.and(Delta::of_u16(u16_at(datagram, at_port), port));
            put_u16(datagram, at_port, port);
            let checksum = delta.apply_udp(u16_at(datagram, udp::CHECKSUM));
            put_u16(datagram, udp::CHECKSUM, checksum);
        }
        _ => return None,
    }
    put_u32(ip, at_address, address);
    let checksum = of_address.apply(u16_at(ip, ipv4::CHECKSUM));
    put_u16(ip, ipv4::CHECKSUM, checksum);
    Some(())
}

#[inline(never)]
fn replace_in_steps(
    data: &mut [u8],
    headers: &Headers,
    end: End,
    (address, port): (IpAddr, u16),
) -> Result<(), RewriteError> {
    let mut rewrite = Rewrite::new(data, headers)?;
    match end {
        End::Source => {
            rewrite.set_source(address)?;
            rewrite.set_source_port(port)
        }
        End::Destination => {
            rewrite.set_destination(address)?;
            rewrite.set_destination_port(port)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::LinkType;
    use crate::build::{FrameBuilder, Payload, TcpHeader, Transport};

    proptest! {
        #![proptest_config(crate::cases::config())]

        /// Whatever the packet, its checksums right or not, and whatever its new endpoint.
        #[test]
        fn at_once_is_as_in_steps(
            v6: bool,
            is_udp: bool,
            is_source: bool,
            (a, b, new) in any::<(u128, u128, u128)>(),
            (from, to, port) in any::<(u16, u16, u16)>(),
            changes in prop::collection::vec((0_usize..60, any::<u8>()), 0..3),
        ) {
            let address = |bits: u128| -> IpAddr {
                if v6 { Ipv6Addr::from_bits(bits).into() } else { Ipv4Addr::from_bits(bits as u32).into() }
            };
            let ports = (from, to);
            let transport = match is_udp {
                true => Transport::Udp { ports },
                false => Transport::Tcp(TcpHeader { ports, ..TcpHeader::default() }),
            };
            let mut frame =
                FrameBuilder::new(address(a), address(b), transport, Payload::Pattern(20)).to_vec();
            for (at, value) in changes {
                let at = at % frame.len();
                frame[at] = value;
            }
            let Ok(headers) = Headers::parse_bytes(&frame, frame.len(), LinkType::Raw) else { return Ok(()) };
            let end = if is_source { End::Source } else { End::Destination };
            let mut in_steps = frame.clone();
            let expected = replace_in_steps(&mut in_steps, &headers, end, (address(new), port));
            let done = replace_endpoint(&mut frame, &headers, end, (address(new), port));
            prop_assert_eq!(&done, &expected);
            if done.is_ok() {
                prop_assert_eq!(frame, in_steps);
            }
        }
    }
}
