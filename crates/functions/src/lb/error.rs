//! ICMP errors about flows (RFC 792; RFC 4443): they concern the sender of the packet that they quote, which is a backend, or a
//! client. They neither refresh nor end a flow: they can be forged.

use std::net::IpAddr;

use rheostat_base::DropReason;
use rheostat_packet::tuple;
use rheostat_steer::Side;

use super::Lb;
use super::config::Mode;
use super::delivery::forward_if;
use super::service_map::Seat;
use super::shard::LbShard;
use super::tunnel::returned::TooBig;
use rheostat_nf::Cx;
use rheostat_nf::Packet;
use rheostat_nf::{Outcome, Verdict};

impl Lb {
    /// An ICMP error about a packet of a flow that backend `seat` serves and whose client talks to `port`.
    pub(super) fn error(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &mut Packet<'_>,
        seat: Seat,
        port: u16,
        hash: u64,
    ) -> Outcome<Verdict> {
        let from_client = packet.side() == Side::Outside;
        if !goes_to_sender(packet, from_client) {
            return Ok(Verdict::Drop(DropReason::IcmpUnrelated));
        }
        let (service, backend) = (self.service(seat.service), self.backend(seat));
        let backend_port = backend.port.unwrap_or(port);
        cx.shard().counts.errors_to_backends += u64::from(from_client);
        match (service.mode, from_client) {
            (Mode::Nat, true) => Ok(Lb::error_to_backend(packet, (backend.address, backend_port))),
            (Mode::Nat, false) => Ok(Lb::error_to_client(packet, (service.vip, port))),
            // The backend has the service's address, and takes the error as it is.
            (Mode::DsrIpip | Mode::DsrGue, true) => self.deliver(cx, packet, seat, hash),
            (Mode::DsrIpip | Mode::DsrGue, false) => Ok(Verdict::Forward),
        }
    }

    /// An ICMP error about a flow that is not known here. From outside, it goes to the backend that the
    /// flow has if the backends have not changed: perhaps another instance knows the flow. From inside,
    /// it may be about a packet in a tunnel. `None` when it is about neither.
    pub(super) fn error_without_flow(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Option<Verdict>> {
        if packet.side() == Side::Inside {
            return self.error_from_tunnel(cx, packet);
        }
        let key = packet.arrival_key();
        let (vip, port) = (key.first(), key.first_port());
        let Some(service) = self.map.service(vip, port, key.protocol()) else { return Ok(None) };
        let hash = self.hash.flow(&key);
        let table = &cx.shard().assignment().tables[usize::from(service)];
        let Some(backend) = table.pick(hash) else {
            return Ok(Some(Verdict::Drop(DropReason::NoBackend)));
        };
        let seat = Seat { service, backend: backend as u16 };
        self.error(cx, packet, seat, port, hash).map(Some)
    }

    /// A router between here and a backend could not forward an outer packet.
    fn error_from_tunnel(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &Packet<'_>,
    ) -> Outcome<Option<Verdict>> {
        let (tunnel, sides) = (&self.config.tunnel, &self.config.sides);
        let headers = packet.headers();
        let is_ours = |address: IpAddr| tunnel.sources.iter().any(|s| s.contains(address));
        let came_back =
            tuple::addresses(packet.data(), headers).is_some_and(|ends| is_ours(ends.second()));
        if !came_back {
            return Ok(None);
        }
        let report =
            TooBig::of(packet.data(), headers, tunnel).filter(|report| self.map.is_vip(report.vip));
        let now = cx.now();
        let Some(report) = report.filter(|_| cx.shard().may_report(now)) else {
            return Ok(Some(Verdict::Drop(DropReason::IcmpUnrelated)));
        };
        cx.shard().counts.errors_from_tunnels += 1;
        let link = packet.data().get(..usize::from(headers.l3)).unwrap_or_default();
        let kind = packet.mbuf().link();
        cx.originate(sides.outside, kind, rheostat_ip::LONGEST_ANSWER, |out| {
            let (head, body) = out.split_at_mut_checked(link.len())?;
            head.copy_from_slice(link);
            Some(link.len() + report.write(body)?)
        })?;
        Ok(Some(Verdict::Consume))
    }

    /// Puts a backend's endpoint into an error that goes to it, in place of the service's, and into the
    /// packet that it sent, which the error quotes.
    fn error_to_backend(packet: &mut Packet<'_>, (backend, port): (IpAddr, u16)) -> Verdict {
        let done = packet
            .quoted()
            .and_then(|mut quoted| quoted.set_source(backend, port))
            .and_then(|()| packet.set_destination(backend));
        forward_if(done.is_ok())
    }

    /// Likewise, the service's endpoint into an error to a client. Whichever host inside found the fault, the
    /// service's address reports it (RFC 5508, REQ-5).
    fn error_to_client(packet: &mut Packet<'_>, (vip, port): (IpAddr, u16)) -> Verdict {
        let done = packet
            .quoted()
            .and_then(|mut quoted| quoted.set_destination(vip, port))
            .and_then(|()| packet.set_source(vip));
        forward_if(done.is_ok())
    }
}

/// Whether an error goes to the host that sent the packet which it quotes. Otherwise one flow would let
/// errors through to every other host.
fn goes_to_sender(packet: &Packet<'_>, from_client: bool) -> bool {
    let key = packet.arrival_key();
    let sender = if from_client { key.first() } else { key.second() };
    tuple::addresses(packet.data(), packet.headers()).is_some_and(|ends| ends.second() == sender)
}
