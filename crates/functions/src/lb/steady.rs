//! The fast path of the load balancer: open flows, whose packets are translated, or leave behind an outer header that needs
//! no number of its own.

use rheostat_base::{Nanos, Time};
use rheostat_packet::wire::protocol::TCP;
use rheostat_packet::wire::{End, TcpFlags};

use super::lifetime::Phase;
use super::tunnel::{Inner, LONGEST, Outer, Path, Wrapper, entropy_of, sum_of};
use super::{FlowState, Lb};
use rheostat_nf::Packet;
use rheostat_nf::Steady;

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
            generation: lb.edition.generation() as u32,
            tcp: timeouts.tcp_established.into(),
            udp: timeouts.udp.into(),
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// How long the flow is remembered.
    lifetime: Nanos,
    way: Way,
}

/// How a packet goes on.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// As it is: an answer that comes by way of this machine.
    On,
    /// With another endpoint.
    Translated,
    /// Behind an outer header.
    Wrapped(Wrapper),
}

impl Steady<FlowState> for OpenFlows<'_> {
    type Step = Step;

    fn shortest(&self) -> Nanos {
        self.tcp.min(self.udp)
    }

    /// Flows that are open, whose backend is that of the latest assignment.
    #[inline(always)]
    fn may_leave(&self, state: &FlowState) -> bool {
        state.phase == Phase::Open && state.checked == self.generation
    }

    #[inline(always)]
    fn decide(&self, packet: &Packet<'_>, state: &FlowState) -> Option<Step> {
        let service = self.lb.service(state.seat.service);
        // Shards apply an assignment later than the board, never earlier: where it is still the flow's, it is the shard's.
        if state.phase != Phase::Open || state.checked != self.generation || service.quic.is_some()
        {
            return None;
        }
        let lifetime = match packet.headers().protocol {
            TCP => {
                let ends = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
                (packet.usual_tcp()?.flags() & ends == 0).then_some(self.tcp)?
            }
            _ => self.udp,
        };
        let way = match Wrapper::of(service.mode, &self.lb.config.tunnel) {
            None => Way::Translated,
            Some(_) if packet.is_forward() => Way::On,
            Some(wrapper) => self.fits(packet, state, wrapper).then_some(Way::Wrapped(wrapper))?,
        };
        Some(Step { lifetime, way })
    }

    #[inline(always)]
    fn commit(
        &self,
        Step { lifetime, way }: Step,
        now: Time,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Option<Time> {
        match way {
            Way::On => {}
            Way::Translated => self.translate(packet, state),
            Way::Wrapped(wrapper) => {
                let done = self.wrap(packet, state, wrapper);
                debug_assert_eq!(done, Some(()), "it was seen to fit");
            }
        }
        Some(now + lifetime)
    }
}

impl OpenFlows<'_> {
    /// Whether a packet can go behind an outer header whole, with nothing to be said to its sender, and without a number that
    /// the shard gives.
    #[inline(always)]
    fn fits(&self, packet: &Packet<'_>, state: &FlowState, wrapper: Wrapper) -> bool {
        let tunnel = &self.lb.config.tunnel;
        let Some(inner) = Inner::of(packet.data(), packet.headers()) else { return false };
        inner.dont_fragment()
            && inner.len() <= inner.longest(wrapper, tunnel.mtu)
            && packet.headroom() >= LONGEST
            && tunnel.source_for(self.lb.backend(state.seat).address).is_some()
    }

    #[inline(always)]
    fn wrap(&self, packet: &mut Packet<'_>, state: &FlowState, wrapper: Wrapper) -> Option<()> {
        let inner = Inner::of(packet.data(), packet.headers())?;
        let backend = self.lb.backend(state.seat).address;
        let path = Path { backend, entropy: entropy_of(state.hash), id: 0 };
        let sum = || sum_of(packet.mbuf(), packet.headers());
        let outer = Outer::new(&self.lb.config.tunnel, wrapper, &inner, &path, sum)?;
        packet.encapsulate(outer.bytes().len())?.copy_from_slice(outer.bytes());
        Some(())
    }

    #[inline(always)]
    fn translate(&self, packet: &mut Packet<'_>, state: &FlowState) {
        let (end, endpoint) = match packet.is_forward() {
            true => (End::Source, (self.lb.service(state.seat.service).vip, state.port)),
            false => {
                let backend = self.lb.backend(state.seat);
                (End::Destination, (backend.address, backend.port.unwrap_or(state.port)))
            }
        };
        let done = packet.replace_endpoint(end, endpoint);
        debug_assert_eq!(done, Ok(()), "whole headers of TCP and UDP can be translated");
    }
}
