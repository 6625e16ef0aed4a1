//! Which queue of each device a lane polls.

use rheostat_base::{LaneId, QueueId};
use thiserror::Error;

/// Which queue of each device a lane polls. By default, lane n polls queue n of every device.
///
/// Whatever places packets in queues goes by it: tables lead a shard's packets to the queue of its owner, and a device that
/// announces packets in a queue wakes a worker for the lane that polls it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueMap {
    /// The queue of each lane; none where lane n polls queue n.
    queues: Option<Vec<QueueId>>,
}

/// Why lanes cannot poll queues so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QueueMapError {
    /// Lanes are missing, or there are fewer.
    #[error("queues are given for {given} lanes, of {lanes}: give one for each")]
    Lanes {
        /// Lanes that have a queue.
        given: usize,
        /// Lanes of the run.
        lanes: usize,
    },
    /// Lanes poll as many queues as there are lanes, numbered from 0.
    #[error("{lane} cannot poll queue {queue}: with {lanes} lanes, queues are 0 to {last}", last = lanes - 1)]
    UnknownQueue {
        /// The lane.
        lane: LaneId,
        /// Its queue.
        queue: u16,
        /// Lanes of the run.
        lanes: usize,
    },
    /// A queue has one lane that polls it, since its packets have one owner.
    #[error("{first} and {second} both poll queue {queue}: give each its own")]
    Shared {
        /// The first lane.
        first: LaneId,
        /// The second.
        second: LaneId,
        /// Their queue.
        queue: u16,
    },
}

impl QueueMap {
    /// Lane n polls queue `queues[n]` of every device.
    pub fn new(queues: impl IntoIterator<Item = QueueId>) -> QueueMap {
        QueueMap { queues: Some(queues.into_iter().collect()) }
    }

    /// The queue that a lane polls.
    pub fn queue_of(&self, lane: LaneId) -> QueueId {
        self.queues.as_ref().map_or(QueueId(lane.0), |queues| queues[lane.index()])
    }

    /// The lane that polls a queue, of those that [`QueueMap::check`] knows.
    pub fn lane_of(&self, queue: QueueId) -> LaneId {
        let find = |queues: &Vec<QueueId>| queues.iter().position(|of_lane| *of_lane == queue);
        let lane = self.queues.as_ref().and_then(find).map(|lane| LaneId(lane as u16));
        lane.unwrap_or(LaneId(queue.0))
    }

    /// Whether each of `lanes` lanes has one of as many queues, and no two the same.
    ///
    /// # Errors
    /// [`QueueMapError`].
    pub fn check(&self, lanes: usize) -> Result<(), QueueMapError> {
        let Some(queues) = &self.queues else { return Ok(()) };
        if queues.len() != lanes {
            return Err(QueueMapError::Lanes { given: queues.len(), lanes });
        }
        for (index, queue) in queues.iter().enumerate() {
            let (lane, queue_number) = (LaneId(index as u16), queue.0);
            if queue.index() >= lanes {
                return Err(QueueMapError::UnknownQueue { lane, queue: queue_number, lanes });
            }
            if let Some(first) = queues[..index].iter().position(|other| other == queue) {
                let first = LaneId(first as u16);
                return Err(QueueMapError::Shared { first, second: lane, queue: queue_number });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(queues: &[u16]) -> QueueMap {
        QueueMap::new(queues.iter().copied().map(QueueId))
    }

    #[test]
    fn lanes_and_queues_name_each_other() {
        let turned = map(&[2, 0, 1]);
        for map in [&turned, &QueueMap::default()] {
            assert_eq!(map.check(3), Ok(()));
            for lane in (0..3).map(LaneId) {
                assert_eq!(map.lane_of(map.queue_of(lane)), lane);
            }
        }
        assert_eq!(turned.queue_of(LaneId(0)), QueueId(2));
        assert_eq!(QueueMap::default().queue_of(LaneId(2)), QueueId(2));
    }

    #[test]
    fn a_map_that_does_not_fit_is_refused_with_what_is_wrong() {
        let error = |queues: &[u16]| map(queues).check(2).unwrap_err().to_string();
        assert_eq!(error(&[0]), "queues are given for 1 lanes, of 2: give one for each");
        assert_eq!(error(&[0, 2]), "lane 1 cannot poll queue 2: with 2 lanes, queues are 0 to 1");
        assert_eq!(error(&[1, 1]), "lane 0 and lane 1 both poll queue 1: give each its own");
    }
}
