//! Services on this machine: they take packets for the interfaces' own addresses that the stack does not answer itself, and send
//! packets from there.

use std::net::IpAddr;

use rheostat_base::{DeviceId, Time};

/// A packet for an address of this machine.
#[derive(Clone, Copy, Debug)]
pub struct LocalPacket<'a> {
    /// The device it arrived on.
    pub device: DeviceId,
    /// The address of its sender.
    pub source: IpAddr,
    /// The address it is for, one of an interface's own.
    pub destination: IpAddr,
    /// The protocol above IP and its extension headers.
    pub protocol: u8,
    /// The packet from its IP header on, without link padding.
    pub packet: &'a [u8],
    /// What lies above IP, from the transport header on. It is whole: fragments are not presented.
    pub payload: &'a [u8],
}

/// Packets that a local service sends. The stack routes each by its destination, as one of its own: it finds
/// the next hop, and fragments or drops what is too long.
#[derive(Debug, Default)]
pub struct Outbox {
    packets: Vec<Vec<u8>>,
}

impl Outbox {
    /// An empty one.
    pub fn new() -> Outbox {
        Outbox::default()
    }

    /// Sends a packet, which starts with its IP header and whose checksums are right;
    /// [`FrameBuilder`](rheostat_packet::build::FrameBuilder) without an Ethernet header makes such.
    pub fn send(&mut self, packet: Vec<u8>) {
        self.packets.push(packet);
    }

    /// Whether nothing is to be sent.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Takes out what is to be sent, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.packets.drain(..)
    }
}

/// A service on this machine, such as health checks. All lanes share it, and each calls it with the packets it received; calls
/// are rare, so that a lock inside costs nothing that matters.
pub trait LocalService: Send + Sync {
    /// Takes a packet for an address of this machine that has arrived at `now`; what is put into
    /// `outbox` is sent. `false` when the packet is not for this service: the next one gets it, and
    /// when none takes it, an ICMP error or a reset is sent to its sender.
    fn receive(&self, packet: &LocalPacket<'_>, now: Time, outbox: &mut Outbox) -> bool;

    /// Does what is due at `now`. One lane at a time calls it, whichever comes first.
    fn tick(&self, now: Time, outbox: &mut Outbox);

    /// When [`LocalService::tick`] has something to do next. Asked after each call of the other methods,
    /// and from time to time besides.
    fn next_deadline(&self) -> Option<Time>;
}
