//! A table of flows: the least loaded lane at the first packet, and then always that one.

use std::time::Duration;

use rheostat_base::{LaneId, Time};
use thiserror::Error;

use super::{Arrival, Choice, Dispatch};

/// A core looks every packet's flow up in a table; a flow that is not in it gets the lane with the
/// shortest queue and keeps it (RSS++ section 2, "stateful queuing"). Balances as flows come, not
/// as they grow.
///
/// Flows are known by their hash, so two with the same hash share a lane. The table is bounded:
/// four places for each of its sets, in which the flow seen longest ago gives way.
#[derive(Clone, Debug)]
pub struct StatefulQueue {
    sets: Vec<[Option<WaiterPlace>; WAYS]>,
    idle: Duration,
    /// Where the next search for the shortest queue begins, so that equals get flows in turn.
    next: usize,
    forgotten: u64,
}

const WAYS: usize = 4;

#[derive(Clone, Copy, Debug)]
struct WaiterPlace {
    hash: u32,
    lane: LaneId,
    seen: Time,
}

/// A table of flows cannot have this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a table for {0} flows cannot be made; take a power of two from 4 to 67108864")]
pub struct StatefulQueueError(pub usize);

impl StatefulQueue {
    /// How many flows the default table holds: those of the RSS++ paper's larger trace in a second
    /// (5.1: 80,000).
    pub const FLOWS: usize = 1 << 17;
    /// How long the default table remembers a flow without packets.
    pub const IDLE: Duration = Duration::from_secs(30);

    /// A table for `flows` flows that forgets those without packets for longer than `idle`.
    ///
    /// # Errors
    /// [`StatefulQueueError`] unless `flows` is a power of two from 4 to 2²⁶.
    pub fn new(flows: usize, idle: Duration) -> Result<StatefulQueue, StatefulQueueError> {
        if !flows.is_power_of_two() || !(WAYS..=1 << 26).contains(&flows) {
            return Err(StatefulQueueError(flows));
        }
        Ok(StatefulQueue { sets: vec![[None; WAYS]; flows / WAYS], idle, next: 0, forgotten: 0 })
    }

    /// How many flows gave way to others though their time was not up; if they go on, they may
    /// change lanes.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

impl Default for StatefulQueue {
    fn default() -> StatefulQueue {
        StatefulQueue::new(StatefulQueue::FLOWS, StatefulQueue::IDLE).expect("a power of two")
    }
}

impl Dispatch for StatefulQueue {
    fn name(&self) -> &'static str {
        "stateful-queue"
    }

    fn dispatch(&mut self, packet: &Arrival, backlogs: &[u32]) -> Choice {
        let Arrival { hash, now, .. } = *packet;
        let set = hash as usize & (self.sets.len() - 1);
        let live = |place: &WaiterPlace| now.since(place.seen) <= self.idle;
        let places = &mut self.sets[set];
        let known = places.iter_mut().flatten().find(|place| place.hash == hash && live(place));
        if let Some(known) = known {
            known.seen = now.max(known.seen);
            return Choice::Lane(known.lane);
        }
        let lanes = backlogs.len();
        let in_turn = (0..lanes).map(|turn| (self.next + turn) % lanes);
        let shortest = in_turn.min_by_key(|lane| backlogs[*lane]).expect("there is a lane");
        self.next = shortest + 1;
        let lane = LaneId(shortest as u16);
        // Its own stale place, else an empty one, else the one seen longest ago.
        let age = |place: &Option<WaiterPlace>| match place {
            Some(place) if place.hash == hash => (0, Time::ZERO),
            None => (1, Time::ZERO),
            Some(place) => (2, place.seen),
        };
        let place = places.iter_mut().min_by_key(|place| age(place)).expect("a set has places");
        self.forgotten += u64::from(place.is_some_and(|place| place.hash != hash && live(&place)));
        *place = Some(WaiterPlace { hash, lane, seen: now });
        Choice::Lane(lane)
    }

    fn keeps_flows(&self) -> bool {
        true
    }

    fn in_hardware(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(hash: u32, ms: u64) -> Arrival {
        Arrival { now: Time::from_millis(ms), hash, checksum: 0, connection: false }
    }

    #[test]
    fn a_flow_keeps_the_lane_that_was_least_loaded_at_its_first_packet() {
        let mut dispatch = StatefulQueue::default();
        assert_eq!(dispatch.dispatch(&packet(7, 0), &[3, 1, 1]), Choice::Lane(LaneId(1)));
        assert_eq!(dispatch.dispatch(&packet(7, 1), &[0, 9, 0]), Choice::Lane(LaneId(1)));
        assert_eq!(
            dispatch.dispatch(&packet(8, 1), &[0, 9, 0]),
            Choice::Lane(LaneId(2)),
            "in turn"
        );
        let late = StatefulQueue::IDLE.as_millis() as u64 + 2;
        assert_eq!(dispatch.dispatch(&packet(7, late), &[0, 9, 0]), Choice::Lane(LaneId(0)));
        assert_eq!(dispatch.forgotten(), 0);
    }

    #[test]
    fn in_a_full_set_the_flow_seen_longest_ago_gives_way() {
        let mut dispatch = StatefulQueue::new(4, Duration::from_secs(1)).unwrap();
        for hash in 0..4 {
            dispatch.dispatch(&packet(hash, u64::from(hash)), &[0, 1]);
        }
        dispatch.dispatch(&packet(0, 10), &[0, 1]);
        dispatch.dispatch(&packet(4, 11), &[0, 1]);
        assert_eq!(dispatch.forgotten(), 1);
        let back = dispatch.dispatch(&packet(0, 12), &[1, 0]);
        assert_eq!(back, Choice::Lane(LaneId(0)), "seen lately, so kept");
        let gone = dispatch.dispatch(&packet(1, 12), &[1, 0]);
        assert_eq!(gone, Choice::Lane(LaneId(1)), "gave way, so chosen anew");
    }

    #[test]
    fn a_table_has_a_size_that_a_hash_can_index() {
        for flows in [0, 2, 100, 1 << 27] {
            let error = StatefulQueue::new(flows, Duration::ZERO).unwrap_err();
            assert_eq!(error, StatefulQueueError(flows));
        }
    }
}
