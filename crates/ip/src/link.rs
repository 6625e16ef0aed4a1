//! Link headers, turned round and made.

use rheostat_packet::build::MIN_FRAME;
use rheostat_packet::wire::{MacAddress, ethernet};
use rheostat_packet::{Headers, LinkType, Mbuf};

use crate::interface::Interface;

/// The start of a packet that is to be answered, with all its headers.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Its bytes, from the link header on.
    pub data: &'a [u8],
    /// The kind of its link header.
    pub link: LinkType,
}

impl<'a> From<&'a Mbuf> for Received<'a> {
    fn from(packet: &'a Mbuf) -> Received<'a> {
        Received { data: packet.data(), link: packet.link() }
    }
}

/// Writes the link header of an answer to `packet` to the start of `out` and returns its length. `None`
/// when the packet was sent to many, because such a packet must not be answered (RFC 1122, 3.2.2), or
/// when there is no room.
pub(crate) fn write_reversed(
    packet: Received<'_>,
    headers: &Headers,
    out: &mut [u8],
) -> Option<usize> {
    let len = usize::from(headers.l3);
    let header = packet.data.get(..len)?;
    let out = out.get_mut(..len)?;
    out.copy_from_slice(header);
    match packet.link {
        LinkType::Ethernet => {
            if header.first()? & 1 != 0 {
                return None;
            }
            out[..6].copy_from_slice(&header[6..12]);
            out[6..12].copy_from_slice(&header[..6]);
        }
        // The first two bytes of the first version, and the eleventh of the second, are the direction: 0 to this host, 1 and 2 to
        // many, 4 from this host.
        LinkType::LinuxCooked => match header.get(..2)? {
            [0, 1 | 2] => return None,
            [0, 4] => out[1] = 0,
            _ => out[1] = 4,
        },
        LinkType::LinuxCooked2 => match *header.get(10)? {
            1 | 2 => return None,
            4 => out[10] = 0,
            _ => out[10] = 4,
        },
        LinkType::Raw | LinkType::Null => {}
    }
    Some(len)
}

/// A frame of an interface, padded to the least length.
pub(crate) fn frame(
    interface: &Interface,
    to: MacAddress,
    ethertype: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut frame = [to, interface.mac].concat();
    if let Some(vlan) = interface.vlan {
        frame.extend(ethernet::VLAN.to_be_bytes());
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend_from_slice(payload);
    frame.resize(frame.len().max(MIN_FRAME), 0);
    frame
}

/// Pads an Ethernet frame of `len` bytes to the least length.
pub(crate) fn padded(packet: Received<'_>, out: &mut [u8], len: usize) -> usize {
    const LEAST: usize = 60;
    if packet.link != LinkType::Ethernet || len >= LEAST || out.len() < LEAST {
        return len;
    }
    out[len..LEAST].fill(0);
    LEAST
}
