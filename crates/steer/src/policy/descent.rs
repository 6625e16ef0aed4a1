//! Moves and exchanges of shards that lower a sum of squared loads most: what
//! [`local_search`](super::local_search) and the model [`balance`](super::dyssect::balance()) share.

use std::cmp::Reverse;

use rheostat_base::{LaneId, ShardId};

/// The state of a search. Loads are plain nanoseconds per second here; they are below 2⁶⁰, and
/// products below 2¹²⁰.
#[derive(Debug)]
pub(super) struct Descent {
    /// The lanes, the most loaded first, between equals the lower number.
    pub(super) lanes: Vec<DescentLane>,
    /// What a step has to gain for each shard it moves.
    pub(super) worthwhile: u128,
}

/// A lane and what it may give.
#[derive(Debug)]
pub(super) struct DescentLane {
    pub(super) id: LaneId,
    pub(super) load: u64,
    /// Among how many lanes what it is given is divided evenly, itself included: 1 unless lanes
    /// share an offloading lane.
    pub(super) parts: u64,
    /// Those with any load, the lightest first.
    pub(super) shards: Vec<(u64, ShardId)>,
}

/// A shard of `from` goes to `to`, and perhaps another one back: places in the lists of lanes and
/// shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DescentStep {
    from: usize,
    to: usize,
    there: usize,
    back: Option<usize>,
}

/// What a step has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) from: LaneId,
    pub(super) to: LaneId,
    pub(super) given: ShardId,
    pub(super) returned: Option<ShardId>,
}

/// The best step so far.
#[derive(Default)]
struct Best {
    gain: u128,
    step: Option<DescentStep>,
}

impl Best {
    /// Keeps the first of equals.
    fn offer(&mut self, gain: u128, step: DescentStep) {
        if gain > self.gain {
            *self = Best { gain, step: Some(step) };
        }
    }
}

/// Two lanes between which something is moved.
#[derive(Clone, Copy)]
struct Gap {
    /// By how much the first has more.
    difference: u64,
    parts: u64,
    /// Twice the weight that gains most, on lanes that divide what they get.
    both: u64,
}

impl Gap {
    fn between(hot: &DescentLane, cool: &DescentLane) -> Gap {
        let difference = hot.load.saturating_sub(cool.load);
        Gap { difference, parts: hot.parts * cool.parts, both: hot.parts + cool.parts }
    }

    /// The weight that leaves no difference.
    fn even(self) -> u64 {
        let even = u128::from(self.difference) * u128::from(self.parts) / u128::from(self.both);
        u64::try_from(even).unwrap_or(u64::MAX)
    }

    /// By how much it lowers the sum of squares to move `weight`: 2·w·d − w²·(1/a + 1/b) between
    /// lanes that divide what they get by a and b.
    fn gain(self, weight: u64) -> u128 {
        let (weight, parts) = (u128::from(weight), u128::from(self.parts));
        let linear = 2 * u128::from(self.difference) * parts;
        weight * (linear.saturating_sub(weight * u128::from(self.both)) / parts)
    }
}

/// By how much it lowers the sum of squares to move `weight` between lanes that differ by
/// `difference`.
pub(super) fn gain(weight: u64, difference: u64) -> u128 {
    Gap { difference, parts: 1, both: 2 }.gain(weight)
}

impl Descent {
    /// Of these lanes, in no order.
    pub(super) fn new(mut lanes: Vec<DescentLane>, worthwhile: u128) -> Descent {
        for lane in &mut lanes {
            lane.shards.sort_unstable();
        }
        let mut descent = Descent { lanes, worthwhile };
        descent.sort();
        descent
    }

    /// Restores the order of lanes.
    pub(super) fn sort(&mut self) {
        self.lanes.sort_by_key(|lane| (Reverse(lane.load), lane.id));
    }

    /// Makes the best step that takes from one of the `hottest` lanes; `None` if no step is worth
    /// it.
    pub(super) fn step(&mut self, hottest: usize) -> Option<Made> {
        let mut best = Best::default();
        self.pairs(hottest, |from, to| self.best_move(from, to, &mut best));
        if best.gain <= self.worthwhile {
            best = Best::default();
            self.pairs(hottest, |from, to| self.best_exchange(from, to, &mut best));
        }
        let step = best.step?;
        let shards: u128 = if step.back.is_some() { 2 } else { 1 };
        (best.gain > shards.saturating_mul(self.worthwhile)).then(|| self.make(step))
    }

    /// Takes a step back. Loads of lanes that divide what they get are the caller's to restore.
    pub(super) fn take_back(&mut self, made: Made) {
        self.transfer(made.given, made.to, made.from);
        if let Some(returned) = made.returned {
            self.transfer(returned, made.from, made.to);
        }
        self.sort();
    }

    fn transfer(&mut self, shard: ShardId, from: LaneId, to: LaneId) {
        let place = |lane: LaneId| self.lanes.iter().position(|other| other.id == lane);
        let (Some(from), Some(to)) = (place(from), place(to)) else { return };
        let shards = &mut self.lanes[from].shards;
        let Some(place) = shards.iter().position(|(_, other)| *other == shard) else { return };
        let moved = shards.remove(place);
        self.lanes[from].load = self.lanes[from].load.saturating_sub(moved.0);
        self.lanes[to].insert(moved);
    }

    /// Calls `look` with each of the hottest lanes that has a shard to give and each cooler lane.
    fn pairs(&self, hottest: usize, mut look: impl FnMut(usize, usize)) {
        // A lane with a single loaded shard can only pass its trouble on.
        let giving = (0..self.lanes.len()).filter(|from| self.lanes[*from].shards.len() > 1);
        for from in giving.take(hottest) {
            let cooler = (from + 1..self.lanes.len()).rev();
            for to in cooler.filter(|to| self.lanes[*to].load < self.lanes[from].load) {
                look(from, to);
            }
        }
    }

    /// The move nearest what evens the lanes out lies on one side of it or the other.
    fn best_move(&self, from: usize, to: usize, best: &mut Best) {
        let (hot, cool) = (&self.lanes[from], &self.lanes[to]);
        let gap = Gap::between(hot, cool);
        let even = gap.even();
        let middle = hot.shards.partition_point(|(weight, _)| *weight <= even);
        for there in middle.saturating_sub(1)..(middle + 1).min(hot.shards.len()) {
            let step = DescentStep { from, to, there, back: None };
            best.offer(gap.gain(hot.shards[there].0), step);
        }
    }

    /// The heavier the shard that goes, the heavier the one to return: one pass over both lists.
    fn best_exchange(&self, from: usize, to: usize, best: &mut Best) {
        let (hot, cool) = (&self.lanes[from], &self.lanes[to]);
        let gap = Gap::between(hot, cool);
        let even = gap.even();
        let mut back = 0;
        for (there, (weight, _)) in hot.shards.iter().enumerate() {
            // The first that is heavy enough to leave no more than evens the lanes out, and the one
            // before.
            let heavy = |other: u64| weight.saturating_sub(other) <= even;
            while back < cool.shards.len() && !heavy(cool.shards[back].0) {
                back += 1;
            }
            for back in back.saturating_sub(1)..(back + 1).min(cool.shards.len()) {
                let net = weight.saturating_sub(cool.shards[back].0);
                let step = DescentStep { from, to, there, back: Some(back) };
                best.offer(gap.gain(net), step);
            }
        }
    }

    fn make(&mut self, step: DescentStep) -> Made {
        let (from, to) = (self.lanes[step.from].id, self.lanes[step.to].id);
        let returned = step.back.map(|back| self.lanes[step.to].shards.remove(back));
        let given = self.lanes[step.from].shards.remove(step.there);
        self.lanes[step.to].insert(given);
        self.lanes[step.from].load = self.lanes[step.from].load.saturating_sub(given.0);
        if let Some(returned) = returned {
            self.lanes[step.from].insert(returned);
            self.lanes[step.to].load = self.lanes[step.to].load.saturating_sub(returned.0);
        }
        self.sort();
        Made { from, to, given: given.1, returned: returned.map(|(_, shard)| shard) }
    }
}

impl DescentLane {
    /// Adds a shard.
    fn insert(&mut self, shard: (u64, ShardId)) {
        self.shards.insert(self.shards.partition_point(|other| *other < shard), shard);
        self.load += shard.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(id: u16, parts: u64, weights: &[u64]) -> DescentLane {
        let shards = (0..).zip(weights).map(|(shard, weight)| (*weight, ShardId(100 * id + shard)));
        DescentLane { id: LaneId(id), load: weights.iter().sum(), parts, shards: shards.collect() }
    }

    #[test]
    fn the_exchange_found_is_the_best_there_is() {
        let lanes = vec![lane(0, 1, &[31, 23, 17, 9, 2]), lane(1, 1, &[29, 13, 11, 5])];
        let descent = Descent::new(lanes, 0);
        let mut best = Best::default();
        descent.best_exchange(0, 1, &mut best);
        let [hot, cool] = [0, 1].map(|lane| &descent.lanes[lane]);
        let gains = hot.shards.iter().flat_map(|(there, _)| {
            let net = cool.shards.iter().map(move |(back, _)| there.saturating_sub(*back));
            net.map(|net| gain(net, hot.load - cool.load))
        });
        assert_eq!(best.gain, gains.max().unwrap());
    }

    #[test]
    fn wide_lanes_take_as_much_as_evens_out_all_their_parts() {
        // One lane at 60, and three that divide what they get, at 20 each: 30 evens all out.
        let mut descent = Descent::new(vec![lane(0, 1, &[29, 16, 15]), lane(1, 3, &[20])], 0);
        let made = descent.step(1).unwrap();
        assert_eq!((made.given, made.returned), (ShardId(0), None));
        // 2·29·40 − 29²·(1 + 1/3), rounded down.
        let gap = Gap { difference: 40, parts: 3, both: 4 };
        assert_eq!((gap.even(), gap.gain(29)), (30, 29 * ((2 * 40 * 3 - 29 * 4) / 3)));
        descent.take_back(made);
        assert_eq!(descent.lanes[0].shards.len(), 3);
    }
}
