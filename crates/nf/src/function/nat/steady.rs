//! The fast path of the NAT: translated flows between both whose ends packets go, and flows that pass as they are.

#[cfg(test)]
mod tests;

use rheostat_base::{Nanos, Time};
use rheostat_packet::wire::End;
use rheostat_packet::wire::protocol::UDP;

use super::closing::Segment;
use super::flow::{FlowState, Stage, Translated};
use super::{Nat, TCP};
use crate::packet::Packet;
use crate::steady::Steady;

/// What the fast path needs of the settings.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirmFlows {
    tcp: Nanos,
    udp: Nanos,
}

impl FirmFlows {
    pub(super) fn of(nat: &Nat) -> FirmFlows {
        let timeouts = &nat.rules.config.timeouts;
        FirmFlows { tcp: timeouts.tcp_established.into(), udp: timeouts.udp.into() }
    }
}

impl Steady<FlowState> for FirmFlows {
    /// The packet's segment if it has one.
    type Step = Option<Segment>;

    #[inline(always)]
    fn decide(&self, packet: &Packet<'_>, state: &FlowState) -> Option<Option<Segment>> {
        let outbound = packet.is_forward();
        if let Some(translated) = &state.translated
            && (state.stage != Stage::Firm
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
