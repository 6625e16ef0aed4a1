//! The fast path of the monitor: packets that are counted and change nothing else.

use rheostat_base::{Nanos, Time};
use rheostat_packet::wire::tcp::TcpFlags;

use super::{FlowState, LINGER, Monitor};
use rheostat_nf::Packet;
use rheostat_nf::Steady;

/// What the fast path needs of the monitor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted<'a>(pub(super) &'a Monitor);

impl Steady<FlowState> for Counted<'_> {
    /// The packet's flags, if it has some.
    type Step = u8;

    fn shortest(&self) -> Nanos {
        self.0.config.idle.min(LINGER).into()
    }

    /// Flows of which more packets are expected.
    #[inline(always)]
    fn may_leave(&self, state: &FlowState) -> bool {
        !state.is_over()
    }

    #[inline(always)]
    fn decide(&self, packet: &Packet<'_>, state: &FlowState) -> Option<u8> {
        let flags = packet.usual_tcp().map_or(0, |tcp| tcp.flags());
        // The rankings are the shard's.
        let is_told = self.0.config.top.is_some() && state.is_about_to_tell();
        let opens = flags & (TcpFlags::SYN | TcpFlags::ACK) == TcpFlags::SYN;
        let is_new =
            (opens && state.is_over()) || state.is_due(packet.arrived(), self.0.config.active);
        (!is_told && !is_new).then_some(flags)
    }

    #[inline(always)]
    fn commit(
        &self,
        flags: u8,
        now: Time,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Option<Time> {
        state.count(packet, flags, now);
        if state.has_much_to_tell() {
            // There are no rankings.
            state.take_untold();
        }
        Some(now + Nanos::from(self.0.lifetime(state)))
    }
}
