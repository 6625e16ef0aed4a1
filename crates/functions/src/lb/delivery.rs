//! Packets on their way to a backend, and its answers on their way back.

use std::net::IpAddr;

use rheostat_base::DropReason;
use rheostat_packet::wire::End;

use super::config::Mode;
use super::service_map::Seat;
use super::shard::LbShard;
use super::tunnel::fragments::pieces;
use super::tunnel::{Inner, LONGEST, Outer, Path, Wrapper, entropy_of, parts, sum_of};
use super::{Lb, answer};
use rheostat_nf::Cx;
use rheostat_nf::Packet;
use rheostat_nf::{Abort, Outcome, Verdict};

impl Lb {
    /// Sends a packet of a client to a backend.
    #[inline]
    pub(super) fn deliver(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &mut Packet<'_>,
        seat: Seat,
        hash: u64,
    ) -> Outcome<Verdict> {
        let mode = self.service(seat.service).mode;
        match Wrapper::of(mode, &self.config.tunnel) {
            Some(wrapper) => self.wrap(cx, packet, seat, wrapper, hash),
            None => Ok(self.translate(packet, seat)),
        }
    }

    /// Puts the backend's address and port into a packet, in place of the service's.
    fn translate(&self, packet: &mut Packet<'_>, seat: Seat) -> Verdict {
        debug_assert_eq!(self.service(seat.service).mode, Mode::Nat);
        let backend = self.backend(seat);
        let done = packet.set_endpoint(End::Destination, backend.address, backend.port);
        forward_if(done.is_ok())
    }

    /// Puts the service's address and port into an answer, in place of the backend's.
    pub(super) fn answer_as(&self, packet: &mut Packet<'_>, vip: IpAddr, port: u16) -> Verdict {
        let done = packet.set_endpoint(End::Source, vip, Some(port));
        forward_if(done.is_ok())
    }

    /// Puts an outer header before a packet. One that is too long then is cut into fragments if it
    /// may be; otherwise its sender is told how long it may be.
    fn wrap(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &mut Packet<'_>,
        seat: Seat,
        wrapper: Wrapper,
        hash: u64,
    ) -> Outcome<Verdict> {
        let tunnel = &self.config.tunnel;
        let Some(inner) = Inner::of(packet.data(), packet.headers()) else {
            return Ok(Verdict::Drop(DropReason::Malformed));
        };
        if inner.len() + LONGEST > usize::from(u16::MAX) {
            // As some captures have them: no IP packet could carry it.
            return Ok(Verdict::Drop(DropReason::TooBig));
        }
        let longest = inner.longest(wrapper, tunnel.mtu);
        let fits = inner.len() <= longest;
        if !fits && inner.dont_fragment() {
            cx.shard().counts.too_big += 1;
            self.too_big(cx, packet, longest as u32)?;
            return Ok(Verdict::Drop(DropReason::TooBig));
        }
        let id = if inner.dont_fragment() { 0 } else { cx.shard().next_id() };
        let path = Path { backend: self.backend(seat).address, entropy: entropy_of(hash), id };
        let sum = || sum_of(packet.mbuf(), packet.headers());
        let Some(outer) = Outer::new(tunnel, wrapper, &inner, &path, sum) else {
            return Ok(Verdict::Drop(DropReason::NoRoute));
        };
        if !fits {
            return self.send_pieces(cx, packet, &inner, &outer);
        }
        packet.encapsulate(outer.bytes().len()).ok_or(Abort)?.copy_from_slice(outer.bytes());
        Ok(Verdict::Forward)
    }

    fn send_pieces(
        &self,
        cx: &mut Cx<'_, LbShard>,
        packet: &Packet<'_>,
        inner: &Inner,
        outer: &Outer,
    ) -> Outcome<Verdict> {
        cx.shard().counts.fragmented += 1;
        let (mbuf, headers) = (packet.mbuf(), packet.headers());
        let link = packet.data().get(..usize::from(headers.l3)).ok_or(Abort)?;
        for piece in pieces(outer, inner.len(), self.config.tunnel.mtu) {
            let capacity = (link.len() + piece.packet_len()).max(answer::LEAST_FRAME);
            cx.originate(self.config.sides.inside, mbuf.link(), capacity, |out| {
                let (head, body) = out.split_at_mut_checked(link.len())?;
                head.copy_from_slice(link);
                let len = link.len() + piece.write(outer, parts(mbuf, headers), body)?;
                Some(answer::padded(mbuf, out, len))
            })?;
        }
        Ok(Verdict::Consume)
    }
}

/// A packet whose checksums cannot be kept does not go on half translated.
pub(super) fn forward_if(done: bool) -> Verdict {
    if done { Verdict::Forward } else { Verdict::Drop(DropReason::Malformed) }
}
