//! Previous assignments with other numbers of lanes.

use std::cmp::Reverse;

use rheostat_base::LaneId;

use super::construction::heaviest_first;
use super::placement::{DyssectPlacement, Edit};
use super::sums::Caps;
use super::{Counts, FlowAssignment, LaneRole, Problem};

/// A previous assignment, with roles changed as its new counts require and all else left alone.
#[derive(Clone, Debug)]
pub(super) struct Adopted<'p> {
    pub(super) placement: DyssectPlacement<'p>,
    /// The lane of each working lane's number.
    pub(super) working: Vec<LaneId>,
    /// The lane of each offloading lane's number.
    pub(super) offloading: Vec<LaneId>,
    /// The working lane each shard had, by shard; `None` if that lane works no longer.
    pub(super) home: Vec<Option<u16>>,
    /// The offloading lane each working lane had, by working lane.
    pub(super) links: Vec<Option<u16>>,
    /// Whether all lanes keep their roles.
    pub(super) keeps_roles: bool,
}

impl<'p> Adopted<'p> {
    /// Lanes keep their roles as far as the counts allow: of too many working lanes those with the
    /// most shards, of too many offloading lanes those with the most links. Capacities are the same
    /// for all lanes, so with the same counts no other choice of roles makes fewer changes: the
    /// names of two lanes can be exchanged.
    pub(super) fn new(
        problem: &'p Problem,
        caps: Caps,
        previous: &FlowAssignment,
        counts: Counts,
    ) -> Adopted<'p> {
        let lanes = problem.setting().lanes;
        let count = |on: &dyn Fn(usize) -> usize| (0..lanes).map(on).collect::<Vec<usize>>();
        let mut shards = vec![0_usize; lanes];
        previous.home.iter().for_each(|lane| shards[lane.index()] += 1);
        let links = count(&|lane| {
            let lane = Some(LaneId(lane as u16));
            previous.links.iter().filter(|link| **link == lane).count()
        });
        let (working, offloading) = choose_roles(&previous.roles, &shards, &links, counts);
        let number = |lanes: &[LaneId]| {
            let mut numbers = vec![None; previous.roles.len()];
            (0_u16..).zip(lanes).for_each(|(number, lane)| numbers[lane.index()] = Some(number));
            numbers
        };
        let (working_numbers, offloading_numbers) = (number(&working), number(&offloading));
        let home: Vec<Option<u16>> =
            previous.home.iter().map(|lane| working_numbers[lane.index()]).collect();
        let links: Vec<Option<u16>> = working
            .iter()
            .map(|lane| previous.links[lane.index()].and_then(|to| offloading_numbers[to.index()]))
            .collect();
        let keeps_roles = working.len() == previous.counts().working
            && offloading.len() == previous.counts().offloading
            && home.iter().all(Option::is_some);
        let placement = place(problem, caps, &home, &links, offloading.len());
        Adopted { placement, working, offloading, home, links, keeps_roles }
    }

    /// Shards and links that are not where they were.
    pub(super) fn changes(&self, placement: &DyssectPlacement<'_>) -> usize {
        let moved =
            placement.home.iter().zip(&self.home).filter(|(now, then)| Some(**now) != **then);
        let links = placement.lanes.iter().zip(&self.links);
        let linked = links.filter(|(lane, then)| lane.link.is_some() && lane.link != **then);
        moved.count() + linked.count()
    }

    /// Takes changes back that are not needed, from the lightest shard up.
    pub(super) fn undo(&self, placement: &mut DyssectPlacement<'_>) {
        let mut order = heaviest_first(placement.demands);
        order.reverse();
        for shard in order {
            let Some(home) = self.home[usize::from(shard)] else { continue };
            if placement.home[usize::from(shard)] != home {
                keep_if_no_worse(placement, Edit::Move(shard, home));
            }
        }
        for (lane, link) in self.links.iter().enumerate() {
            if placement.lanes[lane].link != *link {
                keep_if_no_worse(placement, Edit::Link(lane as u16, *link));
            }
        }
    }
}

fn keep_if_no_worse(placement: &mut DyssectPlacement<'_>, edit: Edit) {
    if placement.after(edit) <= placement.violation {
        placement.make(edit);
    }
}

/// Which lanes work and which offload.
fn choose_roles(
    roles: &[LaneRole],
    shards: &[usize],
    links: &[usize],
    counts: Counts,
) -> (Vec<LaneId>, Vec<LaneId>) {
    let keep = |role: LaneRole, worth: &[usize], most: usize| {
        let mut lanes: Vec<usize> = (0..roles.len()).filter(|lane| roles[*lane] == role).collect();
        lanes.sort_by_key(|lane| (Reverse(worth[*lane]), *lane));
        lanes.truncate(most);
        lanes
    };
    let mut working = keep(LaneRole::Working, shards, counts.working);
    let mut offloading = keep(LaneRole::Offloading, links, counts.offloading);
    let mut free: Vec<usize> = (0..roles.len())
        .filter(|lane| !working.contains(lane) && !offloading.contains(lane))
        .collect();
    // Idle lanes first; the others keep what they have for as long as possible.
    free.sort_by_key(|lane| (roles[*lane] != LaneRole::Idle, *lane));
    let mut free = free.into_iter();
    working.extend(free.by_ref().take(counts.working.saturating_sub(working.len())));
    offloading.extend(free.by_ref().take(counts.offloading.saturating_sub(offloading.len())));
    working.sort_unstable();
    offloading.sort_unstable();
    let ids = |lanes: Vec<usize>| lanes.into_iter().map(|lane| LaneId(lane as u16)).collect();
    (ids(working), ids(offloading))
}

/// Shards that have lost their lane go, the heaviest first, to the lane that is then least loaded.
fn place<'p>(
    problem: &'p Problem,
    caps: Caps,
    home: &[Option<u16>],
    links: &[Option<u16>],
    offloaders: usize,
) -> DyssectPlacement<'p> {
    let demands = problem.shards();
    let load = |shard: usize| demands[shard].load.nanos_per_second();
    let mut loads = vec![(0_u64, 0_usize); links.len()];
    for (shard, lane) in home.iter().enumerate() {
        if let Some(lane) = lane {
            let sums = &mut loads[usize::from(*lane)];
            *sums = (sums.0 + load(shard), sums.1 + 1);
        }
    }
    let mut homes: Vec<u16> = home.iter().map(|lane| lane.unwrap_or(0)).collect();
    for shard in heaviest_first(demands).into_iter().map(usize::from) {
        if home[shard].is_none() {
            // Lanes without a shard first.
            let least = |lane: &usize| (loads[*lane].1 > 0, loads[*lane].0);
            let lane = (0..loads.len()).min_by_key(least).unwrap_or(0);
            loads[lane] = (loads[lane].0 + load(shard), loads[lane].1 + 1);
            homes[shard] = lane as u16;
        }
    }
    DyssectPlacement::new(demands, caps, homes, links, offloaders)
}
