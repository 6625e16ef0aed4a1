//! Events that functions handle without a packet.

use rheostat_state::FlowMut;

use super::{LinkShard, LinkStage};
use crate::chain_service::apart::without_packet;
use crate::cx::Scope;
use crate::verdict::{Ending, Outcome};

/// An event without a packet.
pub(crate) enum Event<'a, 'f> {
    /// The state of a new flow is given up. It is there again for another call until [`LinkStage::forget`].
    Discarded,
    /// The flow ends.
    Ended(&'a mut FlowMut<'f>, Ending),
    /// The shard has its regular turn.
    Periodic,
    /// The run is over: flows end that only the function has.
    Stopped,
}

/// Lets a function handle an event: one on shared objects in a transaction of its own, whose abort costs the event.
pub(super) fn handle(
    link: &dyn LinkStage,
    shard: &mut LinkShard,
    scope: &mut Scope<'_>,
    event: &mut Event<'_, '_>,
) -> Outcome<()> {
    if link.objects().is_none() {
        return link.handle(shard, scope, event);
    }
    without_packet(
        scope,
        (shard, event),
        |(shard, event)| {
            if let Event::Ended(flow, _) = event {
                link.save(&mut **shard, flow);
            }
        },
        |(shard, event), scope| link.handle(&mut **shard, scope, event),
        |(shard, event)| {
            if let Event::Ended(flow, _) = event {
                link.restore(&mut **shard, flow);
            }
        },
    );
    Ok(())
}
