//! What has a transaction of its own, apart from those of packets: the end of a flow, and a shard's regular turn.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rheostat_state::FlowMut;
use rheostat_state::txn::Abort;

use super::transaction::TIMEOUT;
use crate::chain::Chain;
use crate::cx::Scope;
use crate::verdict::{Ending, Outcome};

/// Notifies the functions of a chain that a flow ends: where it works on shared objects, in a transaction of its
/// own.
#[inline]
pub(super) fn tell_end<C: Chain>(
    chain: &C,
    local: &mut C::Shard,
    scope: &mut Scope<'_>,
    flow: &mut FlowMut<'_>,
    ending: Ending,
) {
    if !C::SHARED {
        return chain.ended(local, scope, flow, ending);
    }
    let mut saved = None;
    in_transaction(scope, |scope| {
        if let Some(saved) = saved.take() {
            chain.restore(flow, saved);
        }
        saved = Some(chain.save(flow));
        chain.ended(local, scope, flow, ending);
        Ok(())
    });
}

/// Runs `work` in a transaction of its own, again and again while that conflicts with others, and undoes
/// what it does in the scope. When it gives up or panics, it is left at that.
pub(super) fn in_transaction(
    scope: &mut Scope<'_>,
    mut work: impl FnMut(&mut Scope<'_>) -> Outcome<()>,
) {
    let before = scope.outbox.len();
    for aborts in 0.. {
        let txn = scope.outbox.txn();
        if aborts >= TIMEOUT {
            txn.make_serial();
        }
        txn.begin(scope.now);
        let outcome = catch_unwind(AssertUnwindSafe(|| work(scope)));
        let txn = scope.outbox.txn();
        let again = match outcome {
            Ok(Ok(())) if txn.commit().is_ok() => return,
            Ok(Ok(())) => true,
            _ if txn.is_conflicted() => true,
            Ok(Err(Abort)) => false,
            Err(_) => {
                scope.outbox.panics += 1;
                false
            }
        };
        scope.outbox.txn().roll_back();
        scope.outbox.go_back(before, scope.pool);
        if !again {
            return;
        }
    }
}
