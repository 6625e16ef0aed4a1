//! Steepest descent on the violation of an assignment.

use std::cmp::Reverse;

use super::Budget;
use super::placement::{DyssectPlacement, Edit};

/// How many lanes a step takes shards from: those in which most is wrong.
const WORST: usize = 4;

/// Changes the assignment until it violates nothing, no change helps, or the budget is used up.
/// Single moves and links first; shards change places only when no single change helps.
pub(super) fn repair(placement: &mut DyssectPlacement<'_>, budget: &mut Budget, swaps: bool) {
    while placement.violation > 0 {
        let mut best = Best::new(placement);
        singles(placement, budget, &mut best);
        if best.edit.is_none() && swaps {
            exchanges(placement, budget, &mut best);
        }
        let Some(edit) = best.edit else { return };
        placement.make(edit);
        if budget.is_used_up() {
            return;
        }
    }
}

/// The change that leaves least; between equals, the one that fills its lane least.
struct Best {
    key: (u64, u64),
    edit: Option<Edit>,
}

impl Best {
    fn new(placement: &DyssectPlacement<'_>) -> Best {
        Best { key: (placement.violation, 0), edit: None }
    }

    fn offer(&mut self, key: (u64, u64), edit: Edit) {
        if key < self.key {
            *self = Best { key, edit: Some(edit) };
        }
    }
}

fn singles(placement: &DyssectPlacement<'_>, budget: &mut Budget, best: &mut Best) {
    let lanes = placement.lanes.len();
    for from in worst(placement) {
        if !budget.spend(placement.shards[from].len() * lanes + placement.offloaders.len()) {
            return;
        }
        for &shard in &placement.shards[from] {
            for to in (0..lanes).filter(|to| *to != from) {
                offer_move(placement, shard, to, best);
            }
        }
        for link in 0..placement.offloaders.len() {
            offer_link(placement, from, link, best);
        }
    }
    if let Some(to) = placement.lanes.iter().position(|lane| lane.shards == 0) {
        budget.spend(placement.home.len());
        for shard in 0..placement.home.len() as u16 {
            if placement.lanes[placement.home(shard)].shards > 1 {
                offer_move(placement, shard, to, best);
            }
        }
    }
    let short = placement.offloaders.iter().position(|o| o.links < placement.caps.links);
    if let Some(link) = short {
        budget.spend(lanes);
        for lane in 0..lanes {
            offer_link(placement, lane, link, best);
        }
    }
}

fn exchanges(placement: &DyssectPlacement<'_>, budget: &mut Budget, best: &mut Best) {
    for from in worst(placement) {
        for &shard in &placement.shards[from] {
            if !budget.spend(placement.home.len()) {
                return;
            }
            for other in 0..placement.home.len() as u16 {
                let with = placement.home(other);
                if with != from {
                    let edit = Edit::Swap(shard, other);
                    best.offer((placement.after(edit), placement.lanes[with].load), edit);
                }
            }
        }
    }
}

fn offer_move(placement: &DyssectPlacement<'_>, shard: u16, to: usize, best: &mut Best) {
    let edit = Edit::Move(shard, to as u16);
    best.offer((placement.after(edit), placement.lanes[to].load), edit);
}

fn offer_link(placement: &DyssectPlacement<'_>, lane: usize, link: usize, best: &mut Best) {
    if placement.lanes[lane].link != Some(link as u16) {
        let edit = Edit::Link(lane as u16, Some(link as u16));
        best.offer((placement.after(edit), placement.offloaders[link].load), edit);
    }
}

/// The lanes in which most is wrong: what is stuck, and what too much of goes to their offloading
/// lanes.
fn worst(placement: &DyssectPlacement<'_>) -> impl Iterator<Item = usize> {
    let wrong = |lane: &usize| {
        let lane = &placement.lanes[*lane];
        let over = lane.link.map_or(0, |link| placement.over(usize::from(link)).min(lane.away));
        lane.stuck + over
    };
    let mut lanes: Vec<_> = (0..placement.lanes.len()).filter(|lane| wrong(lane) > 0).collect();
    lanes.sort_unstable_by_key(|lane| (Reverse(wrong(lane)), *lane));
    lanes.into_iter().take(WORST)
}
