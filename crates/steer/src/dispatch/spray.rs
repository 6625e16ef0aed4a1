//! Sprayer: any lane for any packet, by its checksum.

use super::{Arrival, Choice, Dispatch, lane_of};

/// Spreads packets by their transport checksum, which a NIC can do, and has each connection's state
/// written by one designated lane: packets that open or end a connection are handed to it (Sadok et
/// al., Sprayer, HotNets 2018, as in RSS++ sections 2 and 5.5). Packets whose checksums are alike,
/// such as those of one size with an empty payload, are not spread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spray;

impl Dispatch for Spray {
    fn name(&self) -> &'static str {
        "spray"
    }

    fn dispatch(&mut self, packet: &Arrival, backlogs: &[u32]) -> Choice {
        let queue = lane_of(u32::from(packet.checksum), backlogs.len());
        if !packet.connection {
            return Choice::Lane(queue);
        }
        let lane = lane_of(packet.hash, backlogs.len());
        if lane == queue { Choice::Lane(lane) } else { Choice::Via { queue, lane } }
    }

    fn keeps_flows(&self) -> bool {
        false
    }

    fn in_hardware(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::{LaneId, Time};

    #[test]
    fn data_goes_by_checksum_and_connections_to_their_lane() {
        let mut data = Arrival { now: Time::ZERO, hash: 6, checksum: 9, connection: false };
        assert_eq!(Spray.dispatch(&data, &[0; 4]), Choice::Lane(LaneId(1)));
        data.connection = true;
        let [queue, lane] = [1, 2].map(LaneId);
        assert_eq!(Spray.dispatch(&data, &[0; 4]), Choice::Via { queue, lane });
        data.hash = 5;
        assert_eq!(Spray.dispatch(&data, &[0; 4]), Choice::Lane(queue));
    }
}
