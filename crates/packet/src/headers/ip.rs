//! From the network layer to the transport layer.

use super::{Fragment, Headers, LinkHeader, Network, transport};
use crate::malformed::{Layer, Malformed};
use crate::wire::protocol::{HOP_BY_HOP, TCP, UDP};
use crate::wire::{Ipv4Packet, Ipv6Packet, ipv6, ipv6_extension};

// Offsets of headers are kept in 16 bits: the longest chain of headers fits.
const _: () = assert!(2_048 * ipv6_extension::MAX_EXTENSIONS + 100 < u16::MAX as usize);

/// IPv4.
#[inline(always)]
pub(super) fn v4(data: &[u8], link: LinkHeader) -> Result<Headers, Malformed> {
    let l3 = link.l3;
    let ip = Ipv4Packet::new(data.get(l3..).unwrap_or_default())?;
    let l4 = l3 + ip.header_len();
    let mut end = l3 + usize::from(ip.total_len());
    if end < l4 || end > link.end {
        end = end_without_length(&ip, link.end)?;
    }
    let mut headers = Headers {
        network: Network::Ipv4,
        protocol: ip.protocol(),
        fragment: None,
        ethertype: link.ethertype,
        zone: link.zone,
        l3: l3 as u16,
        l4: l4 as u16,
        end: end as u32,
    };
    if ip.is_fragment() {
        headers.fragment = Some(fragment_v4(&ip)?);
    } else {
        transport::check(data, &headers)?;
    }
    Ok(headers)
}

/// What a total length that does not fit means: a frame that was captured before segmentation offload
/// has none, and is as long as the frame.
#[cold]
fn end_without_length(ip: &Ipv4Packet<'_>, frame_end: usize) -> Result<usize, Malformed> {
    if ip.total_len() == 0 && matches!(ip.protocol(), TCP | UDP) {
        Ok(frame_end)
    } else {
        Err(Malformed::Length(Layer::Ipv4))
    }
}

#[cold]
fn fragment_v4(ip: &Ipv4Packet<'_>) -> Result<Fragment, Malformed> {
    let header_len = ip.header_len() as u16;
    let len = ip.total_len().checked_sub(header_len);
    Ok(Fragment {
        id: ip.id().into(),
        offset: ip.fragment_offset(),
        len: len.ok_or(Malformed::FragmentLength(Layer::Ipv4))?,
        more: ip.more_fragments(),
    })
}

/// IPv6.
#[inline(always)]
pub(super) fn v6(data: &[u8], link: LinkHeader) -> Result<Headers, Malformed> {
    let l3 = link.l3;
    let ip = Ipv6Packet::new(data.get(l3..).unwrap_or_default())?;
    let l4 = l3 + ipv6::HEADER;
    let mut end = l4 + usize::from(ip.payload_len());
    if end == l4 {
        end = end_without_payload_length(&ip, l4, link.end);
    }
    if end > link.end {
        return Err(Malformed::Length(Layer::Ipv6));
    }
    let mut headers = Headers {
        network: Network::Ipv6,
        protocol: ip.next_header(),
        fragment: None,
        ethertype: link.ethertype,
        zone: link.zone,
        l3: l3 as u16,
        l4: l4 as u16,
        end: end as u32,
    };
    if ipv6_extension::is_extension(ip.next_header()) {
        skip_extensions(data, &mut headers)?;
    }
    if headers.fragment.is_none() {
        transport::check(data, &headers)?;
    }
    Ok(headers)
}

/// The end of a packet without payload length: a jumbogram (RFC 2675) has its length in an option; TCP
/// captured before segmentation offload is as long as the frame; others end here.
#[cold]
fn end_without_payload_length(ip: &Ipv6Packet<'_>, l4: usize, frame_end: usize) -> usize {
    match ip.next_header() {
        TCP => frame_end,
        HOP_BY_HOP => match ip.extensions().next() {
            Some(Ok(options)) => l4 + options.jumbo_len().map_or(0, |len| len as usize),
            _ => l4,
        },
        _ => l4,
    }
}

/// Walks the extension headers up to the transport layer.
#[cold]
#[inline(never)]
fn skip_extensions(data: &[u8], headers: &mut Headers) -> Result<(), Malformed> {
    let (start, end) = (usize::from(headers.l4), headers.end as usize);
    // An extension header may not lie behind the end of the packet, nor can it be read where the
    // capture ends.
    let held = &data[start..end.min(data.len()).max(start)];
    let mut extensions = ipv6_extension::Extensions::new(headers.protocol, held);
    while let Some(extension) = extensions.next().transpose()? {
        let Some(fragment) = extension.fragment() else { continue };
        if fragment.offset > 0 || fragment.more {
            let at = start + held.len() - extensions.rest().len();
            let len = u16::try_from(end - at);
            let len = len.map_err(|_| Malformed::FragmentLength(Layer::Ipv6))?;
            headers.fragment = Some(Fragment { len, ..fragment });
        }
    }
    headers.protocol = extensions.protocol();
    headers.l4 += (held.len() - extensions.rest().len()) as u16;
    Ok(())
}
