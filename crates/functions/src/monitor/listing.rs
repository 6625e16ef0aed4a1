//! What the monitor lists of a flow: when it began, and its packets and bytes since its last record.

use rheostat_nf::{ListCx, Lists};
use rheostat_packet::FlowKey;
use rheostat_run::listing::ListedFields;

use super::record::EndReason;
use super::{FlowState, Monitor, MonitorShard};

impl Lists for Monitor {
    fn list(
        &self,
        cx: ListCx<'_, MonitorShard>,
        key: &FlowKey,
        flow: &FlowState,
        into: &mut ListedFields,
    ) {
        let record = flow.record(*key, EndReason::Active);
        let [there, back] = record.ways;
        let packets = u64::from(there.packets) + u64::from(back.packets);
        into.opened(record.initiated_forward);
        into.began(record.began);
        into.counted(packets, there.bytes + back.bytes);
        into.duration("idle", cx.now.since(record.end));
        into.number("part", record.part.into());
        into.number("errors", record.errors.into());
    }
}
