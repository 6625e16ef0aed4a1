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
use crate::neighbour::{mapped_v4, mapped};
use crate::route::{Hop, HopId, Routes};

const V4: usize = ethernet::HEADER + ipv4::MIN_HEADER;
const V6: usize = ethernet::HEADER + ipv6::HEADER;

/// The address bits of a word of eight bytes that starts with a link address, in the byte order of memory.
const MAC: u64 = u64::from_ne_bytes([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0]);
/// No link address.
const NOBODY: u64 = u64::MAX;
/// Ethertype, version and header length of a packet of IPv4 without options, in the byte order of memory, and where they are.
const PLAIN_V4: u32 = u32::from_ne_bytes([8, 0, 0x45, 0]);
const PLAIN: u32 = u32::from_ne_bytes([0xff, 0xff, 0xff, 0]);

/// What the fast path goes by, as of the last [`Stack::refresh`].
#[derive(Debug)]
pub(super) struct Forwarding {
    /// By device: the link address that its frames are for, in the byte order of memory.
    stations: Box<[u64]>,
    /// By the first eight bits of an address of IPv4: what has to be asked before a packet may come from there.
    sources: Box<[Sources; 256]>,
    /// By hop.
    adjacencies: Vec<Adjacency>,
    /// Where the packets of the burst lead.
    ways: Vec<HopId>,
    /// As of which change of the network.
    changes: u64,
    /// On which devices those leave that are ready.
    egress: [DeviceId; BURST],
}

/// Addresses of IPv4 with the same first eight bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Sources {
    /// Any host may have them.
    Hosts,
    /// One of them is this machine's.
    Own,
    /// No host has them.
    Nobody,
}

/// What a packet needs to reach a next hop.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Adjacency {
    /// The link addresses of the next hop, and of this machine.
    link: [u8; 12],
    /// The longest packet that fits, of IPv4 and of IPv6. Zero where more has to be done.
    longest: [u16; 2],
    device: DeviceId,
    /// Whether the next hop is the destination itself, so that it depends on it what is needed.
    is_on_link: bool,
}

impl Forwarding {
    pub(super) fn new(ports: &[Option<Port>]) -> Forwarding {
        let station = |port: &Option<Port>| match port {
            Some(port) if port.l3 == UNTAGGED => {
                let [a, b, c, d, e, f] = port.mac;
                u64::from_ne_bytes([a, b, c, d, e, f, 0, 0])
            }
            _ => NOBODY,
        };
        let of = |first: usize| {
            let is_own = |port: &Port| port.own_v4().iter().any(|own| own.octets()[0] == first as u8);
            match may_be_source_v4([first as u8, 0, 0, 1].into()) {
                false => Sources::Nobody,
                true if ports.iter().flatten().any(is_own) => Sources::Own,
                true => Sources::Hosts,
            }
        };
        Forwarding {
            stations: ports.iter().map(station).collect(),
            sources: Box::new(std::array::from_fn(of)),
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
                Hop::OnLink(_) => Adjacency { is_on_link: true, ..Adjacency::default() },
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

    /// What a packet to `destination` needs, on the link of whose device it is.
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
    /// says on which devices they leave.
    #[inline(never)]
    pub fn forward(&mut self, place: usize, packets: &mut [Mbuf], infos: &[PacketInfo]) -> &[DeviceId] {
        if self.forwarding.changes != self.changes {
            // One of the packets before has told of other ways.
            self.forwarding.ways.truncate(place);
            self.forwarding.changes = self.changes;
            ways(&self.routes, packets, &mut self.forwarding.ways);
        }
        let mut egress = self.forwarding.egress;
        let ways = &self.forwarding.ways[place..];
        let mut ready = 0;
        for (((packet, info), way), egress) in packets.iter_mut().zip(infos).zip(ways).zip(&mut egress) {
            if !info.is_usual {
                break;
            }
            let Some(device) = self.pass_v4(packet, *way).or_else(|| self.pass_v6(packet)) else { break };
            *egress = device;
            ready += 1;
        }
        self.forwarding.egress = egress;
        &self.forwarding.egress[..ready]
    }

    /// Makes a plain packet of IPv4 ready to leave, and returns on which device. A packet that is not plain stays as it is.
    #[inline(always)]
    fn pass_v4(&self, packet: &mut Mbuf, way: HopId) -> Option<DeviceId> {
        let Forwarding { stations, sources, adjacencies, .. } = &self.forwarding;
        let station = *stations.get(packet.device().index())?;
        if !packet.is_ethernet() || packet.is_reinjected() {
            return None;
        }
        let len = packet.len();
        let header: &mut [u8; V4] = packet.data_mut().first_chunk_mut()?;
        if word(header, 0) & MAC != station || half_word(header, 12) & PLAIN != PLAIN_V4 {
            return None;
        }
        let total = u16::from_be_bytes([header[16], header[17]]);
        if usize::from(total) < ipv4::MIN_HEADER || usize::from(total) + ethernet::HEADER > len {
            return None;
        }
        // The sum of a header with the right checksum has all bits set (RFC 1071), whatever the order of its bytes.
        let (sum, carry) = word(header, 14).overflowing_add(word(header, 22));
        let (sum, other) = sum.overflowing_add(half_word(header, 30).into());
        let sum = (sum >> 32) + (sum & 0xffff_ffff) + u64::from(carry) + u64::from(other);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = (sum >> 16) + (sum & 0xffff);
        let ttl = header[22];
        if sum != 0xffff || ttl <= 1 {
            return None;
        }
        match (sources[usize::from(header[26])], sources[usize::from(header[30])]) {
            (_, Sources::Nobody) | (Sources::Nobody, _) => return None,
            (Sources::Own, _) => {
                let source = [header[26], header[27], header[28], header[29]].into();
                self.port(packet.device()).filter(|port| !port.owns_v4(source))?;
            }
            (Sources::Hosts, _) => {}
        }
        let header: &mut [u8; V4] = packet.data_mut().first_chunk_mut()?;
        let mut adjacency = adjacencies.get(usize::from(way.0))?;
        let of_destination;
        if adjacency.is_on_link {
            let destination = half_word(header, 30);
            of_destination = self.adjacency_on_link(way, mapped_v4(u32::from_be(destination)));
            adjacency = &of_destination;
        }
        if total > adjacency.longest[0] {
            return None;
        }
        header[..12].copy_from_slice(&adjacency.link);
        header[22] = ttl - 1;
        let checksum = u16::from_be_bytes([header[24], header[25]]);
        header[24..26].copy_from_slice(&one_less(checksum).to_be_bytes());
        Some(adjacency.device)
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
        if adjacency.is_on_link {
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
        Some(header) => routes.lookup_v4(u32::from_be(half_word(header, 30)).into()),
        None => HopId::NONE,
    }));
}

/// The checksum of a header whose time to live is one less than before (RFC 1624, equation 3).
#[inline(always)]
fn one_less(checksum: u16) -> u16 {
    // The word's old value inverted, plus the new one, which is less by one in its upper byte.
    let sum = u32::from(!checksum) + 0xfeff;
    !((sum >> 16) + sum) as u16
}

/// Eight bytes of a header, in the byte order of memory.
#[inline(always)]
fn word<const N: usize>(header: &[u8; N], at: usize) -> u64 {
    u64::from_ne_bytes(std::array::from_fn(|i| header[at + i]))
}

/// Four bytes, likewise.
#[inline(always)]
fn half_word<const N: usize>(header: &[u8; N], at: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|i| header[at + i]))
}
