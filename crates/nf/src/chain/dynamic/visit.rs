//! The handler of each function that a packet comes to.

use rheostat_state::FlowMut;

use super::{LinkShard, LinkStage};
use crate::cx::Scope;
use crate::packet::Packet;
use crate::verdict::{Outcome, Verdict};

/// What a packet is to the chain.
pub(super) enum Visit<'a, 'f> {
    /// The first of a flow.
    First,
    /// One of a live flow.
    Known(&'a mut FlowMut<'f>),
    /// One of no flow.
    NonFlow,
}

impl Visit<'_, '_> {
    /// Calls the handler of a function.
    pub(super) fn call(
        &mut self,
        link: &dyn LinkStage,
        local: &mut LinkShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Verdict> {
        match self {
            Visit::First => link.first(local, scope, packet),
            Visit::Known(flow) => link.packet(local, scope, packet, flow),
            Visit::NonFlow => link.non_flow(local, scope, packet),
        }
    }

    /// Keeps what a call of the handler may change of the flow.
    pub(super) fn save(&mut self, link: &dyn LinkStage, local: &mut LinkShard) {
        if let Visit::Known(flow) = self {
            link.save(local, flow);
        }
    }

    /// Undoes what a call of the handler has changed of the flow.
    pub(super) fn restore(&mut self, link: &dyn LinkStage, local: &mut LinkShard) {
        match self {
            Visit::First => link.forget(local),
            Visit::Known(flow) => link.restore(local, flow),
            Visit::NonFlow => {}
        }
    }
}
