//! A function on shared objects in a chain with others: each of its calls is a transaction of its own, run again while it conflicts
//! with another lane's. When it returns, its effects are committed, or there are none.
//!
//! The functions before it have had their effects by then, and are not run again.

use rheostat_base::DropReason;
use rheostat_state::txn::Abort;

use super::{LinkShard, LinkStage, LinkVisit};
use crate::chain::Visit;
use crate::chain_service::apart::{Failed, in_transaction};
use crate::cx::Scope;
use crate::packet::Packet;
use crate::packet_log::PacketLog;
use crate::verdict::{Outcome, Verdict};

/// Presents a packet to a function. A panic drops the packet, and ends its flow.
pub(super) fn visit(
    link: &dyn LinkStage,
    shard: &mut LinkShard,
    scope: &mut Scope<'_>,
    packet: &mut Packet<'_>,
    visit: &mut LinkVisit<'_, '_>,
    log: &mut PacketLog,
) -> Outcome<Verdict> {
    let start = log.mark();
    let mut work = (shard, packet, visit, log);
    let outcome = in_transaction(
        scope,
        &mut work,
        |(shard, _, visit, _)| {
            if let Visit::Known(flow) = visit {
                link.save(&mut **shard, flow);
            }
        },
        |(shard, packet, visit, log), scope| {
            packet.with_log(log, |packet| link.visit(&mut **shard, scope, packet, visit))
        },
        |(shard, packet, visit, log)| {
            packet.go_back_to(log, start);
            match visit {
                Visit::First(()) => link.forget(&mut **shard),
                Visit::Known(flow) => link.restore(&mut **shard, flow),
                Visit::NonFlow => {}
            }
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
