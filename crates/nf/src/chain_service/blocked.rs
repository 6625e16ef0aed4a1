//! What has to be done before the chain can be executed on a packet, and what has been done for it already.

use rheostat_base::DropReason;
use rheostat_run::{Output, PacketInfo, ShardSet};
use rheostat_state::txn::Abort;
use rheostat_state::{FlowId, FlowTable};

use super::ChainService;
use crate::chain::Chain;
use crate::verdict::{Ending, Outcome, Verdict};

/// Why a packet's execution did not come to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// The packet's flow has come to its end before the packet came: it is to be ended first.
    Expired(FlowId),
    /// Flows whose time is up are to be ended first.
    Due,
    /// The packet opens a new life of its flow: the old one is to be ended.
    Restart(FlowId),
    /// The table is full: room is to be made in it.
    Room,
    /// The transaction conflicts with another lane's, and is to be run again.
    Conflict,
    /// A handler has given up on the packet.
    Abort,
    /// A handler has panicked.
    Panic,
}

impl Blocked {
    /// Whether it was known before a handler saw the packet.
    pub(super) fn is_known_before(self) -> bool {
        matches!(self, Blocked::Expired(_) | Blocked::Due)
    }
}

/// What has been done for a packet on which the chain is to be executed again: in transactions, the first of the next one.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Packets of the next transaction at most: behind them comes one that needs something.
    pub(super) most: Option<usize>,
    /// How often the packet conflicted on its own.
    pub(super) aborts: u32,
    /// Whether flows whose time was up have been ended for it.
    pub(super) reclaimed: bool,
    /// Whether its flow has been ended at its wish.
    pub(super) restarted: bool,
    /// What has been done to make room for its flow.
    pub(super) room: Room,
}

/// What has been done to make room in a full table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Room {
    /// Nothing.
    #[default]
    Unknown,
    /// Flows whose time was up were ended.
    Reclaimed,
    /// The flow to be evicted, if there was one, was evicted.
    Exhausted,
}

impl<C: Chain> ChainService<C> {
    /// Does what a packet needs, so that the chain can be executed again; or states what it has come to.
    #[inline(never)]
    pub(super) fn resolve(
        &mut self,
        blocked: Blocked,
        info: &PacketInfo,
        head: &mut Head,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> Option<Outcome<Verdict>> {
        let (now, shard) = (info.now, info.shard);
        match blocked {
            Blocked::Expired(flow) => self.expire(flow, shard, shards, out),
            Blocked::Due => {
                self.reclaim(shard, shards, out, now, usize::MAX);
                head.reclaimed = true;
            }
            Blocked::Restart(flow) => {
                self.end(flow, shard, shards, out, now, Ending::Closed);
                head.restarted = true;
            }
            Blocked::Room => self.make_room(&mut head.room, info, shards, out),
            Blocked::Conflict => {}
            Blocked::Abort => return Some(Err(Abort)),
            Blocked::Panic => {
                self.outbox.panics += 1;
                let table = shards.get(shard).map(|shard| &shard.table);
                let table = table.filter(|_| info.has_key());
                let flow = table.and_then(|table| table.find_now(info.hash, &info.key()));
                if let Some(flow) = flow {
                    self.end(flow, shard, shards, out, now, Ending::Closed);
                }
                return Some(Ok(Verdict::Drop(DropReason::HandlerPanic)));
            }
        }
        None
    }

    /// Makes room in a full table: first by the flows whose time is up, then by the oldest that has not proved itself.
    #[cold]
    pub(super) fn make_room(
        &mut self,
        room: &mut Room,
        info: &PacketInfo,
        shards: &mut ShardSet,
        out: &mut Output,
    ) {
        let (now, shard) = (info.now, info.shard);
        if *room == Room::Unknown {
            // All of them: what is left then depends on nothing but deadlines, so neither does the victim.
            self.visit(shard, shards, out, now, usize::MAX);
            *room = Room::Reclaimed;
            return;
        }
        let table = shards.get(shard).map(|shard| &shard.table);
        if let Some(oldest) = table.and_then(FlowTable::oldest_evictable) {
            self.end(oldest, shard, shards, out, now, Ending::Evicted);
        }
        *room = Room::Exhausted;
    }
}
