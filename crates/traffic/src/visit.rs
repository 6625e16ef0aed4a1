//! A short visit to a service: a connection with one request and one answer.

use std::net::{IpAddr, SocketAddr};

use crate::frame::{FrameEndpoints, FramePacket, FrameTransport, Tcp, server_isn};

/// Packets of a visit.
const LENGTH: u8 = 8;

const REQUEST: usize = 300;
const ANSWER: usize = 1_200;

/// A visit under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OngoingVisit {
    endpoints: FrameEndpoints,
    /// Initial sequence numbers of visitor and service.
    initial: (u32, u32),
    step: u8,
    from_inside: bool,
}

impl OngoingVisit {
    /// A visit that begins. Of visitor and service, one is inside.
    pub(crate) fn new(
        visitor: (IpAddr, u16),
        service: SocketAddr,
        from_inside: bool,
    ) -> OngoingVisit {
        let endpoints = FrameEndpoints::between(visitor, (service.ip(), service.port()));
        let low = match visitor.0 {
            IpAddr::V4(v4) => v4.to_bits(),
            IpAddr::V6(v6) => v6.to_bits() as u32,
        };
        let initial = low.wrapping_mul(0x9e37_79b9).wrapping_add(u32::from(visitor.1) << 8);
        OngoingVisit { endpoints, initial: (initial, server_isn(initial)), step: 0, from_inside }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.step == LENGTH
    }

    /// What is sent next; the visit must not be over.
    pub(crate) fn next_packet(&mut self) -> FramePacket {
        let (visitor, service) = self.initial;
        // What each side has sent: a SYN counts as one byte, and so does a FIN.
        let asked = visitor.wrapping_add(1 + REQUEST as u32);
        let answered = service.wrapping_add(1 + ANSWER as u32);
        let (visitor_next, service_next) = (visitor.wrapping_add(1), service.wrapping_add(1));
        let (from_visitor, tcp, payload) = match self.step {
            0 => (true, Tcp::syn(visitor), 0),
            1 => (false, Tcp::syn_ack(service, visitor_next), 0),
            2 => (true, Tcp::ack(visitor_next, service_next), 0),
            3 => (true, Tcp::ack(visitor_next, service_next), REQUEST),
            4 => (false, Tcp::ack(service_next, asked), ANSWER),
            5 => (true, Tcp::fin(asked, answered), 0),
            6 => (false, Tcp::fin(answered, asked.wrapping_add(1)), 0),
            _ => (true, Tcp::ack(asked.wrapping_add(1), answered.wrapping_add(1)), 0),
        };
        self.step += 1;
        let endpoints = if from_visitor { self.endpoints } else { self.endpoints.reversed() };
        let from_client = from_visitor == self.from_inside;
        FramePacket { endpoints, from_client, transport: FrameTransport::Tcp(tcp), payload }
    }
}

/// Visits that go on at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Visits {
    under_way: Vec<OngoingVisit>,
    /// How many there are as soon as so many packets have come.
    at_once: usize,
}

impl Visits {
    pub(crate) fn new(at_once: u32) -> Visits {
        Visits { under_way: Vec::new(), at_once: at_once as usize }
    }

    /// The next packet of any visit, drawn evenly; where one has ended, another begins, which `begin` makes. Until
    /// there are as many as there should be, each packet begins a visit.
    pub(crate) fn next_packet<R: rand::Rng>(
        &mut self,
        rng: &mut R,
        begin: impl FnOnce(&mut R) -> OngoingVisit,
    ) -> FramePacket {
        let place = if self.under_way.len() < self.at_once {
            let visit = begin(rng);
            self.under_way.push(visit);
            self.under_way.len() - 1
        } else {
            rng.random_range(0..self.under_way.len())
        };
        let packet = self.under_way[place].next_packet();
        if self.under_way[place].is_over() {
            self.under_way.swap_remove(place);
        }
        packet
    }
}
