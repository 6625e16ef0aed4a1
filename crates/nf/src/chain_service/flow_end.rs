//! The end of flows: each on its own, and all of a shard whose time is up when the shard has its regular turn.

use rheostat_base::{ShardId, Time};
use rheostat_run::{Entry, Output, ShardSet};
use rheostat_state::{Expiry, FlowId};

use super::ChainService;
use super::apart::{notify_end, without_packet};
use crate::chain::Chain;
use crate::chain_shard::split;
use crate::cx::{Requests, Scope};
use crate::verdict::Ending;

/// Entries of flows looked at in a row at most, so that packets do not wait long.
const RECLAIM: usize = 64;

impl<C: Chain> ChainService<C> {
    /// Ends a flow: the functions are notified, and its entry leaves the table.
    #[inline(never)]
    pub(super) fn end(
        &mut self,
        flow: FlowId,
        id: ShardId,
        shards: &mut ShardSet,
        out: &mut Output,
        now: Time,
        ending: Ending,
    ) {
        let ChainService { chain, outbox, dirty, .. } = self;
        let Some((table, local)) = shards.get_mut(id).map(split::<C>) else { return };
        let Some(mut entry) = table.flow(flow) else { return };
        let now = now.min(entry.deadline());
        // Too late to ask for anything.
        let requests = &mut Requests::default();
        let scope = &mut Scope { now, shard: id, requests, outbox, pool: out.pool(), flows: None };
        notify_end(&**chain, local, scope, &mut entry, ending);
        match ending {
            Ending::Evicted => table.evict(flow),
            _ => table.remove(flow),
        };
        out.counters().flows_ended.increment();
        dirty.push(id);
    }

    /// The deadline of a flow has come: ends it, or ends it for some functions and puts the deadline off.
    pub(super) fn expire(
        &mut self,
        flow: FlowId,
        id: ShardId,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        let ChainService { chain, outbox, .. } = self;
        let Some((table, local)) = shards.get_mut(id).map(split::<C>) else { return };
        let Some(mut entry) = table.flow(flow) else { return };
        let now = entry.deadline();
        let requests = &mut Requests::default();
        let scope = &mut Scope { now, shard: id, requests, outbox, pool: out.pool(), flows: None };
        if !chain.lapsed(local, scope, &mut entry) {
            self.end(flow, id, shards, out, now, Ending::Expired);
        }
    }

    /// Gives the next `row` shards their regular turns. Returns whether nothing due is left in them; if not, the next row begins
    /// with the shard where something is.
    pub(super) fn visit_row(
        &mut self,
        row: u32,
        shards: &mut ShardSet,
        out: &mut Output,
        now: Time,
    ) -> bool {
        let mut budget = RECLAIM;
        for _ in 0..row {
            let Some(id) = shards.next_owned(self.next_shard) else { return true };
            self.next_shard = id;
            if shards.enter(id) == Entry::Elsewhere {
                // Another lane works on it: its turn comes with the next poll.
                return false;
            }
            self.keep_up(shards);
            let left = self.visit(id, shards, out, now, budget);
            self.end_tables(shards);
            shards.leave();
            match left {
                Some(left) => budget = left,
                None => return false,
            }
            self.next_shard = ShardId(id.0.wrapping_add(1));
            self.note_turn();
        }
        true
    }

    /// Gives a shard its regular turn: reclaims flows whose time is up, for which it looks at up to `budget` entries, and calls
    /// the periodic handlers. Returns what is left of the budget, or `None` when something due is left.
    pub(super) fn visit(
        &mut self,
        id: ShardId,
        shards: &mut ShardSet,
        out: &mut Output,
        now: Time,
        budget: usize,
    ) -> Option<usize> {
        let left = self.reclaim(id, shards, out, now, budget)?;
        self.recall_overdue(id, shards, out, now);
        let ChainService { chain, outbox, .. } = self;
        let Some((table, local)) = shards.get_mut(id).map(split::<C>) else { return Some(left) };
        let requests = &mut Requests::default();
        let flows = Some(&*table);
        let scope = &mut Scope { now, shard: id, requests, outbox, pool: out.pool(), flows };
        if C::SHARED {
            without_packet(
                scope,
                local,
                |_| {},
                |local, scope| chain.periodic(local, scope),
                |_| {},
            );
        } else {
            // An aborted turn comes again.
            let _ = chain.periodic(local, scope);
        }
        Some(left)
    }

    /// Ends flows of a shard whose time is up, for which it looks at up to `budget` entries. Returns what is left of the budget,
    /// or `None` when such flows are left.
    pub(super) fn reclaim(
        &mut self,
        id: ShardId,
        shards: &mut ShardSet,
        out: &mut Output,
        now: Time,
        budget: usize,
    ) -> Option<usize> {
        let ChainService { chain, outbox, dirty, .. } = self;
        let Some((table, local)) = shards.get_mut(id).map(split::<C>) else {
            return Some(budget);
        };
        let requests = &mut Requests::default();
        let scope = &mut Scope { now, shard: id, requests, outbox, pool: out.pool(), flows: None };
        let reclaimed = table.expire_ahead(now, budget, |mut flow, expiry| match expiry {
            Expiry::Soon => chain.prefetch_end(local, &mut flow),
            Expiry::Now => {
                // When its time was up, not when a lane came round to it.
                scope.now = flow.deadline();
                if !chain.lapsed(local, scope, &mut flow) {
                    notify_end(&**chain, local, scope, &mut flow, Ending::Expired);
                }
            }
        });
        out.counters().flows_ended.add(reclaimed.flows as u64);
        if reclaimed.flows > 0 {
            dirty.push(id);
        }
        reclaimed.complete.then(|| budget - reclaimed.looked_at)
    }

    /// Ends every flow of a shard, as the run is over at `now`.
    pub(super) fn end_all(
        &mut self,
        id: ShardId,
        shards: &mut ShardSet,
        out: &mut Output,
        now: Time,
    ) {
        let ChainService { chain, outbox, dirty, .. } = self;
        let Some((table, local)) = shards.get_mut(id).map(split::<C>) else { return };
        let requests = &mut Requests::default();
        let scope = &mut Scope { now, shard: id, requests, outbox, pool: out.pool(), flows: None };
        let ended = table.expire(Time::NEVER, usize::MAX, |mut flow| {
            notify_end(&**chain, local, scope, &mut flow, Ending::Stopped);
        });
        chain.stopped(local, scope);
        out.counters().flows_ended.add(ended.flows as u64);
        dirty.push(id);
    }
}
