//! What stands at the far end of a simulated link and answers.

use std::time::Duration;

use rheostat_base::QueueId;
use rheostat_packet::Mbuf;

/// Answers packets, as a server does that a NAT, a firewall or a load balancer sends to.
pub trait Responder: Send {
    /// Replaces the contents of `reply` by the reply to a packet that was sent, of the packet's own link type, and
    /// returns whether there is one; without one, `reply` may hold anything. The packet stays the queue's. Called once for
    /// each packet, in the order in which a transmit queue sends them.
    fn respond(&mut self, packet: &Mbuf, reply: &mut Vec<u8>) -> bool;
}

/// The far end of a link: see [`crate::SimNic::open_answering`].
pub struct Peer {
    /// From the moment a packet is sent until its reply arrives. Time on the link is in it.
    pub delay: Duration,
    /// Replies that are under way at most, of all queues; a reply beyond is dropped, and counted in
    /// [`crate::DeviceCounters::queue_full`] of the queue that sent the packet. Each takes the length of its frame and
    /// about 100 bytes.
    pub most: usize,
    /// Makes the responder of one transmit queue.
    pub responder: Box<dyn FnMut(QueueId) -> Box<dyn Responder>>,
}

impl Peer {
    /// Replies under way at most, unless stated otherwise: those of a second at 65,000 packets per second, or of 10 ms at
    /// 6.5 million.
    pub const MOST: usize = 1 << 16;

    /// A peer that answers so much later, with up to [`Peer::MOST`] replies under way.
    pub fn new(
        delay: Duration,
        responder: impl FnMut(QueueId) -> Box<dyn Responder> + 'static,
    ) -> Peer {
        Peer { delay, most: Peer::MOST, responder: Box::new(responder) }
    }
}
