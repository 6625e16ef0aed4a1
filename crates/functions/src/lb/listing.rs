//! What the load balancer lists of a flow: its service and its backend.

use std::net::SocketAddr;

use rheostat_nf::{ListCx, Lists};
use rheostat_packet::FlowKey;
use rheostat_run::listing::ListedFields;

use super::lifetime::Phase;
use super::{FlowState, Lb, LbShard};

impl Lists for Lb {
    fn list(&self, _: ListCx<'_, LbShard>, _: &FlowKey, flow: &FlowState, into: &mut ListedFields) {
        let state = match flow.phase {
            Phase::Opening => "opening",
            Phase::Open => "open",
            Phase::Closing => "closing",
            Phase::Closed => "closed",
        };
        let backend = self.backend(flow.seat);
        into.text("state", state);
        into.text("service", self.service(flow.seat.service).name.clone());
        into.endpoint(
            "backend",
            SocketAddr::new(backend.address, backend.port.unwrap_or(flow.port)),
        );
        // Clients open flows, from outside.
        into.opened(false);
    }
}
