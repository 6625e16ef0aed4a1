//! When the lane next has to look at deadlines of connections.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_run::ShardSet;

use crate::shared::Shared;

/// Behind its deadline by so much, a lane is late, because its worker stalls in a request: another one looks at its shards.
const LATE: Duration = Duration::from_millis(5);

/// The earliest deadline in the shards that the lane looks after.
pub(crate) struct Due {
    lane: LaneId,
    /// That of shards that are the lane's alone. Before it, none comes.
    own: Time,
    /// Where lanes own shards together: the lane that looks after each. Then other lanes arm deadlines, too, and it is in
    /// `Shared`.
    homes: Option<Arc<[LaneId]>>,
    shared: Arc<Shared>,
}

impl Due {
    pub(crate) fn new(lane: LaneId, shared: Arc<Shared>) -> Due {
        Due { lane, own: Time::NEVER, homes: None, shared }
    }

    /// Learns whether the lane owns its shards alone, before it does anything to one.
    #[inline]
    pub(crate) fn learn(&mut self, shards: &ShardSet) {
        if shards.is_joint() && self.homes.is_none() {
            self.homes = shards.homes();
        }
    }

    /// A deadline of a connection has been armed in this shard, which the lane has.
    #[inline]
    pub(crate) fn note(&mut self, shard: ShardId, due: Time) {
        match &self.homes {
            None => self.own = self.own.min(due),
            Some(homes) => {
                let home = homes[shard.index()];
                if self.shared.deadlines.note(shard, home, due) && home != self.lane {
                    self.shared.wake_lane(home);
                }
            }
        }
    }

    /// When to look: at the shards that the lane looks after, or at those of a lane that is late.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        match &self.homes {
            None => self.own,
            Some(_) => (0..self.shared.lanes())
                .fold(Time::NEVER, |due, lane| due.min(self.of_lane(LaneId(lane as u16)))),
        }
    }

    /// Whether this lane has to look at the shards whose home `lane` is.
    pub(crate) fn is_due(&self, lane: LaneId, now: Time) -> bool {
        match &self.homes {
            None => lane == self.lane && self.own <= now,
            Some(_) => self.of_lane(lane) <= now,
        }
    }

    /// When this lane has to look at the shards whose home `lane` is.
    fn of_lane(&self, lane: LaneId) -> Time {
        let due = self.shared.deadlines.of_lane(lane);
        if lane == self.lane { due } else { due + LATE }
    }

    /// The shards that a lane looks after.
    pub(crate) fn shards_of(&self, lane: LaneId, shards: &ShardSet, round: &mut Vec<ShardId>) {
        round.clear();
        match &self.homes {
            None => round.extend(shards.looked_after()),
            Some(homes) => {
                let all = (0..).map(ShardId).zip(&**homes);
                round.extend(all.filter(|(_, home)| **home == lane).map(|(id, _)| id));
            }
        }
    }

    /// The lane begins to look at the shards of `lane`.
    pub(crate) fn begin(&mut self, lane: LaneId) {
        match &self.homes {
            None => self.own = Time::NEVER,
            Some(_) => self.shared.deadlines.begin(lane),
        }
    }

    /// When to look at a shard that others have had meanwhile; at once if it is the lane's alone, which has it anyway.
    pub(crate) fn of_shard(&self, shard: ShardId) -> Time {
        match &self.homes {
            None => Time::ZERO,
            Some(_) => self.shared.deadlines.of_shard(shard),
        }
    }

    /// The lane has looked at a shard, whose next deadline is this.
    pub(crate) fn end_shard(&self, shard: ShardId, due: Time) {
        if self.homes.is_some() {
            self.shared.deadlines.end_shard(shard, due);
        }
    }

    /// The lane has looked at all shards of `lane`.
    pub(crate) fn end(&mut self, lane: LaneId, due: Time) {
        match &self.homes {
            None => self.own = due,
            Some(_) => self.shared.deadlines.end(lane, due),
        }
    }
}
