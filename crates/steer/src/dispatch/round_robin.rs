//! Round-robin: lane after lane.

use super::{Arrival, Choice, Dispatch, lane_of};

/// A core reads all packets and gives them to the lanes in turn (RSS++ sections 2 and 5.4): the
/// fairest there is, whatever the packets are.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin {
    next: u32,
}

impl Dispatch for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn dispatch(&mut self, _packet: &Arrival, backlogs: &[u32]) -> Choice {
        let lane = lane_of(self.next, backlogs.len());
        self.next = u32::from(lane.0) + 1;
        Choice::Lane(lane)
    }

    fn keeps_flows(&self) -> bool {
        false
    }

    fn in_hardware(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::{LaneId, Time};

    #[test]
    fn every_lane_gets_its_turn() {
        let packet = Arrival { now: Time::ZERO, hash: 1, checksum: 1, connection: false };
        let mut dispatch = RoundRobin::default();
        let lanes: Vec<Choice> = (0..4).map(|_| dispatch.dispatch(&packet, &[9, 0, 0])).collect();
        assert_eq!(lanes, [0, 1, 2, 0].map(|lane| Choice::Lane(LaneId(lane))));
    }
}
