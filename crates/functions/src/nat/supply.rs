//! Where ports come from when others had them before, and what shows that they are free.

use rheostat_base::Time;

use super::Nat;
use super::bind::Request;
use super::choice::{Look, Suitable};
use super::flow::FlowState;
use super::rank_set::RankSet;
use super::shard::NatShard;
use rheostat_nf::Seen;

/// Ports whose connections are over that are looked at for one that a SYN proves to be free.
const LOOKS: usize = 64;

/// Where ports come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Supply {
    /// They belong to no host.
    Free,
    /// Their connections are over.
    Spent,
    /// Their flows were not answered.
    Waiting,
}

/// Best first.
pub(super) const SUPPLIES: [Supply; 3] = [Supply::Free, Supply::Spent, Supply::Waiting];

/// Whether a port can serve a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// The connection cannot be taken for the one that the port has served.
    Given,
    /// Nothing shows it, but the port was not used since then.
    UnusedSince(Time),
}

impl Nat {
    /// Counts where a port came from.
    pub(super) fn count_supply(shard: &mut NatShard, supply: Supply) {
        shard.counts.reused += u64::from(supply == Supply::Spent);
        shard.counts.taken += u64::from(supply == Supply::Waiting);
    }

    /// One of the ports that others need no more: the first of those looked at for which there is proof, else
    /// the one of them that was not used for the longest time.
    pub(super) fn spent(
        &self,
        suitable: &Suitable,
        spent: &RankSet,
        rng: &mut impl rand::Rng,
        proof: impl Fn(usize) -> Proof,
    ) -> Option<usize> {
        let mut oldest: Option<(Time, usize)> = None;
        let proven = suitable.some_of(spent, rng, LOOKS, |rank| match proof(rank) {
            Proof::Given => Look::Taken,
            Proof::UnusedSince(time) => {
                let found = (time, rank);
                oldest = Some(oldest.map_or(found, |known| known.min(found)));
                Look::Next
            }
        });
        proven.or(oldest.map(|(_, rank)| rank))
    }

    /// What shows that a port is free for a request, given the flow that had it towards the same remote
    /// endpoint.
    pub(super) fn proof(&self, seen: &Seen<'_, FlowState>, request: &Request) -> Proof {
        let closing = &seen.state.closing;
        let is_proven = closing.is_over()
            && request.opening.is_some_and(|opening| closing.is_outlived_by(opening));
        match is_proven {
            true => Proof::Given,
            false => Proof::UnusedSince(seen.deadline - self.rules.config.timeouts.tcp_time_wait),
        }
    }
}
