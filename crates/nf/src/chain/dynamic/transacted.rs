//! A function on shared objects in a chain with others: each of its calls is a transaction of its own, run again while it conflicts
//! with another lane's. When it returns, its effects are committed, or there are none.
//!
//! The functions before it have had their effects by then, and are not run again.

use rheostat_base::DropReason;
use rheostat_state::FlowMut;
use rheostat_state::txn::Abort;

use super::visit::Visit;
use super::{LinkShard, LinkStage};
use crate::chain_service::apart::{Failed, in_transaction, without_packet};
use crate::cx::Scope;
use crate::packet::Packet;
use crate::packet_log::PacketLog;
use crate::verdict::{Ending, Outcome, Verdict};

/// Presents a packet to a function. A panic drops the packet, and ends its flow.
pub(super) fn visit(
    link: &dyn LinkStage,
    local: &mut LinkShard,
    scope: &mut Scope<'_>,
    packet: &mut Packet<'_>,
    visit: &mut Visit<'_, '_>,
    log: &mut PacketLog,
) -> Outcome<Verdict> {
    let start = log.mark();
    let mut work = (local, packet, visit, log);
    let outcome = in_transaction(
        scope,
        &mut work,
        |(local, _, visit, _)| visit.save(link, &mut **local),
        |(local, packet, visit, log), scope| {
            packet.with_log(log, |packet| link.visit(&mut **local, scope, packet, visit))
        },
        |(local, packet, visit, log)| {
            packet.go_back_to(log, start);
            visit.restore(link, &mut **local);
        },
    );
    match outcome {
        Ok(verdict) => Ok(verdict),
        Err(Failed::Restart) => Ok(Verdict::Restart),
        Err(Failed::Abort) => Err(Abort),
        Err(Failed::Panic) => {
            scope.requests.close = true;
            Ok(Verdict::Drop(DropReason::HandlerPanic))
        }
    }
}

/// Gives up the state of a new flow.
pub(super) fn discarded(link: &dyn LinkStage, local: &mut LinkShard, scope: &mut Scope<'_>) {
    without_packet(
        scope,
        local,
        |_| {},
        |local, scope| {
            link.discarded(&mut **local, scope);
            Ok(())
        },
        |_| {},
    );
}

/// Notifies a function that a flow ends.
pub(super) fn ended(
    link: &dyn LinkStage,
    local: &mut LinkShard,
    scope: &mut Scope<'_>,
    flow: &mut FlowMut<'_>,
    ending: Ending,
) {
    without_packet(
        scope,
        (local, flow),
        |(local, flow)| link.save(&mut **local, flow),
        |(local, flow), scope| {
            link.ended(&mut **local, scope, flow, ending);
            Ok(())
        },
        |(local, flow)| link.restore(&mut **local, flow),
    );
}

/// Calls a function's periodic handler. An aborted turn comes again.
pub(super) fn periodic(link: &dyn LinkStage, local: &mut LinkShard, scope: &mut Scope<'_>) {
    without_packet(scope, local, |_| {}, |local, scope| link.periodic(&mut **local, scope), |_| {});
}
