//! Bounds that no assignment can be better than.

use super::placement::DyssectPlacement;
use super::sums::Caps;
use super::{Counts, Problem, ShardDemand};

/// What holds for a set of shards however they are assigned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Totals {
    load: u64,
    may_leave: u64,
    shards: usize,
    /// Shards of which no two fit one working lane, without and with an offloading lane.
    alone: [usize; 2],
    /// The most that one shard has too much of for a working lane, and cannot send away.
    stuck: u64,
    /// The most that one shard has too much of for a working lane.
    over: u64,
    working: u64,
    offloading: u64,
    links: usize,
}

impl Totals {
    pub(super) fn of(problem: &Problem, caps: Caps) -> Totals {
        let demands = problem.shards();
        let Caps { working, offloading, .. } = caps;
        let links = problem.setting().min_working_per_offloading;
        let load = |demand: &ShardDemand| demand.load.nanos_per_second();
        let may_leave = |demand: &ShardDemand| demand.may_leave.nanos_per_second();
        let stays = |demand: &ShardDemand| load(demand) - may_leave(demand);
        let alone = |size: fn(u64, u64) -> u64| {
            let sizes = demands.iter().map(|demand| size(load(demand), stays(demand)));
            sizes.filter(|size| 2 * size > working).count()
        };
        let most = |of: &dyn Fn(&ShardDemand) -> u64| demands.iter().map(of).max().unwrap_or(0);
        Totals {
            load: demands.iter().map(load).sum(),
            may_leave: demands.iter().map(may_leave).sum(),
            shards: demands.len(),
            alone: [alone(|load, _| load), alone(|_, stays| stays)],
            stuck: most(&stays).saturating_sub(working),
            over: most(&load).saturating_sub(working),
            working,
            offloading,
            links,
        }
    }

    /// Whether an assignment with these counts is not excluded: by (5.6), (5.8), by sums, by the
    /// heaviest shard, or by shards that need a lane each.
    pub(super) fn allow(&self, counts: Counts) -> bool {
        let Counts { working, offloading } = counts;
        let some = offloading > 0;
        let leaves = (offloading as u64 * self.offloading).min(self.may_leave);
        (1..=self.shards).contains(&working)
            && offloading.saturating_mul(self.links) <= working
            && working as u64 * self.working + leaves >= self.load
            && self.alone[usize::from(some)] <= working
            && if some { self.stuck == 0 && self.over <= self.offloading } else { self.over == 0 }
    }

    /// What the lanes have to do, as a share of what they can, in a thousandth.
    pub(super) fn pressure(&self, counts: Counts) -> u128 {
        let leaves = (counts.offloading as u64 * self.offloading).min(self.may_leave);
        let can = counts.working as u64 * self.working + leaves;
        u128::from(self.load) * 1_000 / u128::from(can.max(1))
    }

    /// The counts of so many lanes that are not excluded, with fewer offloading lanes first.
    pub(super) fn splits(&self, lanes: usize) -> impl Iterator<Item = Counts> {
        let counts = move |offloading| Counts { working: lanes - offloading, offloading };
        let totals = *self;
        let most = lanes / self.links.saturating_add(1);
        (0..=most).map(counts).filter(move |counts| totals.allow(*counts))
    }

    /// The fewest lanes that are not excluded, of so many.
    pub(super) fn lanes(&self, most: usize) -> Option<usize> {
        let best = self.working.max(self.offloading).max(1);
        let least = self.load.div_ceil(best).max(1) as usize;
        (least..=most).find(|lanes| self.splits(*lanes).next().is_some())
    }
}

/// At least so many changes lie between this assignment and a feasible one of the same counts.
///
/// A lane that is over-full loses load only by changes of its own: shards of it that move, or its
/// link. An offloading lane that is over-full does so by changes of the lanes it serves. So the
/// changes that each group needs are other changes than those of the next.
pub(super) fn changes(placement: &DyssectPlacement<'_>) -> usize {
    let mut of_groups = vec![0; placement.offloaders.len()];
    let mut alone = 0;
    for (number, lane) in placement.lanes.iter().enumerate() {
        if lane.stuck > 0 {
            let needed = of_lane(placement, number);
            let group = lane.link.map_or(&mut alone, |link| &mut of_groups[usize::from(link)]);
            *group += needed;
        }
    }
    for (number, needed) in of_groups.iter_mut().enumerate() {
        let over = placement.over(number);
        if over > 0 {
            *needed = (*needed).max(of_group(placement, number as u16, over));
        }
    }
    let empty = placement.lanes.iter().filter(|lane| lane.shards == 0).count();
    let missing = placement.offloaders.iter().map(|o| placement.caps.links.saturating_sub(o.links));
    let missing = missing.sum::<u32>() as usize;
    // A change is a move or a link, so empty lanes and missing links need different ones.
    (alone + of_groups.iter().sum::<usize>()).max(empty + missing)
}

/// Moves that rid a lane of what is stuck, or a link and moves.
fn of_lane(placement: &DyssectPlacement<'_>, lane: usize) -> usize {
    let sums = &placement.lanes[lane];
    let reliefs = placement.shards[lane].iter().map(|shard| placement.load(*shard)).collect();
    let takes = if sums.link.is_none() && !placement.offloaders.is_empty() {
        sums.may_leave.min(placement.caps.offloading)
    } else {
        0
    };
    let sorted = descending(reliefs);
    let without = cover(&sorted, sums.stuck);
    if takes == 0 {
        without
    } else {
        without.min(1 + cover(&sorted, sums.stuck.saturating_sub(takes)))
    }
}

/// Moves and links that rid an offloading lane of what it has too much.
fn of_group(placement: &DyssectPlacement<'_>, offloader: u16, over: u64) -> usize {
    let mut reliefs = Vec::new();
    for (lane, shards) in placement.lanes.iter().zip(&placement.shards) {
        if lane.link == Some(offloader) && lane.away > 0 {
            reliefs.push(lane.away);
            reliefs.extend(shards.iter().map(|shard| placement.load(*shard).min(lane.away)));
        }
    }
    cover(&descending(reliefs), over)
}

fn descending(mut reliefs: Vec<u64>) -> Vec<u64> {
    reliefs.sort_unstable_by(|a, b| b.cmp(a));
    reliefs
}

/// How many of the largest come to `need`.
fn cover(descending: &[u64], need: u64) -> usize {
    let mut sum = 0;
    let before = descending.iter().take_while(|relief| {
        let missing = sum < need;
        sum += **relief;
        missing
    });
    before.count()
}
