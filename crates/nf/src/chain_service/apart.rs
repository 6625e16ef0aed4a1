//! Transactions apart from those of sub-bursts: the end of a flow, a shard's regular turn, and each call of a function on shared
//! objects in a chain that is put together at run time.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rheostat_state::FlowMut;
use rheostat_state::txn::Abort;

use super::transaction::TIMEOUT;
use crate::chain::Chain;
use crate::cx::Scope;
use crate::verdict::{Ending, Outcome, Verdict};

/// Why a call had no effects.
pub(crate) enum Failed {
    /// The handler has given up.
    Abort,
    /// The handler has panicked.
    Panic,
    /// The packet is to be presented again as the first of a new flow.
    Restart,
}

/// Runs `call` in a transaction until it does not conflict. What it does to the scope is undone each time; `prepare` runs before
/// each call, and `undo` behind each that has no effects.
pub(crate) fn in_transaction<W>(
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

/// Runs `call` about no packet: a call that gives up or panics has no effects.
pub(crate) fn without_packet<W>(
    scope: &mut Scope<'_>,
    mut work: W,
    prepare: impl Fn(&mut W),
    call: impl Fn(&mut W, &mut Scope<'_>) -> Outcome<()>,
    undo: impl Fn(&mut W),
) {
    let call = |work: &mut W, scope: &mut Scope<'_>| call(work, scope).map(|()| Verdict::Consume);
    let _ = in_transaction(scope, &mut work, prepare, call, undo);
}

/// Notifies the functions of a chain that a flow ends: where it works on shared objects, in a transaction of its own.
#[inline]
pub(super) fn notify_end<C: Chain>(
    chain: &C,
    local: &mut C::Shard,
    scope: &mut Scope<'_>,
    flow: &mut FlowMut<'_>,
    ending: Ending,
) {
    if !C::SHARED {
        return chain.ended(local, scope, flow, ending);
    }
    without_packet(
        scope,
        (local, flow, None),
        |(_, flow, saved)| *saved = Some(chain.save(flow)),
        |(local, flow, _), scope| {
            chain.ended(local, scope, flow, ending);
            Ok(())
        },
        |(_, flow, saved)| saved.take().into_iter().for_each(|saved| chain.restore(flow, saved)),
    );
}
