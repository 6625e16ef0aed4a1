//! One walk through the shards of a run: what is looked for, how far each shard has been looked at, and the records that wait for
//! the client.
//!
//! How far a shard was looked at is kept beside the shard, and changed by the lane alone that has the shard at the time. A shard that
//! moves goes on where it was. Entries of a table keep their numbers as long as their flows live, so that a flow that lives all the
//! while is met exactly once.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use rheostat_base::{LaneId, ShardId};
use rheostat_packet::FlowKey;

use super::record::Record;

/// Records that wait for a client at most, of all lanes together: about 4 MB.
pub const MOST_WAITING: usize = 4_096;

/// What is done with the flows that are met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Flows are listed.
    Flows,
    /// Flows are counted, and not listed.
    FlowCount,
    /// Flows are ended, as a time-out ends them.
    Deletion,
    /// The entries that the function with this name has in tables of its own are listed.
    Entries(String),
}

/// Decides about a flow by its two keys.
pub type FlowFilter = dyn Fn(&FlowKey, Option<&FlowKey>) -> bool + Send + Sync;

/// A place in a walk that goes through the shards in order: the next thing to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkPlace {
    /// The shard.
    pub shard: ShardId,
    /// The number of the entry in it.
    pub entry: u32,
}

/// What a client looks for.
pub struct WalkRequest {
    /// What is done.
    pub subject: Subject,
    /// Which flows are meant; all without one.
    pub filter: Option<Box<FlowFilter>>,
    /// On this lane alone.
    pub lane: Option<LaneId>,
    /// In this shard alone.
    pub shard: Option<ShardId>,
    /// So many at most. The walk goes through the shards in order then, and has a place where it can be gone on with.
    pub most: Option<u64>,
    /// Where it begins, for a walk in order.
    pub from: Option<WalkPlace>,
}

impl WalkRequest {
    /// All of this subject.
    pub fn of(subject: Subject) -> WalkRequest {
        WalkRequest { subject, filter: None, lane: None, shard: None, most: None, from: None }
    }
}

impl fmt::Debug for WalkRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WalkRequest").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// How far a shard was looked at that has been looked at as a whole.
const DONE: u32 = u32::MAX;
/// No place.
const NOWHERE: u64 = u64::MAX;

/// A walk, as lanes see it.
#[derive(Debug)]
pub struct Walk {
    request: WalkRequest,
    /// By shard, the number of the next entry, and that behind the last one.
    next: Box<[Progress]>,
    ends: Box<[Progress]>,
    /// Shards that were not looked at as a whole, and one more while what all shards have together is not listed.
    left: AtomicUsize,
    /// The shard whose turn it is, in a walk in order.
    turn: AtomicUsize,
    /// Flows and entries met that are meant.
    matched: AtomicU64,
    /// Where a walk that has met as many as were wanted can be gone on with.
    stopped_at: AtomicU64,
    has_shared: AtomicBool,
    is_over: AtomicBool,
    /// By lane, what it has to send.
    queues: Box<[Mutex<Vec<Record>>]>,
}

/// The number of the next entry of a shard. Relaxed throughout: the lane that has the shard reads and writes it, and the next lane
/// gets the shard through memory that orders this, too.
#[derive(Debug)]
struct Progress(std::sync::atomic::AtomicU32);

impl Walk {
    pub(super) fn new(request: WalkRequest, lanes: usize, shards: usize) -> Walk {
        let WalkPlace { shard: first, entry } =
            request.from.unwrap_or(WalkPlace { shard: ShardId(0), entry: 0 });
        let wants = |id: ShardId| id >= first && request.shard.is_none_or(|shard| shard == id);
        let start = |number: usize| {
            let id = ShardId(number as u16);
            let next = match wants(id) {
                true if id == first => entry.min(DONE - 1),
                true => 0,
                false => DONE,
            };
            Progress(next.into())
        };
        let next: Box<[Progress]> = (0..shards).map(start).collect();
        let has_shared = matches!(request.subject, Subject::Entries(_)) && request.from.is_none();
        let left = next.iter().filter(|next| next.get() != DONE).count() + usize::from(has_shared);
        let walk = Walk {
            turn: AtomicUsize::new(0),
            left: AtomicUsize::new(left),
            next,
            ends: (0..shards).map(|_| Progress(DONE.into())).collect(),
            matched: AtomicU64::new(0),
            stopped_at: AtomicU64::new(NOWHERE),
            has_shared: AtomicBool::new(!has_shared),
            is_over: AtomicBool::new(request.most == Some(0)),
            queues: (0..lanes).map(|_| Mutex::default()).collect(),
            request,
        };
        walk.pass_turn();
        walk
    }

    /// What is done.
    pub fn subject(&self) -> &Subject {
        &self.request.subject
    }

    /// Whether a flow with these keys is meant.
    #[inline]
    pub fn admits(&self, key: &FlowKey, alias: Option<&FlowKey>) -> bool {
        self.request.filter.as_ref().is_none_or(|filter| filter(key, alias))
    }

    /// Whether what a lane has is meant.
    pub fn admits_lane(&self, lane: LaneId) -> bool {
        self.request.lane.is_none_or(|wanted| wanted == lane)
    }

    /// Whether nobody waits for more of it.
    pub fn is_over(&self) -> bool {
        // Relaxed: it publishes nothing.
        self.is_over.load(Ordering::Relaxed) || self.left.load(Ordering::Relaxed) == 0
    }

    /// Whether the shard is still to be looked at, now. Called by the lane that has the shard, as all that take one.
    pub fn wants(&self, shard: ShardId) -> bool {
        let is_left = self.next.get(shard.index()).is_some_and(|next| next.get() != DONE);
        let has_turn =
            || self.request.most.is_none() || self.turn.load(Ordering::Acquire) == shard.index();
        is_left && has_turn()
    }

    /// The number of the shard's next entry.
    pub fn next(&self, shard: ShardId) -> u32 {
        self.next[shard.index()].get()
    }

    /// The number behind the last entry of the shard that is looked at: `end` as it was when the walk first came to the shard. Flows
    /// that begin later are not met, so that a walk ends however fast they come.
    pub fn bound(&self, shard: ShardId, end: u32) -> u32 {
        let first = &self.ends[shard.index()];
        if first.get() == DONE {
            first.0.store(end, Ordering::Relaxed);
        }
        first.get()
    }

    /// How many more are wanted.
    pub fn wanted(&self) -> u64 {
        self.request
            .most
            .map_or(u64::MAX, |most| most.saturating_sub(self.matched.load(Ordering::Relaxed)))
    }

    /// So many more were met that are meant, up to entry `next` of the shard; with `None`, up to its end. They have been sent.
    pub fn note(&self, shard: ShardId, matched: u64, next: Option<u32>) {
        let matched = self.matched.fetch_add(matched, Ordering::Relaxed) + matched;
        let place = next.filter(|next| *next != DONE);
        self.next[shard.index()].0.store(place.unwrap_or(DONE), Ordering::Relaxed);
        if place.is_none() && self.request.most.is_some() {
            self.pass_turn();
        }
        if self.request.most.is_some_and(|most| matched >= most) {
            let stop = match place {
                Some(entry) => Some(WalkPlace { shard, entry }),
                None => self.first_left().map(|shard| WalkPlace { shard, entry: self.next(shard) }),
            };
            let packed =
                stop.map_or(NOWHERE, |stop| u64::from(stop.shard.0) << 32 | u64::from(stop.entry));
            self.stopped_at.store(packed, Ordering::Relaxed);
            // Release: the client reads the place once the walk is over.
            self.is_over.store(true, Ordering::Release);
        }
        if place.is_none() {
            // Release: whatever was sent is in a queue for the client that sees the last shard done.
            self.left.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether the lane is to list what all shards have together: the first that comes by is.
    pub fn takes_shared(&self) -> bool {
        !self.has_shared.load(Ordering::Relaxed) && !self.has_shared.swap(true, Ordering::Relaxed)
    }

    /// The lane could not list that: another is to, or the same one later.
    pub fn give_shared_back(&self) {
        self.has_shared.store(false, Ordering::Relaxed);
    }

    /// So many entries that all shards have together have been sent.
    pub fn note_shared(&self, matched: u64) {
        self.matched.fetch_add(matched, Ordering::Relaxed);
        // Release: as in `note`.
        self.left.fetch_sub(1, Ordering::AcqRel);
    }

    /// Has a lane add records to those that it has to send, as many as it is called with at most; `None` when there is no room
    /// until the client has read some, or the client reads at this moment.
    pub fn send<T>(
        &self,
        lane: LaneId,
        add: impl FnOnce(&mut Vec<Record>, usize) -> T,
    ) -> Option<T> {
        let mut queue = match self.queues.get(lane.index())?.try_lock() {
            Ok(queue) => queue,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let room = (MOST_WAITING / self.queues.len()).max(1).saturating_sub(queue.len());
        (room > 0).then(|| add(&mut queue, room))
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// What waits for the client.
    pub(super) fn take(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for queue in &self.queues {
            records.append(&mut queue.lock().unwrap_or_else(PoisonError::into_inner));
        }
        records
    }

    /// How far the walk is: what was met, shards left, and whether it has met as many as were wanted.
    pub(super) fn progress(&self) -> (u64, usize, bool) {
        let left = self.left.load(Ordering::Acquire);
        let is_over = self.is_over.load(Ordering::Acquire);
        (self.matched.load(Ordering::Relaxed), left, is_over)
    }

    /// A number that changes whenever a lane has looked at something.
    pub(super) fn stamp(&self) -> u64 {
        let entries = self.next.iter().map(|next| u64::from(next.get()));
        entries.fold(0, u64::wrapping_add)
    }

    pub(super) fn stopped_at(&self) -> Option<WalkPlace> {
        let packed = self.stopped_at.load(Ordering::Relaxed);
        (packed != NOWHERE)
            .then_some(WalkPlace { shard: ShardId((packed >> 32) as u16), entry: packed as u32 })
    }

    pub(super) fn missing(&self) -> Vec<ShardId> {
        let shards = self.next.iter().enumerate().filter(|(_, next)| next.get() != DONE);
        shards.map(|(shard, _)| ShardId(shard as u16)).collect()
    }

    fn first_left(&self) -> Option<ShardId> {
        let place = self.next.iter().position(|next| next.get() != DONE);
        place.map(|place| ShardId(place as u16))
    }

    /// Gives the first shard that is left its turn.
    fn pass_turn(&self) {
        let turn = self.first_left().map_or(usize::MAX, ShardId::index);
        // Release: the lane that has the shard sees what was met before.
        self.turn.store(turn, Ordering::Release);
    }
}

impl Progress {
    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}
