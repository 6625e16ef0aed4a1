//! The fast path of the load balancer: open flows whose addresses are translated, and what backends answer otherwise.

use rheostat_base::{Nanos, Time};
use rheostat_packet::wire::protocol::TCP;
use rheostat_packet::wire::{End, TcpFlags};

use super::config::Mode;
use super::lifetime::Phase;
use super::{FlowState, Lb};
use crate::packet::Packet;
use crate::steady::Steady;

/// What the fast path needs of the load balancer.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenFlows<'a> {
    lb: &'a Lb,
    /// The lower half of the number of the latest assignment, as it stands in flows.
    generation: u32,
    tcp: Nanos,
    udp: Nanos,
}

impl<'a> OpenFlows<'a> {
    pub(super) fn of(lb: &'a Lb) -> OpenFlows<'a> {
        let timeouts = &lb.config.timeouts;
        OpenFlows {
            lb,
            generation: lb.board.generation() as u32,
            tcp: timeouts.tcp_established.into(),
            udp: timeouts.udp.into(),
        }
    }
}

impl Steady<FlowState> for OpenFlows<'_> {
    /// How long the flow is remembered.
    type Step = Nanos;

    #[inline(always)]
    fn decide(&self, packet: &Packet<'_>, state: &FlowState) -> Option<Nanos> {
        let service = self.lb.service(state.seat.service);
        // Shards apply an assignment later than the board, never earlier: where it is still the flow's, it is the shard's.
        if state.phase != Phase::Open
            || state.checked != self.generation
            || (service.mode != Mode::Nat && !packet.is_forward())
            || service.quic.is_some()
        {
            return None;
        }
        if packet.headers().protocol != TCP {
            return Some(self.udp);
        }
        let ends = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
        (packet.tcp()?.flags().0 & ends == 0).then_some(self.tcp)
    }

    #[inline(always)]
    fn commit(
        &self,
        lifetime: Nanos,
        now: Time,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Option<Time> {
        let service = self.lb.service(state.seat.service);
        if service.mode != Mode::Nat {
            // An answer that comes by way of this machine stays as it is.
            return Some(now + lifetime);
        }
        let (end, endpoint) = match packet.is_forward() {
            true => (End::Source, (service.vip, state.port)),
            false => {
                let backend = self.lb.backend(state.seat);
                (End::Destination, (backend.address, backend.port.unwrap_or(state.port)))
            }
        };
        let done = packet.replace_endpoint(end, endpoint);
        debug_assert_eq!(done, Ok(()), "whole headers of TCP and UDP can be translated");
        Some(now + lifetime)
    }
}
