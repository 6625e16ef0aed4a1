//! Whole frames with right checksums, for generators, tests, and packets that functions originate.

mod ethernet;
mod ip;
mod payload;
#[cfg(test)]
mod tests;
mod transport;

pub use ethernet::{Ethernet, MIN_FRAME};
pub use payload::Payload;
pub use transport::{TcpHeader, Transport};

use std::net::IpAddr;

/// A frame to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameBuilder<'a> {
    /// The Ethernet header; without it the frame starts with IP.
    pub ethernet: Option<Ethernet>,
    /// The VLAN of the service provider (IEEE 802.1ad), outside that of the Ethernet header.
    pub service_vlan: Option<u16>,
    /// The source address.
    pub source: IpAddr,
    /// The destination address, of the same family.
    pub destination: IpAddr,
    /// Type of service, or traffic class.
    pub tos: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Identification, of which IPv4 has the low 16 bits, or that of the fragment header.
    pub id: u32,
    /// Whether routers must not fragment the packet (IPv4). Fragments never forbid it.
    pub dont_fragment: bool,
    /// The flow label (IPv6).
    pub flow_label: u32,
    /// For a fragment: where its data starts in the datagram, a multiple of 8, and whether more follow.
    /// A transport header in it has the checksum and the length of this fragment's data alone.
    pub fragment: Option<(u16, bool)>,
    /// Options (IPv4), a multiple of four bytes and at most 40; IPv6 has none.
    pub options: &'a [u8],
    /// What lies above IP.
    pub transport: Transport<'a>,
    /// What the packet carries.
    pub payload: Payload<'a>,
}

impl<'a> FrameBuilder<'a> {
    /// A packet between two addresses without a link header.
    ///
    /// # Panics
    /// When the addresses are of different families.
    pub fn new(
        source: IpAddr,
        destination: IpAddr,
        transport: Transport<'a>,
        payload: Payload<'a>,
    ) -> FrameBuilder<'a> {
        assert_eq!(source.is_ipv4(), destination.is_ipv4(), "addresses of one family");
        FrameBuilder {
            ethernet: None,
            service_vlan: None,
            source,
            destination,
            tos: 0,
            ttl: 64,
            id: 0,
            dont_fragment: true,
            flow_label: 0,
            fragment: None,
            options: &[],
            transport,
            payload,
        }
    }

    /// The same with an Ethernet header.
    #[must_use]
    pub fn with_ethernet(self, ethernet: Ethernet) -> FrameBuilder<'a> {
        FrameBuilder { ethernet: Some(ethernet), ..self }
    }

    /// Bytes of the frame, padding to the shortest Ethernet frame included.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a frame is never empty")]
    pub fn len(&self) -> usize {
        let len = self.link_len() + self.ip_len() + self.transport_len();
        if self.ethernet.is_some() { len.max(MIN_FRAME) } else { len }
    }

    /// Bytes of the transport header and the payload.
    #[inline]
    fn transport_len(&self) -> usize {
        self.transport.header_len() + self.payload.len()
    }

    /// The frame as a vector.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut frame = vec![0; self.len()];
        self.write(&mut frame);
        frame
    }

    /// Writes the frame to the start of `out` and returns its length. TCP that is too long for IP's
    /// length field has a zero there, as in frames captured before segmentation offload.
    ///
    /// # Panics
    /// When `out` is shorter than [`FrameBuilder::len`], options are not padded to words or too long,
    /// or a packet other than TCP is longer than IP allows.
    #[inline]
    pub fn write(&self, out: &mut [u8]) -> usize {
        let len = self.len();
        let frame = &mut out[..len];
        let (link, packet) = frame.split_at_mut(self.link_len());
        let (ip, rest) = packet.split_at_mut(self.ip_len());
        let (transport, padding) = rest.split_at_mut(self.transport_len());
        self.write_link(link);
        self.write_ip(ip, transport.len());
        self.write_transport(transport);
        padding.fill(0);
        len
    }
}
