//! What leaves working lanes for offloading lanes.

use std::cmp::Reverse;

use rheostat_base::{LaneId, ShardId};

use super::Load;

/// Which lane each working lane hands flows to, and how much of each shard's load leaves. The lanes that are handed
/// flows are the offloading lanes: awake, without receive queue and without shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// By lane: the offloading lane of each working lane that has one.
    pub links: Vec<Option<LaneId>>,
    /// By shard: how much of its load leaves. What the runtime picks are whole flows, heaviest first
    /// ([`pick_flows`]), so what leaves is near this figure, not equal.
    pub shares: Vec<Load>,
}

impl Offloads {
    /// Nothing leaves.
    pub fn none(lanes: usize, shards: usize) -> Offloads {
        Offloads { links: vec![None; lanes], shares: vec![Load::ZERO; shards] }
    }

    /// Whether a lane is handed flows.
    pub fn is_target(&self, lane: LaneId) -> bool {
        self.links.contains(&Some(lane))
    }

    /// Whether nothing leaves anywhere.
    pub fn is_none(&self) -> bool {
        self.links.iter().all(Option::is_none)
    }
}

/// A flow that was heavy in the last epoch, and may leave its working lane: measured, established, not of the priority
/// class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeavyFlow {
    /// The shard it belongs to.
    pub shard: ShardId,
    /// Its load: a lower bound.
    pub load: Load,
}

/// Which of a shard's flows leave so that about `share` of load leaves: heaviest first, as long as they fit. One flow more
/// leaves if that comes nearer to `share` than leaving it. Returns indices into `flows`; O(n log n).
pub fn pick_flows(flows: &[Load], share: Load) -> Vec<usize> {
    let mut order: Vec<usize> = (0..flows.len()).filter(|flow| flows[*flow] > Load::ZERO).collect();
    order.sort_by_key(|flow| (Reverse(flows[*flow]), *flow));
    let (mut left, mut picked, mut smallest_skipped) = (share, Vec::new(), None);
    for flow in order {
        if flows[flow] <= left {
            left = left.saturating_sub(flows[flow]);
            picked.push(flow);
        } else {
            smallest_skipped = Some(flow);
        }
    }
    if let Some(flow) = smallest_skipped
        && flows[flow].saturating_sub(left) < left
    {
        picked.push(flow);
    }
    picked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pick(flows: &[u64], share: u64) -> Vec<usize> {
        let flows: Vec<Load> = flows.iter().map(|load| Load::from_percent(*load)).collect();
        pick_flows(&flows, Load::from_percent(share))
    }

    #[test]
    fn heaviest_flows_that_fit_leave_first() {
        assert_eq!(pick(&[5, 20, 10, 0], 31), [1, 2]);
        assert_eq!(pick(&[50, 20, 10], 30), [1, 2], "a flow that does not fit stays");
        assert_eq!(pick(&[7, 7], 0), [0; 0]);
    }

    #[test]
    fn one_flow_more_leaves_where_that_is_nearer() {
        assert_eq!(pick(&[50, 20], 40), [1], "both would be 30 too much, one is 20 too little");
        assert_eq!(pick(&[50], 30), [0]);
        assert_eq!(pick(&[50], 20), [0; 0]);
    }
}
