//! A packet as a handler sees it.

use rheostat_base::DeviceId;
use rheostat_packet::wire::tcp::TcpSegment;
use rheostat_packet::{FlowKey, Headers, Mbuf};
use rheostat_run::{Arrival, ArrivalKind};
use rheostat_steer::Side;

/// One packet with its layers and its flow's key. Headers are read through views; there is no way to
/// the raw bytes for writing.
#[derive(Debug)]
pub struct Packet<'a> {
    mbuf: &'a mut Mbuf,
    arrival: &'a Arrival,
}

impl<'a> Packet<'a> {
    #[inline]
    pub(crate) fn new(mbuf: &'a mut Mbuf, arrival: &'a Arrival) -> Packet<'a> {
        Packet { mbuf, arrival }
    }

    /// The key of the flow, inside endpoint first.
    #[inline]
    pub fn key(&self) -> &FlowKey {
        &self.arrival.key
    }

    /// The side the packet came from.
    #[inline]
    pub fn side(&self) -> Side {
        self.arrival.side
    }

    /// Whether the packet travels from the key's first endpoint to its second.
    #[inline]
    pub fn is_forward(&self) -> bool {
        self.arrival.forward
    }

    /// The device the packet arrived on.
    #[inline]
    pub fn device(&self) -> DeviceId {
        self.mbuf.meta.device
    }

    /// Where the headers lie.
    #[inline]
    pub fn headers(&self) -> &Headers {
        &self.arrival.headers
    }

    /// Bytes of the packet, link header included.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub fn len(&self) -> usize {
        self.mbuf.len()
    }

    /// The bytes of the first segment, where all headers lie.
    #[inline]
    pub fn data(&self) -> &[u8] {
        self.mbuf.data()
    }

    /// The buffer, for code that builds a reply to the packet.
    #[inline]
    pub fn mbuf(&self) -> &Mbuf {
        self.mbuf
    }

    /// Whether this is an ICMP error about a packet of the flow, not one of its own packets.
    #[inline]
    pub fn is_icmp_error(&self) -> bool {
        self.arrival.kind == ArrivalKind::IcmpError
    }

    /// Whether this is a fragment without the transport header.
    #[inline]
    pub fn is_later_fragment(&self) -> bool {
        self.arrival.headers.fragment.is_some_and(|fragment| fragment.offset > 0)
    }

    /// The TCP header, if the packet has one.
    #[inline]
    pub fn tcp(&self) -> Option<TcpSegment<'_>> {
        if self.headers().protocol != 6 || self.is_later_fragment() || self.is_icmp_error() {
            return None;
        }
        // Not behind the end of the packet, where link padding or an attacker's bytes may lie.
        let end = self.data().len().min(self.headers().end as usize);
        TcpSegment::new(self.data().get(usize::from(self.headers().l4)..end)?).ok()
    }

    /// Bytes behind the transport header that starts at `l4` and is `header` bytes long.
    #[inline]
    pub fn payload_len(&self, header: usize) -> usize {
        (self.headers().end as usize).saturating_sub(usize::from(self.headers().l4) + header)
    }
}
