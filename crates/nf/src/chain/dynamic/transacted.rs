//! A function on shared objects in a chain with others: each of its calls is a transaction of its own, run again while it conflicts
//! with another lane's. When it returns, its effects are committed, or there are none.
//!
//! The functions before it have had their effects by then, and are not run again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rheostat_base::DropReason;
use rheostat_state::FlowMut;
use rheostat_state::txn::Abort;

use super::visit::Visit;
use super::{LinkShard, LinkStage};
use crate::chain_service::TIMEOUT;
use crate::cx::Scope;
use crate::packet::Packet;
use crate::packet_log::PacketLog;
use crate::verdict::{Ending, Outcome, Verdict};

/// Why a call had no effects.
enum Failed {
    /// The handler has given up.
    Abort,
    /// The handler has panicked.
    Panic,
    /// The packet is to be presented again as the first of a new flow.
    Restart,
}

/// Runs `call` in a transaction until it does not conflict. What it does to the scope is undone each time; `prepare` runs before
/// each call, and `undo` behind each that has no effects.
fn run<W>(
    scope: &mut Scope<'_>,
    work: &mut W,
    prepare: impl Fn(&mut W),
    call: impl Fn(&mut W, &mut Scope<'_>) -> Outcome<Verdict>,
    undo: impl Fn(&mut W),
) -> Result<Verdict, Failed> {
    let (before, requests) = (scope.outbox.mark(), *scope.requests);
    for aborts in 0.. {
        let txn = scope.outbox.txn();
        if aborts >= TIMEOUT {
            txn.make_serial();
        }
        txn.begin(scope.now);
        prepare(work);
        // Whatever a handler has left half done is undone below.
        let outcome = catch_unwind(AssertUnwindSafe(|| call(work, scope)));
        let txn = scope.outbox.txn();
        let failed = match outcome {
            Ok(Ok(verdict)) if verdict != Verdict::Restart && txn.commit().is_ok() => {
                return Ok(verdict);
            }
            // A handler may have missed that there was a conflict: then nothing else counts.
            _ if txn.is_conflicted() => None,
            Ok(Ok(Verdict::Restart)) => Some(Failed::Restart),
            Ok(Ok(_)) => None,
            Ok(Err(Abort)) => Some(Failed::Abort),
            Err(_) => Some(Failed::Panic),
        };
        txn.roll_back();
        undo(work);
        scope.outbox.go_back_to(before, scope.pool);
        *scope.requests = requests;
        if let Some(failed) = failed {
            scope.outbox.panics += u64::from(matches!(failed, Failed::Panic));
            return Err(failed);
        }
    }
    unreachable!("a transaction that runs alone does not conflict")
}

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
    let outcome = run(
        scope,
        &mut work,
        |(local, _, visit, _)| visit.save(link, &mut **local),
        |(local, packet, visit, log), scope| {
            packet.with_log(log, |packet| visit.call(link, &mut **local, scope, packet))
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
    without_verdict(
        scope,
        local,
        |_| {},
        |local, scope| link.discarded(&mut **local, scope),
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
    without_verdict(
        scope,
        (local, flow),
        |(local, flow)| link.save(&mut **local, flow),
        |(local, flow), scope| link.ended(&mut **local, scope, flow, ending),
        |(local, flow)| link.restore(&mut **local, flow),
    );
}

/// Calls a function's periodic handler. An aborted turn comes again.
pub(super) fn periodic(link: &dyn LinkStage, local: &mut LinkShard, scope: &mut Scope<'_>) {
    let call = |local: &mut &mut LinkShard, scope: &mut Scope<'_>| {
        link.periodic(&mut **local, scope).map(|()| Verdict::Consume)
    };
    let mut local = local;
    let _ = run(scope, &mut local, |_| {}, call, |_| {});
}

/// Runs `call` about no packet: when it gives up or panics, it is left at that.
fn without_verdict<W>(
    scope: &mut Scope<'_>,
    mut work: W,
    prepare: impl Fn(&mut W),
    call: impl Fn(&mut W, &mut Scope<'_>),
    undo: impl Fn(&mut W),
) {
    let call = |work: &mut W, scope: &mut Scope<'_>| {
        call(work, scope);
        Ok(Verdict::Consume)
    };
    let _ = run(scope, &mut work, prepare, call, undo);
}
