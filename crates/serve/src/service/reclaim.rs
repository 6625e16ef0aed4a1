//! Ends connections where memory is scarce, the one with the most bytes first.
//!
//! | memory of a shard, or in total | ends | until |
//! |---|---|---|
//! | under pressure | connections that moved less than an eighth of the bytes that they hold in [`SPAN`] | it is not under pressure |
//! | beyond the limit | at once also those for which the program holds more than [`IN_TURN`] | it is not beyond the limit |
//!
//! So neither a peer that does not read, nor one that reads or sends a byte at a time, keeps others out.
//!
//! A lane goes through its shards in rounds, a few connections at a time ([`VISITS`]), and ends what has to end behind each round. It
//! publishes its largest connection in the round before, so that the largest of all lanes ends and not one of each.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use rheostat_base::{ShardId, Time};
use rheostat_run::{Output, ShardSet};

use super::TcpService;
use super::notes::Cause;
use super::rounds::Visited;
use crate::connections::{ConnectionId, Connections, Found};
use crate::driver::Driver;

/// For how long the progress of a connection is measured: longer than a few retransmissions of a slow path.
const SPAN: Duration = Duration::from_secs(2);
/// Bytes that the program may hold for a connection whatever the limit: what it is in the middle of.
const IN_TURN: usize = 128 << 10;
/// Between rounds under pressure, between rounds beyond the limit, and between the parts of a round.
const PERIOD: Duration = Duration::from_millis(100);
const URGENT: Duration = Duration::from_millis(10);
const BREATH: Duration = Duration::from_millis(1);
/// Connections after which packets have their turn, if those of a shard are no more: some 50 us.
const VISITS: usize = 512;
/// Connections of a shard that one round ends at most.
const ROW: usize = 64;

/// What a lane knows of the scarcity at hand.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    next_look: Time,
    /// Shards that the round has not come to.
    left: Vec<ShardId>,
    is_scarce: bool,
    is_exceeded: bool,
    /// Connections found in the round that may end.
    candidates: Vec<Candidate>,
    /// How far connections were, by shard.
    marks: HashMap<ShardId, Marks>,
    /// Whether the round before has published a connection.
    has_published: bool,
    /// Rounds in a row that left it to another lane, which may be busy, to end a larger connection. Each halves the difference that
    /// counts.
    deferrals: u32,
}

/// A connection that may end.
#[derive(Debug)]
struct Candidate {
    bytes: usize,
    id: ConnectionId,
    is_slow: bool,
}

/// How far the connections of a shard were.
#[derive(Debug)]
struct Marks {
    at: Time,
    /// In the order of slots.
    marks: Vec<Mark>,
}

/// How far a connection was.
#[derive(Clone, Copy, Debug)]
struct Mark {
    id: ConnectionId,
    /// Bytes moved by then, modulo 2^32.
    moved: u32,
    /// Whether it had moved too few bytes since the mark before.
    is_slow: bool,
}

impl Reclaim {
    /// When to look while memory is scarce.
    #[inline]
    pub(super) fn next_look(&self) -> Time {
        self.next_look
    }

    /// Begins a round through these shards.
    fn begin_round(&mut self, shards: impl Iterator<Item = ShardId>) {
        self.left.extend(shards);
        (self.is_scarce, self.is_exceeded) = (false, false);
    }

    /// Looks at the connections of a shard that is short of memory.
    fn look_at<S: Send + 'static>(&mut self, connections: &mut Connections<S>, now: Time) {
        let is_exceeded = connections.memory().is_exceeded();
        (self.is_scarce, self.is_exceeded) = (true, self.is_exceeded | is_exceeded);
        let known = self.marks.remove(&connections.shard());
        let is_due = known.as_ref().is_none_or(|known| now >= known.at + SPAN);
        let (first, mut marks) = (self.candidates.len(), Vec::new());
        for slot in connections.live_slots().collect::<Vec<_>>() {
            let id = connections.id(slot);
            let Found::Live(_, entry) = connections.get(slot) else { continue };
            let (bytes, moved) = (entry.bytes(), entry.tcp.moved());
            if bytes == 0 {
                continue;
            }
            let mark = known.as_ref().and_then(|known| known.of(id));
            let is_slow = mark.is_some_and(|mark| {
                let is_slow = (moved.wrapping_sub(mark.moved) as usize) < bytes.div_ceil(8);
                is_slow && (is_due || mark.is_slow)
            });
            if is_due {
                marks.push(Mark { id, moved, is_slow });
            }
            if is_slow || is_exceeded && entry.charged > IN_TURN {
                self.candidates.push(Candidate { bytes, id, is_slow });
            }
        }
        self.candidates[first..].sort_unstable_by_key(|candidate| Reverse(candidate.bytes));
        self.candidates.truncate(first + ROW);
        let marks = if is_due { Some(Marks { at: now, marks }) } else { known };
        self.marks.extend(marks.map(|marks| (connections.shard(), marks)));
    }
}

impl Marks {
    fn of(&self, id: ConnectionId) -> Option<Mark> {
        let place = self.marks.binary_search_by_key(&id.slot, |mark| mark.id.slot).ok()?;
        Some(self.marks[place]).filter(|mark| mark.id == id)
    }
}

impl<D: Driver> TcpService<D> {
    /// Goes on with a round, and ends what has to end behind it.
    #[cold]
    pub(super) fn reclaim(&mut self, shards: &mut ShardSet, out: &mut Output) {
        let now = out.now();
        self.noted.begin_without_packet(Cause::Memory);
        if self.reclaim.left.is_empty() {
            self.reclaim.begin_round(shards.looked_after());
        }
        let mut visits = 0;
        while visits < VISITS
            && let Some(id) = self.reclaim.left.pop()
        {
            self.visit(id, shards, out, |service, connections, _| {
                if connections.memory().is_under_pressure() {
                    visits += connections.live();
                    service.reclaim.look_at(connections, now);
                }
            });
        }
        if !self.reclaim.left.is_empty() {
            self.reclaim.next_look = now + BREATH;
            return;
        }
        self.end_round(shards, out);
        if !self.reclaim.is_scarce && !self.shared.budget.memory().is_under_pressure() {
            self.shared.scarcity.end(self.lane);
            self.reclaim = Reclaim::default();
        }
        self.reclaim.next_look = now + if self.reclaim.is_exceeded { URGENT } else { PERIOD };
    }

    /// Ends connections that the round has found.
    fn end_round(&mut self, shards: &mut ShardSet, out: &mut Output) {
        let mut candidates = std::mem::take(&mut self.reclaim.candidates);
        candidates.sort_unstable_by_key(|candidate| Reverse(candidate.bytes));
        if self.reclaim.has_published {
            let elsewhere = self.shared.scarcity.largest_elsewhere(self.lane);
            let least = elsewhere.checked_shr(self.reclaim.deferrals).unwrap_or(0);
            let found = candidates.len();
            candidates.retain(|candidate| {
                candidate.bytes < least || !self.end_for_memory(candidate, shards, out)
            });
            let has_deferred = !candidates.is_empty() && candidates.len() == found;
            self.reclaim.deferrals = if has_deferred { self.reclaim.deferrals + 1 } else { 0 };
        }
        let largest = candidates.first().map_or(0, |candidate| candidate.bytes);
        self.shared.scarcity.set_largest(self.lane, largest);
        self.reclaim.has_published = largest > 0;
    }

    /// Resets a connection, if memory is still scarce; returns whether it was.
    fn end_for_memory(
        &mut self,
        candidate: &Candidate,
        shards: &mut ShardSet,
        out: &mut Output,
    ) -> bool {
        let id = candidate.id;
        let visited = self.visit(id.shard, shards, out, |service, connections, out| {
            let memory = connections.memory();
            let is_short = candidate.is_slow && memory.is_under_pressure();
            if !is_short && !memory.is_exceeded() {
                return false;
            }
            let Some(entry) = connections.live_mut(id) else { return false };
            D::abort(entry);
            service.counters.memory_closed.increment();
            service.advance(id.slot, None, connections, out);
            true
        });
        visited == Visited::Done(true)
    }
}
