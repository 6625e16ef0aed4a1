//! Plain packets of IP: those of which the network layer has nothing to say but where they lead. Headers are read in words, each
//! byte once.
//!
//! Whatever is odd about a packet makes it not plain, and leaves it to [`Stack::admit`] and [`Stack::depart`]: options, lengths,
//! checksums or addresses that are not right, tags, the end of its time.

use std::net::{Ipv4Addr, Ipv6Addr};

use rheostat_base::DeviceId;
use rheostat_packet::Mbuf;
use rheostat_packet::wire::{ethernet, ipv4, ipv6};

use super::Stack;
use super::adjacency::{Adjacency, NO_HOST};
use super::port::StackPort;

use crate::interface::may_be_source_v6;
use crate::neighbour::{mapped, mapped_v4};

/// Bytes up to the end of a header of IPv4 without options.
pub(super) const V4: usize = ethernet::HEADER + ipv4::MIN_HEADER;
/// Bytes up to the end of a header of IPv6.
pub(super) const V6: usize = ethernet::HEADER + ipv6::HEADER;

/// The address bits of a word of eight bytes that starts with a link address.
const MAC: u64 = (1 << 48) - 1;
/// The end of the link header, version, header length and type of service of a packet of IPv4 without options, as a word, and the
/// bits of it that count.
const PLAIN_V4: u32 = u32::from_le_bytes([8, 0, 0x45, 0]);
const PLAIN: u32 = u32::from_le_bytes([0xff, 0xff, 0xff, 0]);

/// A packet of IPv4 without options.
pub(super) struct PlainV4<'a> {
    frame: &'a mut [u8; V4],
    /// Bytes of the packet.
    pub(super) total: u16,
    /// Where it goes, in the byte order of memory.
    destination: u32,
}

impl<'a> PlainV4<'a> {
    /// A packet that has been looked at when it arrived.
    #[inline(always)]
    pub(super) fn leaving(packet: &'a mut Mbuf) -> Option<PlainV4<'a>> {
        let frame: &mut [u8; V4] = packet.data_mut().first_chunk_mut()?;
        let (kind, first) = (half_word(frame, 12), half_word(frame, 14));
        let (total, destination) = (((first >> 16) as u16).swap_bytes(), half_word(frame, 30));
        (kind & PLAIN == PLAIN_V4).then_some(PlainV4 { frame, total, destination })
    }

    /// Where it goes, as a number.
    #[inline(always)]
    pub(super) fn destination(&self) -> u128 {
        mapped_v4(self.destination.swap_bytes())
    }

    /// The address it goes to.
    #[inline(always)]
    pub(super) fn address(&self) -> Ipv4Addr {
        self.destination.to_le_bytes().into()
    }

    /// Takes its time to live down by one.
    #[inline(always)]
    pub(super) fn count_hop(&mut self) {
        let second = half_word(self.frame, 22);
        self.frame[22..26].copy_from_slice(&one_less(second).to_le_bytes());
    }

    /// Addresses it to a next hop.
    #[inline(always)]
    pub(super) fn address_to(self, adjacency: &Adjacency) -> DeviceId {
        self.frame[..12].copy_from_slice(&adjacency.link);
        adjacency.device
    }
}

/// A packet of IPv6.
pub(super) struct PlainV6<'a> {
    header: &'a mut [u8; V6],
    /// Bytes of the packet.
    pub(super) total: usize,
    /// The address it goes to.
    pub(super) address: Ipv6Addr,
}

impl<'a> PlainV6<'a> {
    /// A packet that has been looked at when it arrived.
    #[inline(always)]
    pub(super) fn leaving(packet: &'a mut Mbuf) -> Option<PlainV6<'a>> {
        let header: &mut [u8; V6] = packet.data_mut().first_chunk_mut()?;
        if header[12..14] != ethernet::IPV6.to_be_bytes() || header[14] >> 4 != 6 {
            return None;
        }
        let total = ipv6::HEADER + usize::from(u16::from_be_bytes([header[18], header[19]]));
        let address = address_at(header, 38);
        (!address.is_unicast_link_local()).then_some(PlainV6 { header, total, address })
    }

    /// Where it goes, as a number.
    #[inline(always)]
    pub(super) fn destination(&self) -> u128 {
        mapped(self.address.into())
    }

    /// Takes its hop limit down by one.
    #[inline(always)]
    pub(super) fn count_hop(&mut self) {
        self.header[21] -= 1;
    }

    /// Addresses it to a next hop.
    #[inline(always)]
    pub(super) fn address_to(self, adjacency: &Adjacency) -> DeviceId {
        self.header[..12].copy_from_slice(&adjacency.link);
        adjacency.device
    }
}

impl Stack {
    /// A plain packet of IPv4 that has arrived for this station, to be passed on.
    #[inline(always)]
    pub(super) fn plain_v4<'a>(&self, packet: &'a mut Mbuf) -> Option<PlainV4<'a>> {
        let (device, len) = (packet.device(), packet.len());
        let station = *self.adjacencies.stations.get(device.index())?;
        if !packet.is_ethernet() || packet.is_reinjected() {
            return None;
        }
        let frame: &mut [u8; V4] = packet.data_mut().first_chunk_mut()?;
        // The network header lies in the last three words.
        let (to, kind) = (word(frame, 0), half_word(frame, 12));
        let (first, second, third) = (word(frame, 14), word(frame, 22), half_word(frame, 30));
        let total = ((first >> 16) as u16).swap_bytes();
        if to & MAC != station
            || kind & PLAIN != PLAIN_V4
            || usize::from(total) < ipv4::MIN_HEADER
            || usize::from(total) + ethernet::HEADER > len
        {
            return None;
        }
        // The sum of a header with the right checksum has all bits set (RFC 1071), whatever the order of bytes in its words.
        let (sum, carry) = first.overflowing_add(second);
        let sum = (sum >> 32) + (sum & 0xffff_ffff) + u64::from(carry) + u64::from(third);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        if sum != 0xffff || second & 0xff <= 1 {
            return None;
        }
        let addresses = &self.adjacencies.addresses;
        let [source, destination] = [(second >> 32) as u32, third].map(|bits| bits as u8);
        let odd = addresses[usize::from(source)] | addresses[usize::from(destination)] & NO_HOST;
        if odd != 0 && self.is_refused(odd, device, (second >> 32) as u32) {
            return None;
        }
        Some(PlainV4 { frame, total, destination: third })
    }

    /// Whether no host but this one has the source of a packet, or none its source or destination, as the first bits make
    /// possible.
    #[inline(never)]
    fn is_refused(&self, odd: u8, device: DeviceId, source: u32) -> bool {
        let owns = |port: &StackPort| port.owns_v4(source.to_le_bytes().into());
        odd & NO_HOST != 0 || self.port(device).is_none_or(owns)
    }

    /// A plain packet of IPv6 that has arrived for this station, to be passed on.
    #[inline(always)]
    pub(super) fn plain_v6<'a>(&self, packet: &'a mut Mbuf) -> Option<PlainV6<'a>> {
        let station = *self.adjacencies.stations.get(packet.device().index())?;
        if !packet.is_ethernet() || packet.is_reinjected() {
            return None;
        }
        let (len, port) = (packet.len(), self.port(packet.device())?);
        let PlainV6 { header, total, address } = PlainV6::leaving(packet)?;
        let source = address_at(header, 22);
        if word(header, 0) & MAC != station
            || total + ethernet::HEADER > len
            || header[21] <= 1
            || !port.carries_v6()
            || port.owns_v6(source)
            || source.is_unicast_link_local()
            || !may_be_source_v6(source)
            || !may_be_source_v6(address)
        {
            return None;
        }
        Some(PlainV6 { header, total, address })
    }
}

#[inline(always)]
fn address_at(header: &[u8; V6], at: usize) -> Ipv6Addr {
    let octets: &[u8; 16] = header[at..].first_chunk().expect("inside the frame");
    Ipv6Addr::from(*octets)
}

/// Time to live, protocol and checksum of a header, as a word, with one less to live (RFC 1624, equation 3; the order of bytes
/// in words does not matter to it, and the old value inverted plus the new one is -1).
#[inline(always)]
fn one_less(word: u32) -> u32 {
    let sum = (!word >> 16) + 0xfffe;
    let sum = (sum >> 16) + sum;
    ((word & 0xffff) - 1) | (!sum << 16)
}

/// Eight bytes of a frame.
#[inline(always)]
fn word<const N: usize>(frame: &[u8; N], at: usize) -> u64 {
    u64::from_le_bytes(*frame[at..].first_chunk().expect("inside the frame"))
}

/// Four bytes of a frame.
#[inline(always)]
pub(super) fn half_word<const N: usize>(frame: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes(*frame[at..].first_chunk().expect("inside the frame"))
}
