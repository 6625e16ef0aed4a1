//! Which lane owns each shard, as far as one lane knows, and what it waits for before it releases one.

use rheostat_base::{LaneId, ShardId};

use super::Watermark;

/// What a lane does with a packet of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The shard is here: it processes the packet.
    Local,
    /// The shard is on its way here: it holds the packet until then.
    Incoming,
    /// The shard is this other lane's, which gets the packet.
    Remote(LaneId),
}

/// Stands for the owner of a shard that is on its way here.
const INCOMING: LaneId = LaneId(u16::MAX);

/// One lane's part in the moving of shards. A state machine: commands and messages go in, and what the
/// lane is to do comes out.
#[derive(Debug)]
pub(crate) struct Ownership {
    me: LaneId,
    /// Per shard, so that one comparison with `me` decides about most packets.
    owners: Vec<LaneId>,
    /// Where shards have several owners: per shard, the one in which its fragments meet. Else empty.
    homes: Vec<LaneId>,
    /// Per shard, lanes that have said they hand its packets to its next owner.
    redirected: Vec<u16>,
    /// Per shard, whether it is on its way here, or will be.
    expected: Vec<bool>,
    /// Per shard, lanes that have yet to say that they have taken what its former owner had handed to them.
    pending_acks: Vec<u16>,
    /// Per shard, whether it was here and was released.
    released: Vec<bool>,
    releases: Vec<Release>,
    here: usize,
    arriving: usize,
    /// Shards redirected so far, this lane's own included. All lanes redirect them in the migrator's order, so that lanes that
    /// have redirected equally many know the same owners.
    ownership_epoch: u64,
}

/// A shard that is to be released.
#[derive(Debug)]
struct Release {
    shard: ShardId,
    to: LaneId,
    /// How many lanes must have redirected.
    redirects: u16,
    watermark: Watermark,
}

impl Ownership {
    /// What lane `me` knows when the shards belong to `owners`.
    pub(crate) fn new(me: LaneId, owners: Vec<LaneId>) -> Ownership {
        Ownership {
            me,
            here: owners.iter().filter(|owner| **owner == me).count(),
            redirected: vec![0; owners.len()],
            expected: vec![false; owners.len()],
            pending_acks: vec![0; owners.len()],
            released: vec![false; owners.len()],
            owners,
            homes: Vec::new(),
            releases: Vec::new(),
            arriving: 0,
            ownership_epoch: 0,
        }
    }

    /// The same where these lanes own their shards together.
    pub(crate) fn with_claimants(mut self, claimants: Vec<LaneId>) -> Ownership {
        if claimants.is_empty() {
            return self;
        }
        self.homes.clone_from(&self.owners);
        for owner in self.owners.iter_mut().filter(|owner| claimants.contains(owner)) {
            *owner = self.me;
        }
        self.here = self.owners.iter().filter(|owner| **owner == self.me).count();
        self
    }

    /// The owners of all shards, as far as the lane knows them; of joint ones, their homes.
    pub(crate) fn owners(&self) -> &[LaneId] {
        if self.homes.is_empty() { &self.owners } else { &self.homes }
    }

    /// The lane in which fragments of a joint shard meet; none for a shard that has one owner.
    pub(crate) fn home(&self, shard: ShardId) -> Option<LaneId> {
        self.homes.get(shard.index()).copied()
    }

    /// What to do with a packet of `shard`.
    #[inline(always)]
    pub(crate) fn place(&self, shard: ShardId) -> Place {
        match self.owners[shard.index()] {
            owner if owner == self.me => Place::Local,
            INCOMING => Place::Incoming,
            owner => Place::Remote(owner),
        }
    }

    /// The lane that processes packets of `shard`, as far as this one knows.
    pub(crate) fn destination(&self, shard: ShardId) -> LaneId {
        match self.place(shard) {
            Place::Local | Place::Incoming => self.me,
            Place::Remote(owner) => owner,
        }
    }

    /// Whether the lane has neither shards nor the prospect of one.
    pub(crate) fn is_parked(&self) -> bool {
        self.here == 0 && self.arriving == 0
    }

    /// Whether devices that placed a packet of `shard` here did so by an old table.
    pub(crate) fn was_released(&self, shard: ShardId) -> bool {
        self.released[shard.index()]
    }

    /// Whether what devices place here by the shard's buckets has to wait for it.
    pub(crate) fn is_expected(&self, shard: ShardId) -> bool {
        self.expected[shard.index()]
    }

    /// The shard will come here, and so many lanes will say that they have taken what its owner had handed to
    /// them. What comes by its buckets waits from now on; its other packets go to its owner until all lanes switch.
    pub(crate) fn expect(&mut self, shard: ShardId, pending_acks: u16) {
        debug_assert!(matches!(self.place(shard), Place::Remote(_)), "{shard} is here already");
        self.expected[shard.index()] = true;
        self.pending_acks[shard.index()] = pending_acks;
        self.released[shard.index()] = false;
        self.arriving += 1;
    }

    /// Another lane has taken what the shard's former owner had handed to it.
    pub(crate) fn note_drained(&mut self, shard: ShardId) {
        self.pending_acks[shard.index()] -= 1;
    }

    /// Whether the shard may be put in its place once it has come from a lane that had redirected `ownership_epoch` shards.
    /// Packets that came by its buckets, and belong to another shard, then go to where this lane thinks that is. Older
    /// ones went to where its former owner thought it was, so:
    ///
    /// - every lane has taken what the former owner handed to it,
    /// - this lane knows at least what that one knew,
    /// - and it has no shard of which others think that it is elsewhere.
    pub(crate) fn may_arrive(&self, shard: ShardId, ownership_epoch: u64) -> bool {
        self.pending_acks[shard.index()] == 0
            && self.ownership_epoch >= ownership_epoch
            && self.redirected.iter().all(|redirected| *redirected == 0)
    }

    /// Shards redirected so far.
    pub(crate) fn ownership_epoch(&self) -> u64 {
        self.ownership_epoch
    }

    /// The shard has come.
    ///
    /// # Panics
    /// When it was not expected: then two lanes would have it.
    pub(crate) fn arrive(&mut self, shard: ShardId) {
        assert_eq!(self.place(shard), Place::Incoming, "{shard} comes to a lane that awaits it");
        self.owners[shard.index()] = self.me;
        self.expected[shard.index()] = false;
        self.arriving -= 1;
        self.here += 1;
    }

    /// The shard goes from another lane to `to`, which may be this one. The lane now reports to its owner that it has
    /// redirected.
    pub(crate) fn redirect(&mut self, shard: ShardId, to: LaneId) {
        debug_assert!(matches!(self.place(shard), Place::Remote(_)), "{shard} is here");
        debug_assert_eq!(to == self.me, self.is_expected(shard), "{shard} comes unexpected");
        self.owners[shard.index()] = if to == self.me { INCOMING } else { to };
        self.ownership_epoch += 1;
    }

    /// The shard is to go to lane `to` once `redirects` lanes have said that they have redirected, and the
    /// watermark has been passed.
    pub(crate) fn release(
        &mut self,
        shard: ShardId,
        to: LaneId,
        redirects: u16,
        watermark: Watermark,
    ) {
        debug_assert_eq!(self.place(shard), Place::Local, "{shard} is not here to be released");
        self.releases.push(Release { shard, to, redirects, watermark });
        self.ownership_epoch += 1;
    }

    /// Whether the shard is here to be released.
    pub(crate) fn is_releasing(&self, shard: ShardId) -> bool {
        self.releases.iter().any(|release| release.shard == shard)
    }

    /// Another lane hands packets of the shard to its next owner from now on; all before were taken.
    /// The word may come before the command to release the shard.
    pub(crate) fn note_redirected(&mut self, shard: ShardId) {
        self.redirected[shard.index()] += 1;
    }

    /// A shard that may now be released, and its new owner, which it belongs to from here on. `is_done_with` reports
    /// whether all packets of the shard that waited at a watermark have been processed to the end.
    pub(crate) fn next_due(
        &mut self,
        mut is_done_with: impl FnMut(ShardId, &Watermark) -> bool,
    ) -> Option<(ShardId, LaneId)> {
        let due = self.releases.iter().position(|release| {
            let redirected = self.redirected[release.shard.index()];
            redirected >= release.redirects && is_done_with(release.shard, &release.watermark)
        })?;
        let Release { shard, to, redirects, .. } = self.releases.swap_remove(due);
        self.redirected[shard.index()] -= redirects;
        self.owners[shard.index()] = to;
        self.released[shard.index()] = true;
        self.here -= 1;
        Some((shard, to))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const S: ShardId = ShardId(0);
    const A: LaneId = LaneId(0);
    const B: LaneId = LaneId(1);

    fn lane(me: LaneId) -> Ownership {
        Ownership::new(me, vec![A, B])
    }

    #[test]
    fn a_shard_waits_for_every_lane_and_for_the_queues() {
        let mut a = lane(A);
        // One lane is faster than the migrator.
        a.note_redirected(S);
        a.release(S, B, 2, Watermark::default());
        assert_eq!(a.next_due(|_, _| true), None);
        a.note_redirected(S);
        assert_eq!(a.next_due(|_, _| false), None);
        assert_eq!(a.place(S), Place::Local);
        assert_eq!(a.next_due(|_, _| true), Some((S, B)));
        assert_eq!((a.place(S), a.was_released(S)), (Place::Remote(B), true));
        assert!(a.is_parked());
    }

    #[test]
    fn a_shard_that_comes_back_waits_anew() {
        let mut a = lane(A);
        a.note_redirected(S);
        a.release(S, B, 1, Watermark::default());
        assert_eq!(a.next_due(|_, _| true), Some((S, B)));
        a.expect(S, 0);
        // What does not come by its buckets still goes to its owner.
        assert_eq!((a.place(S), a.is_expected(S)), (Place::Remote(B), true));
        assert_eq!((a.is_parked(), a.was_released(S)), (false, false));
        a.redirect(S, A);
        assert_eq!(a.place(S), Place::Incoming);
        a.arrive(S);
        assert_eq!((a.place(S), a.is_expected(S)), (Place::Local, false));
        a.release(S, B, 1, Watermark::default());
        assert_eq!(a.next_due(|_, _| true), None);
    }

    #[test]
    fn a_shard_waits_for_what_its_owner_knew() {
        let other = ShardId(1);
        let mut b = lane(B);
        b.expect(S, 1);
        b.redirect(S, B);
        assert!(!b.may_arrive(S, 1), "a lane has yet to take what it was handed");
        b.note_drained(S);
        assert!(b.may_arrive(S, 1));
        assert!(!b.may_arrive(S, 2), "the former owner knew of one more shard that moves");
        b.release(other, A, 1, Watermark::default());
        assert!(b.may_arrive(S, 2));
        b.note_redirected(other);
        assert!(!b.may_arrive(S, 2), "others hold packets for a shard that is still here");
        assert_eq!(b.next_due(|_, _| true), Some((other, A)));
        assert!(b.may_arrive(S, 2));
    }

    #[test]
    fn other_lanes_only_redirect() {
        let mut c = lane(LaneId(2));
        assert_eq!(c.place(S), Place::Remote(A));
        c.redirect(S, B);
        assert_eq!((c.place(S), c.was_released(S)), (Place::Remote(B), false));
    }

    #[test]
    #[should_panic(expected = "shard 0 comes to a lane that awaits it")]
    fn a_shard_comes_to_no_lane_unawaited() {
        lane(B).arrive(S);
    }
}
