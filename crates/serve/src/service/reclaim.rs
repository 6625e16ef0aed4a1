//! Ends connections where memory is scarce, the one with the most bytes first.
//!
//! | memory of a shard, or in total | ends | until |
//! |---|---|---|
//! | under pressure | connections on which nothing has moved for [`STALLED`] | it is not under pressure |
//! | beyond the limit | also others for which the program holds more than [`IN_TURN`] | it is not beyond the limit |
//!
//! A look costs a visit of each connection in the shards that are short, and happens at most once in [`PERIOD`], or [`URGENT`] beyond
//! the limit. Lanes publish their largest first, so that the largest of all ends and not one of each lane.

use std::time::Duration;

use rheostat_base::Time;
use rheostat_run::{Output, ShardSet};

use super::TcpService;
use super::notes::Cause;
use super::rounds::Visited;
use crate::connections::{ConnectionId, Connections, Found};
use crate::driver::Driver;

/// How long nothing moves on a connection that ends under pressure: longer than a few retransmissions of a slow path.
const STALLED: Duration = Duration::from_secs(2);
/// Bytes that the program may hold for a connection whatever the limit: what it is in the middle of.
const IN_TURN: usize = 128 << 10;
/// How often a lane looks under pressure.
const PERIOD: Duration = Duration::from_millis(100);
/// How much longer a lane waits before it ends one: the other lanes have looked meanwhile, and published larger ones.
const MARGIN: Duration = Duration::from_millis(200);
/// How often it looks beyond the limit.
const URGENT: Duration = Duration::from_millis(10);
/// Connections of a shard that one look considers.
const ROW: usize = 64;

/// What a lane knows of the scarcity at hand.
#[derive(Debug, Default)]
pub(super) struct Reclaim {
    next_look: Time,
    /// The scarcity for which the lane has published its largest connection.
    published: u64,
    /// Looks in a row that left it to another lane, which may be busy, to end a larger connection. Each halves the difference that
    /// counts.
    deferrals: u32,
}

/// A connection that may end.
struct Candidate {
    bytes: usize,
    id: ConnectionId,
    /// Whether nothing has moved on it for so long that it ends under pressure.
    is_stalled: bool,
    /// Whether it ends now, and not only when other lanes have looked, too.
    is_due: bool,
}

impl Reclaim {
    /// When to look while memory is scarce.
    #[inline]
    pub(super) fn next_look(&self) -> Time {
        self.next_look
    }
}

impl<D: Driver> TcpService<D> {
    /// Ends what has to end for now.
    #[cold]
    pub(super) fn reclaim(&mut self, shards: &mut ShardSet, out: &mut Output) {
        let now = out.now();
        self.noted.begin_without_packet(Cause::Memory);
        let mut candidates = Vec::new();
        let total = self.shared.budget.memory();
        let (mut is_scarce, mut is_exceeded) = (total.is_under_pressure(), total.is_exceeded());
        let round = self.take_round(shards);
        for &id in &round {
            self.visit(id, shards, out, |_, connections, _| {
                if connections.memory().is_under_pressure() {
                    is_scarce = true;
                    is_exceeded |= connections.memory().is_exceeded();
                    find(connections, now, &mut candidates);
                }
            });
        }
        self.round = round;
        candidates.sort_unstable_by_key(|candidate| std::cmp::Reverse(candidate.bytes));
        let scarcity = self.shared.scarcity.number();
        if std::mem::replace(&mut self.reclaim.published, scarcity) == scarcity {
            let elsewhere = self.shared.scarcity.largest_elsewhere(self.lane);
            let least = elsewhere.checked_shr(self.reclaim.deferrals).unwrap_or(0);
            let (found, mut has_deferred) = (candidates.len(), false);
            candidates.retain(|candidate| {
                has_deferred |= candidate.is_due && candidate.bytes < least;
                let may_end = candidate.is_due && candidate.bytes >= least;
                !(may_end && self.end_for_memory(candidate, shards, out))
            });
            has_deferred &= candidates.len() == found;
            self.reclaim.deferrals = if has_deferred { self.reclaim.deferrals + 1 } else { 0 };
        }
        let largest = candidates.first().map_or(0, |candidate| candidate.bytes);
        self.shared.scarcity.set_largest(self.lane, largest);
        if !is_scarce {
            self.shared.scarcity.end();
        }
        self.reclaim.next_look = now + if is_exceeded { URGENT } else { PERIOD };
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
            let is_short = candidate.is_stalled && memory.is_under_pressure();
            if !is_short && !memory.is_exceeded() {
                return false;
            }
            let Some(entry) = connections.live_mut(id) else { return false };
            D::abort(entry);
            service.counters.memory_closed.increment();
            service.advance(id.slot, connections, out);
            true
        });
        visited == Visited::Done(true)
    }
}

/// Adds the largest connections of a shard that may end.
fn find<S: Send + 'static>(
    connections: &mut Connections<S>,
    now: Time,
    candidates: &mut Vec<Candidate>,
) {
    let is_exceeded = connections.memory().is_exceeded();
    let (first, live) = (candidates.len(), connections.live_slots().collect::<Vec<_>>());
    for slot in live {
        let id = connections.id(slot);
        let Found::Live(_, entry) = connections.get(slot) else { continue };
        let (bytes, stalled) = (entry.bytes(), entry.active + STALLED);
        let is_stalled = now >= stalled;
        let exceeds = is_exceeded && entry.charged > IN_TURN;
        if bytes > 0 && (is_stalled || exceeds) {
            let is_due = exceeds || now >= stalled + MARGIN;
            candidates.push(Candidate { bytes, id, is_stalled, is_due });
        }
    }
    candidates[first..].sort_unstable_by_key(|candidate| std::cmp::Reverse(candidate.bytes));
    candidates.truncate(first + ROW);
}
