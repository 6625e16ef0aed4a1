//! The counts of a service while its run goes on: every lane adds the shards that it has, each shard once.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rheostat_base::{LaneId, ShardId};

use crate::metrics::Metrics;
use crate::service::{MetricsPart, Service};
use crate::shard_set::{Entry, ShardSet, Visit};

/// What a service had counted when its lanes came by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveMetrics {
    /// The counts, without rankings.
    pub metrics: Metrics,
    /// Flows in each shard's table; `None` where its counts are missing.
    pub flows: Vec<Option<u64>>,
    /// Shards whose counts are missing, because their lane has not answered in time.
    pub missing_shards: usize,
}

/// A request to all lanes.
#[derive(Debug)]
pub struct MetricsRequest {
    parts: Mutex<Parts>,
    has_changed: Condvar,
}

#[derive(Debug)]
struct Parts {
    metrics: Metrics,
    /// Per shard, whether its counts are in.
    counted: Vec<bool>,
    /// Per shard, flows in its table.
    flows: Vec<Option<u64>>,
    lanes: Vec<LaneState>,
    /// Whether a lane adds the counts that all lanes have together.
    has_shared: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaneState {
    /// The lane has added nothing.
    New,
    /// The lane has yet to read the command, and has added nothing.
    Asked,
    /// The counts of the lane itself are in.
    Answered,
    /// As `Answered`, and the lane has yet to read another command.
    AskedAgain,
}

impl MetricsRequest {
    pub(crate) fn new(lanes: usize, shards: usize) -> MetricsRequest {
        let parts = Parts {
            metrics: Metrics::default(),
            counted: vec![false; shards],
            flows: vec![None; shards],
            lanes: vec![LaneState::New; lanes],
            has_shared: false,
        };
        MetricsRequest { parts: Mutex::new(parts), has_changed: Condvar::new() }
    }

    /// The lanes that have to be asked: those that have not answered, and all while shards are missing, which may be on their way
    /// from one lane to another.
    pub(crate) fn lanes_to_ask(&self) -> Vec<LaneId> {
        let parts = self.parts();
        let is_missing = parts.counted.contains(&false);
        let wants = |state: &LaneState| match state {
            LaneState::New => true,
            LaneState::Answered => is_missing,
            LaneState::Asked | LaneState::AskedAgain => false,
        };
        let lanes = parts.lanes.iter().enumerate().filter(|(_, state)| wants(state));
        lanes.map(|(lane, _)| LaneId(lane as u16)).collect()
    }

    /// A lane has the command.
    pub(crate) fn note_asked(&self, lane: LaneId) {
        let state = &mut self.parts().lanes[lane.index()];
        *state = match *state {
            LaneState::New | LaneState::Asked => LaneState::Asked,
            LaneState::Answered | LaneState::AskedAgain => LaneState::AskedAgain,
        };
    }

    /// Whether the lane is to add the counts that all lanes have together: the first that comes by is.
    pub(crate) fn takes_shared(&self) -> bool {
        !std::mem::replace(&mut self.parts().has_shared, true)
    }

    /// Whether the lane is to add its own counts, beside those of shards.
    pub(crate) fn is_new(&self, lane: LaneId) -> bool {
        matches!(self.parts().lanes[lane.index()], LaneState::New | LaneState::Asked)
    }

    /// Those of these shards whose counts are missing.
    pub(crate) fn missing_of(&self, shards: impl Iterator<Item = ShardId>) -> Vec<ShardId> {
        let parts = self.parts();
        shards.filter(|shard| parts.counted.get(shard.index()) == Some(&false)).collect()
    }

    /// Adds the answer of a lane, with the counts of these shards. The lane has them still.
    pub(crate) fn add(&self, lane: LaneId, part: &Metrics, shards: &[ShardId]) {
        let mut parts = self.parts();
        part.iter().for_each(|(name, count)| parts.metrics.add(name, count));
        shards.iter().for_each(|shard| parts.counted[shard.index()] = true);
        parts.lanes[lane.index()] = LaneState::Answered;
        drop(parts);
        self.has_changed.notify_all();
    }

    /// Notes how many flows shards have.
    fn note_flows(&self, flows: &[(ShardId, u64)]) {
        let mut parts = self.parts();
        flows.iter().for_each(|(shard, live)| parts.flows[shard.index()] = Some(*live));
    }

    /// Adds the counts of a lane and of the shards that it has. A joint shard that another lane has at the moment is left for the next
    /// time that the lane is asked.
    #[cold]
    pub(crate) fn answer(&self, lane: LaneId, service: &dyn Service, shards: &mut ShardSet) {
        let mut part = Metrics::counts();
        if self.is_new(lane) {
            service.metrics(MetricsPart::Lane, &mut part);
        }
        if self.takes_shared() {
            service.metrics(MetricsPart::Shared, &mut part);
        }
        let missing = self.missing_of(shards.looked_after());
        let mut counted = Vec::with_capacity(missing.len());
        let mut flows = Vec::with_capacity(missing.len());
        // Shards stay here until they have been added, so that no other lane adds them, too.
        let mut shards = Visit(shards);
        for id in missing {
            if shards.enter(id) == Entry::Entered
                && let Some(shard) = shards.get(id)
            {
                service.metrics(MetricsPart::Shard(shard), &mut part);
                flows.push((id, shard.table.counts().live));
                counted.push(id);
            }
        }
        self.note_flows(&flows);
        self.add(lane, &part, &counted);
    }

    /// Waits until an answer comes, or `patience` is over, and returns whether all are there.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let is_complete = |parts: &Parts| {
            let is_in = |lane: &LaneState| *lane == LaneState::Answered;
            !parts.counted.contains(&false) && parts.lanes.iter().all(is_in)
        };
        let parts = self.parts();
        if is_complete(&parts) {
            return true;
        }
        let waited = self.has_changed.wait_timeout(parts, patience);
        is_complete(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    /// The answers so far.
    pub(crate) fn so_far(&self) -> LiveMetrics {
        let parts = self.parts();
        let missing_shards = parts.counted.iter().filter(|counted| !**counted).count();
        LiveMetrics { metrics: parts.metrics.clone(), flows: parts.flows.clone(), missing_shards }
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        // Nothing panics while it has the lock.
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PartialEq for MetricsRequest {
    /// The same request, not one like it.
    fn eq(&self, other: &MetricsRequest) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for MetricsRequest {}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(count: u64) -> Metrics {
        let mut metrics = Metrics::counts();
        metrics.add("seen", count);
        metrics
    }

    #[test]
    fn a_shard_that_moves_between_two_answers_counts_once() {
        let request = MetricsRequest::new(2, 2);
        let (one, two) = (LaneId(0), LaneId(1));
        assert_eq!(request.lanes_to_ask(), [one, two]);
        [one, two].iter().for_each(|lane| request.note_asked(*lane));
        assert_eq!(request.lanes_to_ask(), []);
        // Lane 0 has the first shard; the second is on its way.
        let owned = [ShardId(0)];
        assert_eq!(request.missing_of(owned.into_iter()), owned);
        request.add(one, &counts(5), &owned);
        // The first shard has moved to lane 1 meanwhile.
        assert_eq!(request.missing_of(owned.into_iter()), []);
        request.add(two, &counts(0), &[]);
        assert!(!request.wait(Duration::ZERO));
        assert_eq!(request.so_far().missing_shards, 1);
        // Both are asked again: the second shard has arrived at either.
        assert_eq!(request.lanes_to_ask(), [one, two]);
        [one, two].iter().for_each(|lane| request.note_asked(*lane));
        assert!(!request.is_new(one), "its own counts are in");
        assert_eq!([request.takes_shared(), request.takes_shared()], [true, false]);
        request.add(one, &counts(3), &[ShardId(1)]);
        request.add(two, &counts(0), &[]);
        assert!(request.wait(Duration::ZERO));
        let LiveMetrics { metrics, missing_shards, .. } = request.so_far();
        assert_eq!((metrics.get("seen"), missing_shards), (8, 0));
    }
}
