//! Search for an assignment with at most so many changes that ends with one, or with the proof that
//! there is none.

use super::Budget;
use super::bound;
use super::placement::{DyssectPlacement, Edit};

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeepeningOutcome {
    /// The placement violates nothing.
    Found,
    /// So few changes do not suffice.
    None,
    /// The budget was used up.
    Cut,
}

/// Changes `placement`, from which no change has been made yet, by at most `depth` changes into a
/// feasible one, if there is such.
///
/// At every step, something is wrong that only certain changes mend: load leaves an over-full
/// working lane with shards of it or through another link, an over-full offloading lane with
/// changes of lanes it serves, and so on. One of them has to be among the changes, so only they are
/// tried. A shard that has moved is where it belongs, and does not move again.
pub(super) fn deepen(
    placement: &mut DyssectPlacement<'_>,
    depth: usize,
    budget: &mut Budget,
) -> DeepeningOutcome {
    let mut search = Search {
        moved: vec![false; placement.home.len()],
        linked: vec![false; placement.lanes.len()],
        budget,
    };
    search.go(placement, depth)
}

struct Search<'b> {
    moved: Vec<bool>,
    linked: Vec<bool>,
    budget: &'b mut Budget,
}

impl Search<'_> {
    fn go(&mut self, placement: &mut DyssectPlacement<'_>, depth: usize) -> DeepeningOutcome {
        if placement.violation == 0 {
            return DeepeningOutcome::Found;
        }
        // A bound takes about as long as so many steps.
        if !self.budget.spend(placement.lanes.len() + placement.home.len() / 4) {
            return DeepeningOutcome::Cut;
        }
        if bound::changes(placement) > depth {
            return DeepeningOutcome::None;
        }
        let mut edits = self.edits(placement);
        if !self.budget.spend(edits.len()) {
            return DeepeningOutcome::Cut;
        }
        edits.sort_by_cached_key(|edit| placement.after(*edit));
        if depth == 1 {
            // The last change has to mend everything.
            edits.truncate(1);
            edits.retain(|edit| placement.after(*edit) == 0);
        }
        for edit in edits {
            self.mark(edit, true);
            let back = placement.make(edit);
            match self.go(placement, depth - 1) {
                DeepeningOutcome::None => {}
                ended => return ended,
            }
            placement.make(back);
            self.mark(edit, false);
        }
        DeepeningOutcome::None
    }

    fn mark(&mut self, edit: Edit, changed: bool) {
        match edit {
            Edit::Move(shard, _) => self.moved[usize::from(shard)] = changed,
            Edit::Link(lane, _) => self.linked[usize::from(lane)] = changed,
            Edit::Swap(..) => {}
        }
    }

    /// The changes of which one has to be made.
    fn edits(&self, placement: &DyssectPlacement<'_>) -> Vec<Edit> {
        let mut edits = Vec::new();
        if let Some(empty) = placement.lanes.iter().position(|lane| lane.shards == 0) {
            let shards = (0..placement.home.len() as u16).filter(|s| !self.moved[usize::from(*s)]);
            edits.extend(shards.map(|shard| Edit::Move(shard, empty as u16)));
            return edits;
        }
        let short = placement.offloaders.iter().position(|o| o.links < placement.caps.links);
        if let Some(link) = short {
            for lane in 0..placement.lanes.len() {
                self.link(placement, lane, link as u16, &mut edits);
            }
            return edits;
        }
        let stuck = (0..placement.lanes.len()).filter(|lane| placement.lanes[*lane].stuck > 0);
        if let Some(lane) = stuck.min_by_key(|lane| placement.shards[*lane].len()) {
            self.of_lane(placement, lane, &mut edits);
            return edits;
        }
        let over = (0..placement.offloaders.len()).find(|offloader| placement.over(*offloader) > 0);
        let served = |lane: &usize| placement.lanes[*lane].link.map(usize::from) == over;
        for lane in (0..placement.lanes.len()).filter(served) {
            if placement.lanes[lane].away > 0 {
                self.of_lane(placement, lane, &mut edits);
            }
        }
        edits
    }

    fn of_lane(&self, placement: &DyssectPlacement<'_>, lane: usize, edits: &mut Vec<Edit>) {
        let shards =
            placement.shards[lane].iter().filter(|shard| !self.moved[usize::from(**shard)]);
        for shard in shards {
            let others = (0..placement.lanes.len()).filter(|to| *to != lane);
            edits.extend(others.map(|to| Edit::Move(*shard, to as u16)));
        }
        for link in 0..placement.offloaders.len() as u16 {
            self.link(placement, lane, link, edits);
        }
    }

    fn link(
        &self,
        placement: &DyssectPlacement<'_>,
        lane: usize,
        link: u16,
        edits: &mut Vec<Edit>,
    ) {
        if !self.linked[lane] && placement.lanes[lane].link != Some(link) {
            edits.push(Edit::Link(lane as u16, Some(link)));
        }
    }
}
