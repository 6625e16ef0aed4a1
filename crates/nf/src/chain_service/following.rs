//! A lane's part in the replacement of its chain ([`Succession`]): it sees by one load per burst that there is another chain, takes
//! it, and adapts the states of its shards before it works on any of them.
//!
//! No shard is ahead of its lane: a lane that gets a shard from another one compares behind that, and sees what that lane saw. One
//! that is behind is adapted when it arrives, or, if lanes share it, when it is entered. A lane that shares shards looks at those
//! that it has entered until each has had its turn once.
//!
//! [`Succession`]: rheostat_base::sync::succession::Succession

use rheostat_run::ShardSet;
use rheostat_state::Shard;

use super::ChainService;
use crate::chain::Chain;
use crate::chain_shard::ChainShard;

/// Turns that are left for the shards of a lane that has not begun to adapt them.
const ALL_TURNS: usize = usize::MAX;

impl<C: Chain> ChainService<C> {
    /// Takes the chain in force, if it is another one, and adapts the shards that are here.
    #[inline(always)]
    pub(super) fn keep_up(&mut self, shards: &mut ShardSet) {
        if self.follower.is_behind() {
            self.follow(shards);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn follow(&mut self, shards: &mut ShardSet) {
        self.take_next();
        if self.turns_left == ALL_TURNS {
            self.turns_left = if shards.is_joint() { shards.owned().count() } else { 0 };
        }
        shards.all_here_mut().for_each(|shard| self.adapt(shard));
        self.follower.confirm();
        if self.turns_left == 0 {
            self.follower.settle();
        }
    }

    /// Takes the chain in force for flows of other lanes, which may be ahead; the lane's own shards are adapted before it works on
    /// them.
    #[inline(always)]
    pub(super) fn keep_up_with_guests(&mut self) {
        if self.follower.is_behind() {
            self.take_next();
        }
    }

    /// Takes the chain in force, if it is another one.
    #[cold]
    fn take_next(&mut self) {
        if let Some(next) = self.follower.take_next() {
            self.spec = next.spec();
            self.chain = next;
            self.turns_left = ALL_TURNS;
        }
    }

    /// Adapts a shard to the lane's chain, unless it is.
    pub(super) fn adapt(&self, shard: &mut Shard) {
        let (_, local) = shard.split::<ChainShard<C::Shard>>();
        local.follow(&*self.chain, self.follower.generation());
    }

    /// A shard has had its turn, and so is adapted to the lane's chain.
    #[inline]
    pub(super) fn note_turn(&mut self) {
        self.turns_left = self.turns_left.saturating_sub(1);
    }
}
