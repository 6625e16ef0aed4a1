//! What the detector of attacks with many flows lists of a flow.

use rheostat_nf::{ListCx, Lists};
use rheostat_packet::FlowKey;
use rheostat_run::listing::ListedFields;

use super::{AntiDdos, FlowState};

impl Lists for AntiDdos {
    fn list(&self, _: ListCx<'_, ()>, _: &FlowKey, flow: &FlowState, into: &mut ListedFields) {
        into.opened(flow.opened_forward);
        into.flag("one_packet", flow.has_one_packet);
    }
}
