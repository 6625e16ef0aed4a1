//! How many flows there are, and whether so many of them with one packet are an attack.

use bytemuck::{AnyBitPattern, NoUninit};

/// Flows alive. A lane's part of the count may be negative: a flow may end on another lane than it began on,
/// once its shard has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, NoUninit, AnyBitPattern)]
#[repr(C)]
pub struct FlowCounts {
    /// All of them.
    pub flows: i64,
    /// Those that had one packet from the end that opened them.
    pub one_packet: i64,
}

impl FlowCounts {
    /// Adds another lane's part.
    pub fn merge(&mut self, other: &FlowCounts) {
        self.flows += other.flows;
        self.one_packet += other.one_packet;
    }
}

/// What counts as an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// The share of flows with one packet above which there is one, in thousandths.
    pub permille: u16,
    /// Flows without which a share means nothing.
    pub least: u32,
}

impl Alarm {
    /// Whether these flows are an attack.
    #[inline]
    pub fn is_raised_by(&self, flow_counts: FlowCounts) -> bool {
        flow_counts.flows >= i64::from(self.least)
            && i128::from(flow_counts.one_packet) * 1_000
                > i128::from(flow_counts.flows) * i128::from(self.permille)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attack_is_more_than_the_share_of_enough_flows() {
        let alarm = Alarm { permille: 800, least: 10 };
        let is_raised = |flows, one_packet| alarm.is_raised_by(FlowCounts { flows, one_packet });
        assert!(!is_raised(10, 8), "the share itself is none (NFOS, listing 2, line 20)");
        assert!(is_raised(10, 9) && is_raised(11, 9));
        assert!(!is_raised(9, 9), "too few");
        assert!(!is_raised(0, 0) && !is_raised(-5, 3));
        assert!(is_raised(i64::MAX, i64::MAX));
    }

    #[test]
    fn parts_of_lanes_add_up_though_one_is_negative() {
        let mut sum = FlowCounts { flows: 7, one_packet: 5 };
        sum.merge(&FlowCounts { flows: -3, one_packet: -4 });
        assert_eq!(sum, FlowCounts { flows: 4, one_packet: 1 });
    }
}
