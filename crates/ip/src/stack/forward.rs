//! The fast path of a router: packets of IP that need no more than another hop's link header, one from their time to live
//! and, over IPv4, the checksum that follows from it (RFC 1812, section 5.2.1; RFC 1624). The headers of all packets of a
//! burst are looked at for their ways first, in one loop, so that the lines of the table of routes are fetched beside each
//! other; then packet after packet is checked and written, up to the first that needs more.
//!
//! Whatever is odd about a packet leaves it as it was, for [`Stack::admit`] and [`Stack::depart`]: options, lengths, checksums
//! or addresses that are not right, tags, an address of this machine, the end of its time, a link that is too narrow, a next hop
//! that has not answered or has to be asked again. What those two would have made of a packet is what it becomes here.

use rheostat_base::DeviceId;
use rheostat_packet::wire::{ethernet, ipv4, ipv6};
use rheostat_packet::{BURST, Mbuf};
use rheostat_run::PacketInfo;

use super::port::{Port, UNTAGGED};
use super::{NeighbourKey, Seen, Stack};

use crate::interface::{may_be_source_v4, may_be_source_v6};
use crate::neighbour::{mapped, mapped_v4};
use crate::route::{Hop, HopId, Routes};

const V4: usize = ethernet::HEADER + ipv4::MIN_HEADER;
const V6: usize = ethernet::HEADER + ipv6::HEADER;

/// The address bits of a word of eight bytes that starts with a link address.
const MAC: u64 = (1 << 48) - 1;
/// No link address.
const NO_ADDRESS: u64 = u64::MAX;
/// The end of the link header, version, header length and type of service of a packet of IPv4 without options, as a word, and the
/// bits of it that count.
const PLAIN_V4: u32 = u32::from_le_bytes([8, 0, 0x45, 0]);
const PLAIN: u32 = u32::from_le_bytes([0xff, 0xff, 0xff, 0]);

/// What the fast path goes by, as of the last [`Stack::refresh`].
#[derive(Debug)]
pub(super) struct Forwarding {
    /// By device: the link address that its frames are for, in the byte order of memory.
    stations: Box<[u64]>,
    /// By the first eight bits of an address of IPv4: whether a host has it, as far as they show it. [`OWN`] and [`NO_HOST`].
    addresses: Box<[u8; 256]>,
    /// By hop.
    adjacencies: Vec<Adjacency>,
    /// Where the packets of the burst lead.
    ways: Vec<HopId>,
    /// As of which change of the network.
    changes: u64,
    /// On which devices those leave that are ready.
    egress: [DeviceId; BURST],
}

/// One of the addresses is this machine's.
const OWN: u8 = 1;
/// No host has any of them.
const NO_HOST: u8 = 2;

/// What a packet needs to reach a next hop.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Adjacency {
    /// The link addresses of the next hop, and of this machine.
    link: [u8; 12],
    /// The longest packet that fits, of IPv4 and of IPv6. Zero where more has to be done.
    longest: [u16; 2],
    device: DeviceId,
}

impl Forwarding {
    pub(super) fn new(ports: &[Option<Port>]) -> Forwarding {
        let station = |port: &Option<Port>| match port {
            Some(port) if port.l3 == UNTAGGED => {
                let [a, b, c, d, e, f] = port.mac;
                u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
            }
            _ => NO_ADDRESS,
        };
        let of = |first: usize| {
            let is_own =
                |port: &Port| port.own_v4().iter().any(|own| own.octets()[0] == first as u8);
            match may_be_source_v4([first as u8, 0, 0, 1].into()) {
                false => NO_HOST,
                true if ports.iter().flatten().any(is_own) => OWN,
                true => 0,
            }
        };
        Forwarding {
            stations: ports.iter().map(station).collect(),
            addresses: Box::new(std::array::from_fn(of)),
            adjacencies: Vec::new(),
            ways: Vec::with_capacity(2 * BURST),
            changes: 0,
            egress: [DeviceId(0); BURST],
        }
    }
}

impl Stack {
    /// Learns what the fast path goes by from what the rest of the stack does.
    pub(super) fn learn_adjacencies(&mut self) {
        let mut adjacencies = std::mem::take(&mut self.forwarding.adjacencies);
        adjacencies.clear();
        adjacencies.extend(self.routes.hops().iter().zip(&self.gateways).map(|(hop, seen)| {
            match *hop {
                Hop::Gateway(device, _) => self.adjacency(device, *seen),
                // On a link, it depends on the destination.
                _ => Adjacency::default(),
            }
        }));
        self.forwarding.adjacencies = adjacencies;
    }

    /// What a packet needs to reach a neighbour on the link of `device`.
    fn adjacency(&self, device: DeviceId, seen: Option<Seen>) -> Adjacency {
        let mut adjacency = Adjacency { device, ..Adjacency::default() };
        if let (Some(Seen { mac, stale: false }), Some(port)) = (seen, self.port(device))
            && port.l3 == UNTAGGED
        {
            adjacency.link[..6].copy_from_slice(&mac);
            adjacency.link[6..].copy_from_slice(&port.mac);
            adjacency.longest = [port.mtu, port.mtu_v6];
        }
        adjacency
    }

    /// What a packet to `destination` needs, if that is on a link.
    #[inline(never)]
    fn adjacency_on_link(&self, hop: HopId, destination: u128) -> Adjacency {
        let Hop::OnLink(device) = self.routes.hop(hop) else { return Adjacency::default() };
        let key = NeighbourKey::of_bits(device, destination);
        self.adjacency(device, self.neighbours.get(&key))
    }

    /// Looks up where the packets of a burst lead, before the first of them is forwarded by [`Stack::forward`].
    #[inline]
    pub fn look_up_ways(&mut self, packets: &[Mbuf]) {
        self.forwarding.ways.clear();
        self.forwarding.changes = self.changes;
        ways(&self.routes, packets, &mut self.forwarding.ways);
    }

    /// Makes the packets at the front of what is left of a burst ready to leave, up to the first that needs more than the
    /// fast path does, and at most [`BURST`]. The first of them was the one at `place` when their ways were looked up. The result
    /// states on which devices they leave.
    #[inline(never)]
    pub fn forward(
        &mut self,
        place: usize,
        packets: &mut [Mbuf],
        infos: &[PacketInfo],
    ) -> &[DeviceId] {
        if self.forwarding.changes != self.changes {
            // One of the packets before has changed neighbours or routes.
            self.forwarding.ways.truncate(place);
            self.forwarding.changes = self.changes;
            ways(&self.routes, packets, &mut self.forwarding.ways);
        }
        let mut egress = self.forwarding.egress;
        let ways = &self.forwarding.ways[place..];
        let mut ready = 0;
        for (((packet, info), way), egress) in
            packets.iter_mut().zip(infos).zip(ways).zip(&mut egress)
        {
            if !info.is_usual() {
                break;
            }
            let Some(device) = self.pass_v4(packet, *way).or_else(|| self.pass_v6(packet)) else {
                break;
            };
            *egress = device;
            ready += 1;
        }
        self.forwarding.egress = egress;
        &self.forwarding.egress[..ready]
    }

    /// Makes a plain packet of IPv4 ready to leave, and returns on which device. A packet that is not plain stays as it is.
    #[inline(always)]
    fn pass_v4(&self, packet: &mut Mbuf, way: HopId) -> Option<DeviceId> {
        let Forwarding { stations, addresses, adjacencies, .. } = &self.forwarding;
        let (device, len) = (packet.device(), packet.len());
        let station = *stations.get(device.index())?;
        if !packet.is_ethernet() || packet.is_reinjected() {
            return None;
        }
        let frame: &mut [u8; V4] = packet.data_mut().first_chunk_mut()?;
        // In words, each byte of which is read once: the network header lies in the last three.
        let (to, kind) = (word(frame, 0), half_word(frame, 12));
        let (first, second, third) = (word(frame, 14), word(frame, 22), half_word(frame, 30));
        let total = (first >> 16) as u16;
        let total = usize::from(total.swap_bytes());
        if to & MAC != station
            || kind & PLAIN != PLAIN_V4
            || total < ipv4::MIN_HEADER
            || total + ethernet::HEADER > len
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
        let [source, destination] = [(second >> 32) as u32, third].map(|bits| bits as u8);
        let odd = addresses[usize::from(source)] | addresses[usize::from(destination)] & NO_HOST;
        if odd != 0 && self.is_refused(odd, device, (second >> 32) as u32) {
            return None;
        }
        let mut adjacency = adjacencies.get(usize::from(way.0))?;
        let on_link;
        if total > adjacency.longest[0].into() {
            on_link = self.adjacency_on_link(way, mapped_v4(third.swap_bytes()));
            adjacency = &on_link;
            if total > adjacency.longest[0].into() {
                return None;
            }
        }
        frame[..12].copy_from_slice(&adjacency.link);
        frame[22..26].copy_from_slice(&one_less(second as u32).to_le_bytes());
        Some(adjacency.device)
    }

    /// Whether no host but this one has the source of a packet, or none its source or destination, as the first bits make
    /// possible.
    #[inline(never)]
    fn is_refused(&self, odd: u8, device: DeviceId, source: u32) -> bool {
        let owns = |port: &Port| port.owns_v4(source.to_le_bytes().into());
        odd & NO_HOST != 0 || self.port(device).is_none_or(owns)
    }

    /// The same for a packet of IPv6 without odd addresses.
    #[inline(never)]
    fn pass_v6(&self, packet: &mut Mbuf) -> Option<DeviceId> {
        let station = *self.forwarding.stations.get(packet.device().index())?;
        if !packet.is_ethernet() || packet.is_reinjected() {
            return None;
        }
        let (len, port) = (packet.len(), self.port(packet.device())?);
        let header: &mut [u8; V6] = packet.data_mut().first_chunk_mut()?;
        if word(header, 0) & MAC != station
            || header[12..14] != ethernet::IPV6.to_be_bytes()
            || header[14] >> 4 != 6
        {
            return None;
        }
        let payload = u16::from_be_bytes([header[18], header[19]]);
        let (total, limit) = (ipv6::HEADER + usize::from(payload), header[21]);
        let address = |at: usize| {
            let octets: [u8; 16] = std::array::from_fn(|i| header[at + i]);
            std::net::Ipv6Addr::from(octets)
        };
        let (source, destination) = (address(22), address(38));
        if total + ethernet::HEADER > len
            || limit <= 1
            || !port.carries_v6()
            || port.owns_v6(source)
            || [source, destination]
                .iter()
                .any(|&address| !may_be_source_v6(address) || address.is_unicast_link_local())
        {
            return None;
        }
        let way = self.routes.lookup_v6(destination);
        let mut adjacency = *self.forwarding.adjacencies.get(usize::from(way.0))?;
        if total > adjacency.longest[1].into() {
            adjacency = self.adjacency_on_link(way, mapped(destination.into()));
        }
        if total > adjacency.longest[1].into() {
            return None;
        }
        header[..12].copy_from_slice(&adjacency.link);
        header[21] = limit - 1;
        Some(adjacency.device)
    }
}

/// Appends where packets lead, if they are plain ones of IPv4, and else anything.
#[inline(never)]
fn ways(routes: &Routes, packets: &[Mbuf], ways: &mut Vec<HopId>) {
    ways.extend(packets.iter().map(|packet| match packet.data().first_chunk::<V4>() {
        Some(frame) => routes.lookup_v4(half_word(frame, 30).to_le_bytes().into()),
        None => HopId::NONE,
    }));
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
fn half_word<const N: usize>(frame: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes(*frame[at..].first_chunk().expect("inside the frame"))
}
