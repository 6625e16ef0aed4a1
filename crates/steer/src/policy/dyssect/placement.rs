//! An assignment during a search, with the sums that tell how far it is from a feasible one.
//!
//! Working and offloading lanes have numbers of their own here, from 0 up. How much leaves a lane
//! is not searched for: it is what the lane has too much of, as far as that may leave. So a change
//! concerns two working lanes and their offloading lanes at most, and a step takes constant time.

use super::ShardDemand;
use super::sums::{Caps, LaneSum, Offloader};

/// A change of an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit {
    /// The shard goes to the lane.
    Move(u16, u16),
    /// The shards change places.
    Swap(u16, u16),
    /// The working lane gets this offloading lane, or none.
    Link(u16, Option<u16>),
}

#[derive(Clone, Debug)]
pub(super) struct DyssectPlacement<'p> {
    pub(super) demands: &'p [ShardDemand],
    pub(super) caps: Caps,
    /// By shard.
    pub(super) home: Vec<u16>,
    pub(super) lanes: Vec<LaneSum>,
    /// By working lane, in no order.
    pub(super) shards: Vec<Vec<u16>>,
    pub(super) offloaders: Vec<Offloader>,
    /// Zero if and only if the assignment is feasible.
    pub(super) violation: u64,
}

impl<'p> DyssectPlacement<'p> {
    /// The assignment with these homes and links.
    pub(super) fn new(
        demands: &'p [ShardDemand],
        caps: Caps,
        home: Vec<u16>,
        links: &[Option<u16>],
        offloaders: usize,
    ) -> DyssectPlacement<'p> {
        let mut lanes: Vec<LaneSum> =
            links.iter().map(|link| LaneSum { link: *link, ..LaneSum::default() }).collect();
        let mut shards = vec![Vec::new(); lanes.len()];
        for (shard, (lane, demand)) in (0..).zip(home.iter().zip(demands)) {
            lanes[usize::from(*lane)].take(demand);
            shards[usize::from(*lane)].push(shard);
        }
        let mut offloaders = vec![Offloader::default(); offloaders];
        for lane in &mut lanes {
            caps.settle(lane);
            if let Some(link) = lane.link {
                let offloader = &mut offloaders[usize::from(link)];
                offloader.load += lane.away;
                offloader.links += 1;
            }
        }
        let violation = lanes.iter().map(|lane| caps.of_lane(lane)).sum::<u64>()
            + offloaders.iter().map(|offloader| caps.of_offloader(offloader)).sum::<u64>();
        DyssectPlacement { demands, caps, home, lanes, shards, offloaders, violation }
    }

    /// The violation that would be left after the change.
    pub(super) fn after(&self, edit: Edit) -> u64 {
        match edit {
            Edit::Link(lane, link) => {
                let (lane, old) = (usize::from(lane), self.lanes[usize::from(lane)].link);
                let mut new = LaneSum { link, ..self.lanes[lane] };
                self.caps.settle(&mut new);
                self.with_lane(lane, &new) + self.shift_links(old, link, lane, &new)
                    - self.left_out(old, link)
            }
            Edit::Move(..) | Edit::Swap(..) => {
                let [(a, first), (b, second)] = self.pair(edit);
                self.after_pair((a, &first), (b, &second))
            }
        }
    }

    /// Makes the change; returns the one that takes it back.
    pub(super) fn make(&mut self, edit: Edit) -> Edit {
        let violation = self.after(edit);
        let back = match edit {
            Edit::Link(lane, link) => {
                let number = usize::from(lane);
                let old = self.lanes[number];
                let new = &mut self.lanes[number];
                new.link = link;
                self.caps.settle(new);
                if let Some(old_link) = old.link {
                    let offloader = &mut self.offloaders[usize::from(old_link)];
                    offloader.load -= old.away;
                    offloader.links -= 1;
                }
                if let Some(link) = link {
                    let offloader = &mut self.offloaders[usize::from(link)];
                    offloader.load += self.lanes[number].away;
                    offloader.links += 1;
                }
                Edit::Link(lane, old.link)
            }
            Edit::Move(..) | Edit::Swap(..) => {
                let back = match edit {
                    Edit::Move(shard, _) => Edit::Move(shard, self.home[usize::from(shard)]),
                    _ => edit,
                };
                for (number, new) in self.pair(edit) {
                    if let Some(link) = new.link {
                        let offloader = &mut self.offloaders[usize::from(link)];
                        offloader.load = offloader.load - self.lanes[number].away + new.away;
                    }
                    self.lanes[number] = new;
                }
                match edit {
                    Edit::Swap(a, b) => {
                        let (to_a, to_b) = (self.home[usize::from(b)], self.home[usize::from(a)]);
                        self.carry(a, to_a);
                        self.carry(b, to_b);
                    }
                    Edit::Move(shard, to) => self.carry(shard, to),
                    Edit::Link(..) => {}
                }
                back
            }
        };
        self.violation = violation;
        back
    }

    /// The working lane of a shard.
    pub(super) fn home(&self, shard: u16) -> usize {
        usize::from(self.home[usize::from(shard)])
    }

    /// A shard's load.
    pub(super) fn load(&self, shard: u16) -> u64 {
        self.demands[usize::from(shard)].load.nanos_per_second()
    }

    /// By how much an offloading lane has too much.
    pub(super) fn over(&self, offloader: usize) -> u64 {
        self.offloaders[offloader].load.saturating_sub(self.caps.offloading)
    }

    fn carry(&mut self, shard: u16, to: u16) {
        let from = std::mem::replace(&mut self.home[usize::from(shard)], to);
        let shards = &mut self.shards[usize::from(from)];
        if let Some(place) = shards.iter().position(|other| *other == shard) {
            shards.swap_remove(place);
        }
        self.shards[usize::from(to)].push(shard);
    }

    /// The two lanes that a move or a swap concerns, as they would be.
    fn pair(&self, edit: Edit) -> [(usize, LaneSum); 2] {
        let (shard, to, back) = match edit {
            Edit::Move(shard, to) => (shard, usize::from(to), None),
            Edit::Swap(a, b) => (a, self.home(b), Some(b)),
            Edit::Link(lane, _) => (self.shards[usize::from(lane)][0], usize::from(lane), None),
        };
        let from = self.home(shard);
        let (mut giver, mut taker) = (self.lanes[from], self.lanes[to]);
        giver.give(&self.demands[usize::from(shard)]);
        taker.take(&self.demands[usize::from(shard)]);
        if let Some(back) = back {
            taker.give(&self.demands[usize::from(back)]);
            giver.take(&self.demands[usize::from(back)]);
        }
        self.caps.settle(&mut giver);
        self.caps.settle(&mut taker);
        [(from, giver), (to, taker)]
    }

    fn after_pair(&self, (a, first): (usize, &LaneSum), (b, second): (usize, &LaneSum)) -> u64 {
        let (old_a, old_b) = (&self.lanes[a], &self.lanes[b]);
        let left = self.violation - self.caps.of_lane(old_a) - self.caps.of_lane(old_b);
        let mut violation = left + self.caps.of_lane(first) + self.caps.of_lane(second);
        let mut change = |link: Option<u16>, less: u64, more: u64| {
            let Some(link) = link.filter(|_| less != more) else { return };
            let old = &self.offloaders[usize::from(link)];
            let new = Offloader { load: old.load - less + more, ..*old };
            violation = violation - self.caps.of_offloader(old) + self.caps.of_offloader(&new);
        };
        if first.link == second.link {
            change(first.link, old_a.away + old_b.away, first.away + second.away);
        } else {
            change(first.link, old_a.away, first.away);
            change(second.link, old_b.away, second.away);
        }
        violation
    }

    /// The violation but for offloading lanes, if this one lane were another.
    fn with_lane(&self, lane: usize, new: &LaneSum) -> u64 {
        self.violation - self.caps.of_lane(&self.lanes[lane]) + self.caps.of_lane(new)
    }

    /// What the offloading lanes of two links contribute now.
    fn left_out(&self, old: Option<u16>, new: Option<u16>) -> u64 {
        let of = |link: u16| self.caps.of_offloader(&self.offloaders[usize::from(link)]);
        let both = [old, new.filter(|_| new != old)];
        both.into_iter().flatten().map(of).sum()
    }

    /// What they would contribute once the lane has changed from one to the other.
    fn shift_links(&self, old: Option<u16>, new: Option<u16>, lane: usize, with: &LaneSum) -> u64 {
        let of = |link: u16, changed: fn(&mut Offloader, u64), by: u64| {
            let mut offloader = self.offloaders[usize::from(link)];
            changed(&mut offloader, by);
            self.caps.of_offloader(&offloader)
        };
        if old == new {
            return self.left_out(old, new);
        }
        let leave = |offloader: &mut Offloader, by| {
            offloader.load -= by;
            offloader.links -= 1;
        };
        let join = |offloader: &mut Offloader, by| {
            offloader.load += by;
            offloader.links += 1;
        };
        old.map_or(0, |link| of(link, leave, self.lanes[lane].away))
            + new.map_or(0, |link| of(link, join, with.away))
    }
}
