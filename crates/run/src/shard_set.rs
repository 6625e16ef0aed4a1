//! The shards a lane owns.

use rheostat_base::ShardId;
use rheostat_state::{FlowHash, PrefetchHint, Probe, Shard};

use crate::lane::PacketInfo;

/// One place per shard of the run; the places of shards that other lanes own are empty. A shard is in
/// exactly one lane's set, because it is a value.
#[derive(Debug)]
pub struct ShardSet {
    shards: Vec<Option<Box<Shard>>>,
    /// Where the tables of owned shards are, in few lines, so that what packets will need is requested without a look at the
    /// tables themselves.
    hints: Vec<Option<PrefetchHint>>,
}

impl ShardSet {
    /// A set with room for `count` shards that owns none.
    pub fn new(count: usize) -> ShardSet {
        ShardSet { shards: (0..count).map(|_| None).collect(), hints: vec![None; count] }
    }

    /// Takes a shard into the set.
    pub fn install(&mut self, shard: Box<Shard>) {
        let place = &mut self.shards[shard.id.index()];
        assert!(place.is_none(), "{} is already here", shard.id);
        self.hints[shard.id.index()] = Some(shard.table.prefetch_hint());
        *place = Some(shard);
    }

    /// Takes a shard out of the set, if it is there.
    pub fn remove(&mut self, id: ShardId) -> Option<Box<Shard>> {
        *self.hints.get_mut(id.index())? = None;
        self.shards[id.index()].take()
    }

    /// The shard, if this lane owns it.
    #[inline]
    pub fn get(&self, id: ShardId) -> Option<&Shard> {
        self.shards.get(id.index())?.as_deref()
    }

    /// Asks the processor to fetch the first line of a shard's flow table, and that of its index where `hash` leads, if this
    /// lane owns the shard.
    #[inline]
    pub fn prefetch(&self, id: ShardId, hash: FlowHash) {
        if let Some(hint) = self.prefetch_hint(id) {
            hint.prefetch(hash);
        }
    }

    /// Where the flow of a packet may be, which has a key, and asks the processor to fetch that entry.
    #[inline(always)]
    pub(crate) fn probe(&self, info: &PacketInfo) -> Probe {
        match self.get(info.shard) {
            Some(shard) => shard.table.probe(info.hash, info.family()),
            None => Probe::NONE,
        }
    }

    /// Where a shard's flow table is, if this lane owns the shard.
    #[inline(always)]
    pub(crate) fn prefetch_hint(&self, id: ShardId) -> Option<PrefetchHint> {
        *self.hints.get(id.index())?
    }

    /// The shard to change, if this lane owns it.
    #[inline]
    pub fn get_mut(&mut self, id: ShardId) -> Option<&mut Shard> {
        self.shards.get_mut(id.index())?.as_deref_mut()
    }

    /// The shards owned, in the order of their numbers.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Shard> {
        self.shards.iter_mut().filter_map(Option::as_deref_mut)
    }

    /// The shards owned, in the order of their numbers, to read.
    pub fn iter(&self) -> impl Iterator<Item = &Shard> {
        self.shards.iter().filter_map(Option::as_deref)
    }

    /// The numbers of the shards owned.
    pub fn owned(&self) -> impl Iterator<Item = ShardId> {
        self.shards.iter().flatten().map(|shard| shard.id)
    }

    /// The first owned shard from `from` on, going round; for work that visits one shard at a time.
    pub fn next_owned(&self, from: ShardId) -> Option<ShardId> {
        let count = self.shards.len();
        (0..count)
            .map(|step| (from.index() + step) % count)
            .find(|&index| self.shards[index].is_some())
            .map(|index| ShardId(index as u16))
    }
}
