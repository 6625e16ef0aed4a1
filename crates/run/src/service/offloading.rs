//! A service whose flows can be with another lane.

use rheostat_base::Time;
use rheostat_packet::FlowKey;
use rheostat_state::{DetachedFlow, FlowHash, Shard};

use super::Service;
use crate::lane::{Batch, Output};
use crate::offload::{FlowNumber, OffloadedFlows};

/// A service of which other lanes may work on single flows.
pub trait OffloadingService: Service {
    /// Detaches the flow with this key from its shard, so that it can leave; `None` when there is none, or it has to stay for now.
    fn detach(
        &mut self,
        shard: &mut Shard,
        flow: (FlowHash, &FlowKey),
        number: FlowNumber,
        now: Time,
    ) -> Option<DetachedFlow>;

    /// Processes packets of flows that are away from their homes, in order, and leaves `batch` empty. A packet that can be
    /// processed only with its shard is refused ([`Output::refuse`]), and all later ones of its flow are
    /// ([`OffloadedFlows::refuse`]).
    fn process_offloaded(
        &mut self,
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        out: &mut Output,
    );
}
