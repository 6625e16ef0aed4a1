//! What a lane does to the shards that it looks after when no packet asks for it. Shards that lanes own together are entered one by
//! one; one that another lane has is left for the next round.

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_run::{Entry, Output, ShardSet};

use super::notes::Cause;
use super::{ROW, TcpService};
use crate::connections::Connections;
use crate::driver::Driver;
use crate::inspection::Visit;

/// What came of a visit of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visited<T> {
    Done(T),
    /// Another lane has it.
    Elsewhere,
    /// A lane panicked while it had it: nothing is done to it any more.
    Never,
}

impl<D: Driver> TcpService<D> {
    /// Enters a shard, does something to its connections, and leaves it. What was sent is the device's before: the next lane may
    /// send on the same connection.
    pub(super) fn visit<T>(
        &mut self,
        id: ShardId,
        shards: &mut ShardSet,
        out: &mut Output,
        work: impl FnOnce(&mut Self, &mut Connections<D::Stream>, &mut Output) -> T,
    ) -> Visited<T> {
        match shards.enter(id) {
            Entry::Entered => {}
            Entry::Elsewhere => return Visited::Elsewhere,
            Entry::Poisoned => return Visited::Never,
        }
        let Some(shard) = shards.get_mut(id) else { return Visited::Never };
        let (_, connections) = shard.split::<Connections<D::Stream>>();
        let done = work(self, connections, out);
        if shards.is_joint() {
            out.flush();
            shards.leave();
        }
        Visited::Done(done)
    }

    /// The shards that the lane looks after, in a buffer that is given back.
    pub(super) fn take_round(&mut self, shards: &ShardSet) -> Vec<ShardId> {
        let mut round = std::mem::take(&mut self.round);
        round.clear();
        round.extend(shards.looked_after());
        round
    }

    /// Does what is due in the shards that the lane looks after, and in those of lanes that are late.
    pub(super) fn expire(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        for lane in (0..self.shared.lanes() as u16).map(LaneId) {
            if self.around.due.is_due(lane, now) {
                self.expire_shards_of(lane, shards, out, now);
            }
        }
    }

    /// Does what is due in the shards that a lane looks after, up to a row of connections.
    fn expire_shards_of(
        &mut self,
        lane: LaneId,
        shards: &mut ShardSet,
        out: &mut Output,
        now: Time,
    ) {
        let (mut left, mut next_due) = (ROW, Time::NEVER);
        self.around.due.begin(lane);
        let mut round = std::mem::take(&mut self.round);
        self.around.due.shards_of(lane, shards, &mut round);
        for &id in &round {
            let due = self.around.due.of_shard(id);
            if due > now {
                next_due = next_due.min(due);
                continue;
            }
            let visited = self.visit(id, shards, out, |service, connections, out| {
                let most = if connections.next_deadline() <= now { left } else { 0 };
                let done = service.tick_shard(connections, most, out);
                let next = connections.next_deadline();
                service.around.due.end_shard(id, next);
                (done, next)
            });
            match visited {
                Visited::Done((done, next)) => {
                    left -= done;
                    next_due = next_due.min(next);
                }
                Visited::Elsewhere => next_due = next_due.min(due),
                Visited::Never => self.around.due.end_shard(id, Time::NEVER),
            }
        }
        self.round = round;
        self.around.due.end(lane, next_due);
    }

    /// Lets the program do what other threads have asked for.
    #[cold]
    pub(super) fn answer_calls(&mut self, shards: &mut ShardSet, out: &mut Output) {
        self.around.now = out.now();
        let shared = self.shared.clone();
        self.noted.begin_without_packet(Cause::Call);
        let round = self.take_round(shards);
        for &id in round.iter().filter(|id| shared.calls.take(id.index())) {
            let visited = self.visit(id, shards, out, |service, connections, out| {
                service.driver.called(connections, &mut service.around);
                while let Some(slot) = service.around.touched.pop() {
                    service.advance(slot, None, connections, out);
                }
            });
            if visited == Visited::Elsewhere {
                shared.calls.call(id.index());
            }
        }
        self.round = round;
    }

    /// Shows connections to those that want to see them.
    #[cold]
    pub(super) fn show(&mut self, shards: &mut ShardSet, now: Time) {
        let begun = self.shared.take_inspections(self.lane);
        self.visits.extend(begun.into_iter().map(Visit::new));
        self.visits.retain_mut(|visit| !visit.go_on::<D::Stream>(self.lane, shards, now));
    }

    /// Lets all connections notice that the service ends.
    #[cold]
    pub(super) fn begin_draining(&mut self, shards: &mut ShardSet, out: &mut Output) {
        self.noted.begin_without_packet(Cause::Drain);
        let mut left = match self.undrained.take() {
            Some(left) => left,
            None => shards.looked_after().collect(),
        };
        left.retain(|&id| {
            let visited = self.visit(id, shards, out, |service, connections, out| {
                let live: Vec<_> = connections.live_slots().collect();
                live.into_iter().for_each(|slot| service.advance(slot, None, connections, out));
            });
            visited == Visited::Elsewhere
        });
        self.has_drained = left.is_empty();
        self.undrained = Some(left).filter(|left| !left.is_empty());
    }
}
