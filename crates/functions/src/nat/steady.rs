//! The fast path of the NAT: translated flows between both whose ends packets go, datagrams of flows that are not answered, and
//! flows that pass as they are.

#[cfg(test)]
mod tests;

use rheostat_base::{Nanos, Time};
use rheostat_packet::wire::End;
use rheostat_packet::wire::protocol::UDP;

use super::closing::Segment;
use super::flow::{Binding, FlowState, Stage, Translated};
use super::{Nat, TCP};
use rheostat_nf::Packet;
use rheostat_nf::Steady;

/// What the fast path needs of the settings, and of all shards.
#[derive(Clone, Copy, Debug)]
pub(super) struct SettledFlows {
    tcp: Nanos,
    udp: Nanos,
    /// Whether a mapping may have lost its port. No packet of the fast path takes one away, so what was true when the fast path
    /// was made is true as long as it lasts.
    are_ports_lost: bool,
}

impl SettledFlows {
    pub(super) fn of(nat: &Nat) -> SettledFlows {
        let timeouts = &nat.rules.config.timeouts;
        SettledFlows {
            tcp: timeouts.tcp_established.into(),
            udp: timeouts.udp.into(),
            are_ports_lost: nat.dispossessed.get(0) > 0,
        }
    }

    /// Whether a packet leaves a flow that is not firm as it is: a datagram of the end that has opened it and that waits for an
    /// answer, with a port that is known not to be lost.
    #[inline(always)]
    fn still_waits(&self, state: &FlowState, binding: Binding, outbound: bool) -> bool {
        let has_port = match binding {
            Binding::Fixed | Binding::Own => true,
            Binding::Mapping => !self.are_ports_lost,
            // An answer from inside makes the mapping its own.
            Binding::Asked => false,
        };
        let waits = state.stage == Stage::Waiting && state.protocol == UDP;
        waits && outbound == state.opened_inside && has_port
    }
}

impl Steady<FlowState> for SettledFlows {
    /// The packet's segment if it has one.
    type Step = Option<Segment>;

    fn shortest(&self) -> Nanos {
        self.tcp.min(self.udp)
    }

    /// Flows that no request for a port can end, and which keep their mapping: the NAT asks no more of them when it looks for ports.
    #[inline(always)]
    fn may_leave(&self, state: &FlowState) -> bool {
        state.stage == Stage::Firm
    }

    #[inline(always)]
    fn decide(&self, packet: &Packet<'_>, state: &FlowState) -> Option<Option<Segment>> {
        let outbound = packet.is_forward();
        if let Some(translated) = &state.translated
            && ((state.stage != Stage::Firm
                && !self.still_waits(state, translated.binding, outbound))
                || (outbound && translated.is_hairpin)
                || !translated.ends.are_named_by(&packet.arrival_key(), outbound))
        {
            return None;
        }
        match state.protocol {
            TCP => {
                let segment = Segment::of_usual(packet.usual_tcp()?);
                let continues =
                    state.session.is_established() && state.closing.is_continued_by(segment);
                continues.then_some(Some(segment))
            }
            UDP => Some(None),
            _ => None,
        }
    }

    #[inline(always)]
    fn commit(
        &self,
        segment: Option<Segment>,
        now: Time,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Option<Time> {
        let outbound = packet.is_forward();
        if let Some(Translated { ends, .. }) = &state.translated {
            let (end, (address, port)) = match outbound {
                true => (End::Source, ends.external),
                false => (End::Destination, ends.inner),
            };
            let done = packet.replace_endpoint(end, (address.into(), port));
            debug_assert_eq!(done, Ok(()), "whole headers of TCP and UDP can be translated");
        }
        match segment {
            Some(segment) => {
                state.closing.follow(outbound, segment);
                Some(now + self.tcp)
            }
            // Of what comes from outside to a translated flow, only what TCP shows to be wanted (RFC 4787, REQ-6).
            None => (outbound || state.translated.is_none()).then(|| now + self.udp),
        }
    }
}
