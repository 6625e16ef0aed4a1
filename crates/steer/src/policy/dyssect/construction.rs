//! Assignments from nothing.

use std::cmp::Reverse;

use super::placement::DyssectPlacement;
use super::sums::Caps;
use super::{Counts, ShardDemand};

/// Shards by number, the heaviest first.
pub(super) fn heaviest_first(demands: &[ShardDemand]) -> Vec<u16> {
    let mut order: Vec<u16> = (0..demands.len() as u16).collect();
    order.sort_by_key(|shard| Reverse(demands[usize::from(*shard)].load));
    order
}

/// Longest processing time first: each shard, the heaviest first, goes to the lane with most room.
/// Offloading lanes are dealt out in turn, and the lanes of a group share the room that theirs has.
pub(super) fn by_room<'p>(
    demands: &'p [ShardDemand],
    order: &[u16],
    caps: Caps,
    counts: Counts,
) -> DyssectPlacement<'p> {
    let Counts { working, offloading } = counts;
    let links: Vec<Option<u16>> =
        (0..working).map(|lane| (offloading > 0).then(|| (lane % offloading) as u16)).collect();
    let room = |lane: usize| {
        if offloading == 0 {
            return i128::from(caps.working);
        }
        let group = working / offloading + usize::from(lane % offloading < working % offloading);
        i128::from(caps.working) + i128::from(caps.offloading) / group as i128
    };
    let mut rooms: Vec<i128> = (0..working).map(room).collect();
    let mut home = vec![0; demands.len()];
    for (rank, &shard) in order.iter().enumerate() {
        // The first go to a lane each, so that none is without.
        let lane = if rank < working {
            rank
        } else {
            let most = |lane: &usize| (rooms[*lane], Reverse(*lane));
            (0..working).max_by_key(most).unwrap_or(0)
        };
        rooms[lane] -= i128::from(demands[usize::from(shard)].load.nanos_per_second());
        home[usize::from(shard)] = lane as u16;
    }
    DyssectPlacement::new(demands, caps, home, &links, offloading)
}

/// Shards, the heaviest first, are dealt out forth and back, and offloading lanes by blocks.
pub(super) fn by_turns<'p>(
    demands: &'p [ShardDemand],
    order: &[u16],
    caps: Caps,
    counts: Counts,
) -> DyssectPlacement<'p> {
    let Counts { working, offloading } = counts;
    let links: Vec<Option<u16>> = (0..working)
        .map(|lane| (offloading > 0).then(|| (lane * offloading / working) as u16))
        .collect();
    let mut home = vec![0; demands.len()];
    for (rank, &shard) in order.iter().enumerate() {
        let (round, place) = (rank / working, rank % working);
        let lane = if round % 2 == 0 { place } else { working - 1 - place };
        home[usize::from(shard)] = lane as u16;
    }
    DyssectPlacement::new(demands, caps, home, &links, offloading)
}
