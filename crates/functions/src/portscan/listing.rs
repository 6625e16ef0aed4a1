//! What the detector of port scans lists of a flow.

use rheostat_nf::{ListCx, Lists};
use rheostat_packet::FlowKey;
use rheostat_run::listing::ListedFields;

use super::{Attempt, Portscan};

impl Lists for Portscan {
    fn list(&self, _: ListCx<'_, ()>, _: &FlowKey, flow: &Attempt, into: &mut ListedFields) {
        into.opened(flow.opened_forward);
        into.text("contact", if flow.is_decided { "decided" } else { "open" });
    }
}
