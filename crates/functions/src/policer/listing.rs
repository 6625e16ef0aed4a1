//! What the policer lists of an address: whether it is metered, and by which class.

use rheostat_nf::{ListCx, Lists};
use rheostat_packet::FlowKey;
use rheostat_run::listing::ListedFields;

use super::{FlowState, Policer, Tally};

impl Lists for Policer {
    fn list(&self, _: ListCx<'_, Tally>, _: &FlowKey, flow: &FlowState, into: &mut ListedFields) {
        let FlowState::Metered(metered) = flow else {
            return into.flag("metered", false);
        };
        into.flag("metered", true);
        let (bucket, class) = (metered.bucket, metered.class);
        if let Some(meter) = self.config.classes.meter(class) {
            into.flag("half_empty", meter.is_half_empty(&bucket));
        }
    }
}
