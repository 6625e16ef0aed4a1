//! Handlers of functions without a fast path, on packets of known flows that are on the fast path of the others. These functions have
//! no flows of the chain: a handler has its packet and its shard, and can do nothing to the packet's flow, nor to others.

use arrayvec::ArrayVec;
use rheostat_base::DropReason;
use rheostat_packet::PoolCache;
use rheostat_state::{OPEN_FLOWS, ShardLocals};
use rheostat_steer::Side;

use super::{DynamicShard, LinkStage};
use crate::chain::Visit;
use crate::chain_shard::ChainShard;
use crate::cx::{Outbox, Requests, Scope};
use crate::packet::Packet;
use crate::verdict::{Outcome, Verdict};

/// The parts of a lane that handlers need, and the verdicts on packets of the run that are not to be forwarded.
pub(crate) struct Visits<'r> {
    shards: ShardLocals<'r>,
    outbox: &'r mut Outbox,
    pool: &'r mut PoolCache,
    /// By the packet's place in the run.
    verdicts: ArrayVec<(usize, Verdict), OPEN_FLOWS>,
    /// The packets that do not go on, one bit each.
    stopped: u16,
}

impl<'r> Visits<'r> {
    pub(super) fn new(
        shards: ShardLocals<'r>,
        outbox: &'r mut Outbox,
        pool: &'r mut PoolCache,
    ) -> Visits<'r> {
        Visits { shards, outbox, pool, verdicts: ArrayVec::new(), stopped: 0 }
    }

    /// The packets that do not go on, one bit each.
    #[inline(always)]
    pub(super) fn stopped(&self) -> u16 {
        self.stopped
    }

    /// The verdicts on packets that are not to be forwarded, in the order of the packets.
    pub(super) fn into_verdicts(mut self) -> ArrayVec<(usize, Verdict), OPEN_FLOWS> {
        self.verdicts.sort_unstable_by_key(|(at, _)| *at);
        self.verdicts
    }

    /// Presents a packet to the function at a place of the chain.
    pub(super) fn visit(
        &mut self,
        link: &dyn LinkStage,
        function: usize,
        at: usize,
        packet: &mut Packet<'_>,
    ) {
        let (now, shard) = (packet.arrived(), packet.info().shard);
        let of_shard = self.shards.get_mut::<ChainShard<DynamicShard>>(shard);
        let Some(ChainShard { state: of_shard, .. }) = of_shard else { return };
        let before = self.outbox.mark();
        // There is no flow to ask anything for.
        let requests = &mut Requests::default();
        let (outbox, pool) = (&mut *self.outbox, &mut *self.pool);
        let scope = &mut Scope { now, shard, requests, outbox, pool, flows: None };
        let outcome = link.visit(of_shard.of(function), scope, packet, &mut Visit::NonFlow);
        match last(outcome, packet.side()) {
            Ok(Verdict::Forward) => {}
            Ok(verdict) => {
                let goes_on = matches!(verdict, Verdict::Send(_) | Verdict::Flood(_));
                self.stopped |= u16::from(!goes_on) << at;
                self.set(at, verdict);
            }
            Err(_) => {
                self.outbox.go_back_to(before, self.pool);
                self.stopped |= 1 << at;
                self.set(at, Verdict::Drop(DropReason::HandlerAbort));
            }
        }
    }

    fn set(&mut self, at: usize, verdict: Verdict) {
        match self.verdicts.iter_mut().find(|(of, _)| *of == at) {
            Some((_, earlier)) => *earlier = verdict,
            None => self.verdicts.push((at, verdict)),
        }
    }
}

/// The verdict of a function without flows, as that of the chain.
fn last(outcome: Outcome<Verdict>, side: Side) -> Outcome<Verdict> {
    match outcome? {
        Verdict::Restart => Err(rheostat_state::txn::Abort),
        Verdict::Hairpin if side == Side::Outside => Err(rheostat_state::txn::Abort),
        verdict => Ok(verdict),
    }
}
