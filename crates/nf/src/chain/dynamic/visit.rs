//! The kinds of packets, by which a function's handler is chosen.

use rheostat_state::FlowMut;

use super::{LinkShard, LinkStage};

/// What a packet is to the chain.
pub(crate) enum Visit<'a, 'f> {
    /// The first of a flow.
    First,
    /// One of a live flow.
    Known(&'a mut FlowMut<'f>),
    /// One of no flow.
    NonFlow,
}

impl Visit<'_, '_> {
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
