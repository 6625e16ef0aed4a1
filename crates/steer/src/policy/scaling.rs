//! How many lanes should run: the rules of RSS++ 3.2, within bounds.

use rheostat_base::{LaneId, Time};

use super::assignment::Assignment;
use super::{Load, LoadSnapshot, Reason};

/// When lanes are added and parked, one at a time.
///
/// A lane is added when the mean load is above the target. One is parked when the others can take
/// its load: when what all N lanes together have to spare below the target exceeds one lane and
/// α·N, and there are more than two. After that the mean is at most target − α, so the next plan
/// does not take it back.
///
/// RSS++ looks at sums only. With shards that do not divide well, that can put two heavy ones on
/// one lane, so here a lane stays if parking it would raise another above the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaling {
    /// The mean load that the lanes should not exceed (RSS++ 3.2: 80 %, by its tail latency).
    pub target: Load,
    /// α: spare capacity per lane that guards against changes of the load (RSS++ 3.2: 5 %).
    pub reserve: Load,
    /// No lane is parked while so many or fewer are active (RSS++ 3.2: 2).
    pub keep: usize,
}

impl Default for Scaling {
    fn default() -> Scaling {
        Scaling { target: Load::from_percent(80), reserve: Load::from_percent(5), keep: 2 }
    }
}

/// Which lanes to wake or to park; never both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) wake: Vec<LaneId>,
    pub(super) park: Vec<LaneId>,
    /// The lanes that get the shards of the parked ones.
    pub(super) takers: Vec<LaneId>,
    /// Whether the bounds demand it, wanted or not.
    pub(super) forced: bool,
    pub(super) why: Option<Reason>,
}

impl Scaling {
    /// What the load and the bounds ask for. Bounds come first, and do not wait for lanes to rest.
    pub(super) fn change(&self, now: Time, load: &LoadSnapshot) -> Change {
        within_bounds(load)
            .or_else(|| self.scale_out(load))
            .or_else(|| self.scale_in(now, load))
            .unwrap_or_default()
    }

    fn scale_out(&self, load: &LoadSnapshot) -> Option<Change> {
        let (mean, target) = (load.mean(), self.target);
        if mean <= target {
            return None;
        }
        let room = load.active().count() < load.bounds().max;
        let change = match load.parked().next() {
            Some(lane) if room => {
                let why = Some(Reason::ScaleOut { mean, target });
                Change { wake: vec![lane], why, ..Change::default() }
            }
            _ => Change { why: Some(Reason::CannotScaleOut { mean, target }), ..Change::default() },
        };
        Some(change)
    }

    fn scale_in(&self, now: Time, load: &LoadSnapshot) -> Option<Change> {
        let active = load.active().count();
        if active <= self.keep.max(load.bounds().min) {
            return None;
        }
        let sum = |load: Load, times: usize| load.part(times as u64, 1);
        let spare = sum(self.target, active)
            .saturating_sub(load.active().map(|lane| load.load(lane)).sum());
        let needed = Load::FULL + sum(self.reserve, active);
        if spare <= needed {
            return None;
        }
        // Lanes that rest neither go nor take. Waiting until none rests could last for ever, since
        // balancing gives some lane a shard in almost every period.
        let mut assignment = Assignment::new(now, load);
        let awake: Vec<LaneId> = assignment.movable().collect();
        let lane = *least_loaded(load, awake.iter().copied()).first()?;
        let takers: Vec<LaneId> = awake.into_iter().filter(|taker| *taker != lane).collect();
        if takers.is_empty() {
            return None;
        }
        assignment.park(&[lane], &takers);
        let raised = takers.iter().filter(|taker| assignment.load(**taker) > load.load(**taker));
        let highest = raised.map(|taker| assignment.load(*taker)).max().unwrap_or_default();
        if highest > self.target {
            let target = self.target;
            let why = Some(Reason::CannotScaleIn { lane, highest, target });
            return Some(Change { why, ..Change::default() });
        }
        let why = Some(Reason::ScaleIn { lane, spare, needed });
        Some(Change { park: vec![lane], takers, why, ..Change::default() })
    }
}

/// What the bounds demand.
pub(super) fn within_bounds(load: &LoadSnapshot) -> Option<Change> {
    let (active, bounds) = (load.active().count(), load.bounds());
    if active < bounds.min {
        let wake = load.parked().take(bounds.min - active).collect();
        let why = Some(Reason::TooFewLanes { active, min: bounds.min });
        return Some(Change { wake, forced: true, why, ..Change::default() });
    }
    if active > bounds.max {
        let mut park = least_loaded(load, load.active());
        let takers = park.split_off(active - bounds.max);
        let why = Some(Reason::TooManyLanes { active, max: bounds.max });
        return Some(Change { park, takers, forced: true, why, ..Change::default() });
    }
    None
}

/// Lanes in ascending order of load; between equals the higher number first, so that the low ones
/// stay.
fn least_loaded(load: &LoadSnapshot, lanes: impl Iterator<Item = LaneId>) -> Vec<LaneId> {
    let mut lanes: Vec<LaneId> = lanes.collect();
    lanes.sort_unstable_by_key(|lane| (load.load(*lane), std::cmp::Reverse(*lane)));
    lanes
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::{LaneBounds, LaneLoad, ShardLoad};

    /// Active lanes with ten equal shards each, and `parked` lanes.
    fn lanes(percents: &[u64], parked: usize, bounds: (usize, usize)) -> LoadSnapshot {
        of_shards(&percents.iter().map(|p| vec![p / 10; 10]).collect::<Vec<_>>(), parked, bounds)
    }

    fn of_shards(lanes: &[Vec<u64>], parked: usize, (min, max): (usize, usize)) -> LoadSnapshot {
        let shards = (0..).map(LaneId).zip(lanes).flat_map(|(owner, shards)| {
            let shard = move |p: &u64| ShardLoad { owner, load: Load::from_percent(*p) };
            shards.iter().map(shard).collect::<Vec<_>>()
        });
        let shards = shards.collect();
        let mut lanes = vec![LaneLoad::ACTIVE; lanes.len()];
        lanes.extend(vec![LaneLoad::PARKED; parked]);
        let period = Duration::from_millis(100);
        LoadSnapshot::new(lanes, shards, LaneBounds { min, max }, period).unwrap()
    }

    fn change(load: &LoadSnapshot) -> Change {
        Scaling::default().change(Time::from_secs(1), load)
    }

    #[test]
    fn a_lane_is_added_above_the_target_if_there_is_one() {
        assert_eq!(change(&lanes(&[80, 80], 1, (1, 3))), Change::default());
        assert_eq!(change(&lanes(&[90, 80], 1, (1, 3))).wake, [LaneId(2)]);
        let full = change(&lanes(&[90, 80], 1, (1, 2)));
        assert!(full.wake.is_empty());
        assert!(matches!(full.why, Some(Reason::CannotScaleOut { .. })));
    }

    #[test]
    fn a_lane_is_parked_when_more_than_one_and_the_reserve_is_to_spare() {
        // Three lanes have 2.4 below the target; 1.15 must be left.
        assert_eq!(change(&lanes(&[50, 40, 30], 0, (1, 3))).park, [LaneId(2)]);
        assert_eq!(change(&lanes(&[50, 40, 40], 0, (1, 3))), Change::default());
        assert_eq!(change(&lanes(&[10, 10], 0, (1, 2))), Change::default(), "two are kept");
        assert_eq!(change(&lanes(&[10, 10, 10], 0, (3, 3))), Change::default(), "the bound");
    }

    #[test]
    fn a_lane_is_not_parked_onto_one_that_cannot_take_it() {
        // 10 lanes of one shard each have 1.6 to spare, but two of these shards are more than a
        // lane.
        let change = change(&of_shards(&vec![vec![64]; 10], 0, (1, 10)));
        assert!(change.park.is_empty());
        assert!(matches!(change.why, Some(Reason::CannotScaleIn { .. })));
    }

    #[test]
    fn an_overloaded_lane_is_no_licence_to_overload_another() {
        // Lane 5 parked, its 42 would come upon 42: less than lane 0 has, and above the target.
        let shards = [95, 42, 42, 42, 42, 42].map(|percent| vec![percent]);
        let change = change(&of_shards(&shards, 0, (1, 6)));
        assert!(change.park.is_empty());
        let [highest, target] = [84, 80].map(Load::from_percent);
        let why = Reason::CannotScaleIn { lane: LaneId(5), highest, target };
        assert_eq!(change.why, Some(why));
    }

    #[test]
    fn a_lane_just_given_a_shard_neither_goes_nor_takes() {
        let of = lanes(&[10, 20, 30], 0, (1, 3));
        let resting = |lanes: &[usize]| {
            let mut figures = of.lanes().to_vec();
            for lane in lanes {
                figures[*lane].resting_since = Some(Time::from_millis(950));
            }
            let (shards, bounds) = (of.shards().to_vec(), of.bounds());
            change(&LoadSnapshot::new(figures, shards, bounds, of.period()).unwrap())
        };
        assert_eq!(resting(&[]).park, [LaneId(0)]);
        let one = resting(&[0]);
        assert_eq!((one.park, one.takers), (vec![LaneId(1)], vec![LaneId(2)]));
        assert_eq!(resting(&[0, 1]), Change::default(), "no lane could take its shards");
    }

    #[test]
    fn bounds_come_first() {
        assert_eq!(change(&lanes(&[10, 90], 2, (4, 4))).wake, [LaneId(2), LaneId(3)]);
        let quota = change(&lanes(&[90, 80, 90, 80], 0, (1, 2)));
        assert_eq!((quota.park, quota.forced), (vec![LaneId(3), LaneId(1)], true));
    }
}
