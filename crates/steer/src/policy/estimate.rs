//! From raw counters to smoothed loads.

use std::time::Duration;

use rheostat_base::{LaneId, Time};
use thiserror::Error;

use super::cost_fit::{CostFit, WorkCost};
use super::handover_fit::{HandoverFit, PARTS};
use super::{LaneBounds, LaneLoad, LaneState, Load, LoadSnapshot, ShardLoad, SnapshotError};

/// What a lane has counted since it began; only ever grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Nanoseconds in polls that found work. Time that a hypervisor took away lies in busy and idle
    /// polls alike, so it is left in both this and the elapsed time, and their quotient is what it
    /// would be without.
    pub busy_ns: u64,
    /// By shard, the work done for it: cycles, or packets where cycles are not counted. Work that
    /// another core did for a lane's shard is counted for that shard. Empty where shards are not told
    /// apart: then all of the lane's work is its own.
    pub shards: Vec<u64>,
    /// By shard, the bytes of the packets in `shards`, where that counts packets; empty otherwise. Costs of packets and bytes are
    /// then fitted to what lanes were busy.
    pub bytes: Vec<u64>,
    /// By shard, the work done for flows that a working lane handed over, in the same unit. Empty for lanes that are handed
    /// none.
    pub offloaded: Vec<u64>,
    /// Packets, or cycles, of what the lane only handed to others. Where packets are counted, what handing one over costs is
    /// learned.
    pub other: u64,
}

/// Why counts were not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CountsError {
    /// There are more or fewer lanes than at first.
    #[error("{given} lanes were counted, not {expected}; give one count for each, parked or not")]
    Lanes {
        /// Lanes counted.
        given: usize,
        /// Lanes there are.
        expected: usize,
    },
    /// A lane has counted more or fewer shards than there are.
    #[error(
        "{lane} counted {given} shards, not {expected}; give one figure for each, owned or not"
    )]
    Shards {
        /// The lane.
        lane: LaneId,
        /// Shards it counted.
        given: usize,
        /// Shards there are.
        expected: usize,
    },
}

/// Smoothed loads of shards and lanes.
///
/// A lane's load is its busy time over the elapsed time; a shard's is the part of it that the shard
/// had of the lane's work (RSS++ 3.1, 4). Where packets and bytes are counted, work is both at the costs that fit the
/// lanes' busy times best so far; packets alone as long as these costs cannot be told apart. Both are smoothed exponentially with a weight of t/(t +
/// τ) for what was measured over a time t, so that longer periods count for more. A shard's load
/// follows it when it moves, so after a migration a lane's load is already that of the shards it
/// now has.
#[derive(Clone, Debug)]
pub struct LoadEstimator {
    smoothing: Duration,
    last: Time,
    counts: Vec<LaneCounts>,
    period: Duration,
    shards: Vec<Load>,
    /// What offloading lanes did of it, by shard.
    away: Vec<Load>,
    others: Vec<Load>,
    fit: CostFit,
    cost: WorkCost,
    handover: HandoverFit,
}

impl LoadEstimator {
    /// The time constant τ to use where nothing speaks for another: with a period of 100 ms the
    /// last one counts two thirds, as in the published code of RSS++.
    pub const SMOOTHING: Duration = Duration::from_millis(50);

    /// An estimator of `lanes` lanes and `shards` shards whose counters stand at zero at `now`.
    pub fn new(lanes: usize, shards: usize, smoothing: Duration, now: Time) -> LoadEstimator {
        let counts = LaneCounts { shards: vec![0; shards], ..LaneCounts::default() };
        LoadEstimator {
            smoothing,
            last: now,
            counts: vec![counts; lanes],
            period: Duration::ZERO,
            shards: vec![Load::ZERO; shards],
            away: vec![Load::ZERO; shards],
            others: vec![Load::ZERO; lanes],
            fit: CostFit::default(),
            cost: WorkCost::PACKETS,
            handover: HandoverFit::default(),
        }
    }

    /// Takes in what the lanes have counted until `now`. The first time, nothing is smoothed; when
    /// no time has passed, nothing happens.
    ///
    /// # Errors
    /// [`CountsError`] when there are more or fewer lanes or shards than at first, and nothing is
    /// changed.
    pub fn update(&mut self, now: Time, counts: Vec<LaneCounts>) -> Result<(), CountsError> {
        if counts.len() != self.counts.len() {
            let (given, expected) = (counts.len(), self.counts.len());
            return Err(CountsError::Lanes { given, expected });
        }
        let expected = self.shards.len();
        let mut lanes = (0..).map(LaneId).zip(&counts);
        let all_or_none = |work: &Vec<u64>| work.is_empty() || work.len() == expected;
        let fits = |lane: &LaneCounts| all_or_none(&lane.shards) && all_or_none(&lane.offloaded);
        if let Some((lane, counts)) = lanes.find(|(_, lane)| !fits(lane)) {
            let lengths = [&counts.shards, &counts.bytes, &counts.offloaded].map(Vec::len);
            let given = lengths.into_iter().find(|given| *given != expected).unwrap_or(0);
            return Err(CountsError::Shards { lane, given, expected });
        }
        let elapsed = now.since(self.last);
        if elapsed.is_zero() {
            return Ok(());
        }
        self.fit_costs(&counts);
        let (first, cost, handover) = (self.period.is_zero(), self.cost, self.handover);
        let smooth = |old: Load, new: Load| match first {
            true => new,
            false => weigh(old, new, elapsed, self.smoothing),
        };
        let (mut shards, mut away) = (vec![Load::ZERO; expected], vec![Load::ZERO; expected]);
        for ((before, after), other) in self.counts.iter().zip(&counts).zip(&mut self.others) {
            let busy = Duration::from_nanos(after.busy_ns.saturating_sub(before.busy_ns));
            let busy = Load::of(busy, elapsed);
            *other = smooth(
                *other,
                share_out(busy, (before, after), (cost, &handover), &mut shards, &mut away),
            );
        }
        for (old, (new, away)) in self.shards.iter_mut().zip(shards.into_iter().zip(&away)) {
            *old = smooth(*old, new + *away);
        }
        for (old, new) in self.away.iter_mut().zip(away) {
            *old = smooth(*old, new);
        }
        (self.last, self.counts, self.period) = (now, counts, elapsed);
        Ok(())
    }

    /// Learns what packets and bytes cost, where both are counted.
    fn fit_costs(&mut self, counts: &[LaneCounts]) {
        self.fit.age();
        for (before, after) in self.counts.iter().zip(counts) {
            if after.bytes.is_empty() {
                continue;
            }
            let sum = |after: &[u64], before: &[u64]| since(after, before).sum::<u64>();
            let packets = sum(&after.shards, &before.shards);
            // What only passes a lane is no packet of its shards, and would be taken for one that costs as much.
            let other = after.other.saturating_sub(before.other);
            if other < packets / 8 {
                let busy = after.busy_ns.saturating_sub(before.busy_ns);
                self.fit.add(packets, sum(&after.bytes, &before.bytes), busy);
            }
        }
        self.cost = self.fit.cost().unwrap_or(self.cost);
        self.fit_handover(counts);
    }

    /// Learns what handing a packet over costs, beside what a packet costs.
    fn fit_handover(&mut self, counts: &[LaneCounts]) {
        self.handover.age();
        let mut looks: Vec<(u64, u64, u64)> = Vec::new();
        for (before, after) in self.counts.iter().zip(counts) {
            let sum = |of: fn(&LaneCounts) -> &Vec<u64>| since(of(after), of(before)).sum::<u64>();
            let handed = after.other.saturating_sub(before.other);
            let busy = after.busy_ns.saturating_sub(before.busy_ns);
            looks.push((sum(|lane| &lane.shards) + sum(|lane| &lane.offloaded), handed, busy));
        }
        looks.sort_by_key(|(_, handed, _)| *handed);
        looks.into_iter().for_each(|(own, handed, busy)| self.handover.add(own, handed, busy));
    }

    /// What packets and bytes cost, as far as that is known.
    pub fn cost(&self) -> WorkCost {
        self.cost
    }

    /// A shard's load, by shard.
    pub fn shards(&self) -> &[Load] {
        &self.shards
    }

    /// What offloading lanes did of it, by shard.
    pub fn offloaded(&self) -> &[Load] {
        &self.away
    }

    /// The loads as a policy wants them: of shards that belong to `owners`, and of lanes that are
    /// in the given states, each with the time it last was given a shard.
    ///
    /// # Errors
    /// [`SnapshotError`] when owners, states and bounds contradict each other.
    ///
    /// # Panics
    /// When there is not one owner per shard and one state per lane.
    pub fn snapshot(
        &self,
        owners: &[LaneId],
        lanes: &[(LaneState, Option<Time>)],
        bounds: LaneBounds,
    ) -> Result<LoadSnapshot, SnapshotError> {
        assert_eq!(owners.len(), self.shards.len(), "one owner per shard");
        assert_eq!(lanes.len(), self.others.len(), "one state per lane");
        let lanes = lanes.iter().zip(&self.others).map(|((state, since), other)| match state {
            LaneState::Active => LaneLoad { state: *state, other: *other, resting_since: *since },
            LaneState::Offloading => LaneLoad { other: *other, ..LaneLoad::OFFLOADING },
            LaneState::Parked => LaneLoad::PARKED,
        });
        let shards = owners.iter().zip(&self.shards);
        let shards = shards.map(|(owner, load)| ShardLoad { owner: *owner, load: *load });
        LoadSnapshot::new(lanes.collect(), shards.collect(), bounds, self.period)
    }
}

/// What was counted between two looks.
fn since<'a>(after: &'a [u64], before: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
    let before = before.iter().copied().chain(std::iter::repeat(0));
    after.iter().zip(before).map(|(after, before)| after.saturating_sub(before))
}

/// Adds to each shard its part of a lane's busy time, to `away` where the shard is another lane's, and returns what belongs
/// to none, rounding included.
fn share_out(
    busy: Load,
    (before, after): (&LaneCounts, &LaneCounts),
    (cost, handover): (WorkCost, &HandoverFit),
    shards: &mut [Load],
    away: &mut [Load],
) -> Load {
    let cost = if after.bytes.is_empty() { WorkCost::PACKETS } else { cost };
    let own = since(&after.shards, &before.shards);
    let bytes = since(&after.bytes, &before.bytes).chain(std::iter::repeat(0));
    let own: Vec<u64> =
        own.zip(bytes).map(|(count, bytes)| cost.of(count, bytes).saturating_mul(PARTS)).collect();
    let handed: Vec<u64> = since(&after.offloaded, &before.offloaded)
        .map(|count| cost.of(count, 0).saturating_mul(PARTS))
        .collect();
    let other = handover.work(after.other.saturating_sub(before.other), cost);
    let all = own.iter().chain(&handed).copied().fold(other, u64::saturating_add);
    let mut rest = busy;
    for (work, shards) in [(own, shards), (handed, away)] {
        for (shard, work) in shards.iter_mut().zip(work) {
            let part = busy.part(work, all);
            *shard += part;
            rest = rest.saturating_sub(part);
        }
    }
    rest
}

/// `new` with a weight of t/(t + τ), `old` with the rest.
fn weigh(old: Load, new: Load, t: Duration, smoothing: Duration) -> Load {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) >> 1;
    let (t, smoothing) = (nanos(t), nanos(smoothing));
    if t + smoothing == 0 {
        return new;
    }
    new.part(t, t + smoothing) + old.part(smoothing, t + smoothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: LaneBounds = LaneBounds { min: 1, max: 2 };
    const ACTIVE: (LaneState, Option<Time>) = (LaneState::Active, None);

    fn counts(busy_ms: u64, shards: &[u64], other: u64) -> LaneCounts {
        let shards = shards.to_vec();
        LaneCounts { busy_ns: busy_ms * 1_000_000, shards, other, ..LaneCounts::default() }
    }

    fn percent(percent: u64) -> Load {
        Load::from_percent(percent)
    }

    #[test]
    fn a_shard_has_the_part_of_the_busy_time_that_it_had_of_the_work() {
        let mut estimator = LoadEstimator::new(2, 3, LoadEstimator::SMOOTHING, Time::ZERO);
        let lanes = vec![counts(80, &[300, 100, 0], 0), counts(50, &[0, 0, 4], 1)];
        estimator.update(Time::from_millis(100), lanes).unwrap();
        assert_eq!(estimator.shards(), [60, 20, 40].map(percent));
        let owners = [0, 0, 1].map(LaneId);
        let load = estimator.snapshot(&owners, &[ACTIVE; 2], BOUNDS).unwrap();
        assert_eq!(load.load(LaneId(0)), percent(80));
        assert_eq!(load.load(LaneId(1)), percent(50));
        assert_eq!(load.lanes()[1].other, percent(10));
        assert_eq!(load.period(), Duration::from_millis(100));
    }

    #[test]
    fn shards_of_large_packets_have_the_load_of_their_bytes() {
        // 200 ns for a packet and 2 ns for a byte. Shards 0 and 2 have packets of 64 bytes, 1 and 3 of 1500.
        let sizes = [64, 1_500, 64, 1_500];
        let estimate = |counts_bytes: bool| {
            let mut estimator = LoadEstimator::new(2, 4, LoadEstimator::SMOOTHING, Time::ZERO);
            let mut lanes = vec![counts(0, &[0; 4], 0), counts(0, &[0; 4], 0)];
            for period in 1..=10 {
                for (lane, count) in lanes.iter_mut().enumerate() {
                    count.bytes.resize(if counts_bytes { 4 } else { 0 }, 0);
                    for (shard, size) in sizes.iter().enumerate().skip(2 * lane).take(2) {
                        // Lane 1 has more of the small ones.
                        let packets = if (lane, shard) == (1, 2) { 9_000 } else { 6_000 };
                        count.shards[shard] += packets;
                        if counts_bytes {
                            count.bytes[shard] += packets * size;
                        }
                        count.busy_ns += packets * (200 + 2 * size);
                    }
                }
                estimator.update(Time::from_millis(100 * period), lanes.clone()).unwrap();
            }
            estimator
        };
        let truth = [0, 1].map(|shard| 6_000.0 * (200.0 + 2.0 * sizes[shard] as f64) / 1e8);
        let error = |of: &LoadEstimator| {
            [0, 1].map(|shard| (of.shards()[shard].share() / truth[shard] - 1.0).abs())
        };
        let (by_packets, fitted) = (estimate(false), estimate(true));
        assert!(
            error(&by_packets)[0] > 4.0,
            "{:?}: small packets look like large ones",
            error(&by_packets)
        );
        assert!(error(&fitted).iter().all(|error| *error < 0.01), "{:?}", error(&fitted));
        assert_eq!(fitted.cost(), WorkCost { packet_ps: 200_000, byte_ps: 2_000 });
    }

    #[test]
    fn offloaded_work_is_charged_to_its_shard() {
        let mut estimator = LoadEstimator::new(2, 2, LoadEstimator::SMOOTHING, Time::ZERO);
        let mut lanes = vec![counts(60, &[20, 40], 0), counts(30, &[0, 0], 1)];
        lanes[1].offloaded = vec![2, 0];
        estimator.update(Time::from_millis(100), lanes).unwrap();
        assert_eq!(estimator.shards(), [40, 40].map(percent));
        assert_eq!(estimator.offloaded(), [20, 0].map(percent));
    }

    #[test]
    fn handing_over_is_charged_to_the_lane_as_what_it_costs() {
        // A packet takes 50 us, handing one over 1 us; lane 0 hands half of the packets to lane 1.
        let mut estimator = LoadEstimator::new(2, 1, LoadEstimator::SMOOTHING, Time::ZERO);
        let mut lanes = vec![counts(50, &[1_000], 0), counts(0, &[0], 0)];
        estimator.update(Time::from_millis(100), lanes.clone()).unwrap();
        for period in 2..20 {
            lanes[0] = counts(50 + (period - 1) * 51, &[1_000 * period], 1_000 * (period - 1));
            lanes[1].busy_ns += 50_000_000;
            lanes[1].offloaded = vec![1_000 * (period - 1)];
            estimator.update(Time::from_millis(100 * period), lanes.clone()).unwrap();
        }
        assert!((estimator.shards()[0].share() - 1.0).abs() < 0.01, "{:?}", estimator.shards());
        assert!((estimator.offloaded()[0].share() - 0.5).abs() < 0.01);
        let lanes = [ACTIVE, (LaneState::Offloading, None)];
        let load = estimator.snapshot(&[LaneId(0)], &lanes, BOUNDS).unwrap();
        assert!((load.lanes()[0].other.share() - 0.01).abs() < 0.005, "{:?}", load.lanes());
    }

    #[test]
    fn a_load_follows_its_shard() {
        let mut estimator = LoadEstimator::new(2, 2, LoadEstimator::SMOOTHING, Time::ZERO);
        // Shard 1 moved in the middle: half of its work was done by either lane.
        let lanes = vec![counts(60, &[20, 40], 0), counts(40, &[0, 40], 0)];
        estimator.update(Time::from_millis(100), lanes).unwrap();
        let load = estimator.snapshot(&[0, 1].map(LaneId), &[ACTIVE; 2], BOUNDS).unwrap();
        assert_eq!(load.load(LaneId(0)), percent(20));
        assert_eq!(load.load(LaneId(1)), percent(80));
    }

    #[test]
    fn the_last_period_counts_two_thirds_and_a_long_one_more() {
        let mut estimator = LoadEstimator::new(1, 1, LoadEstimator::SMOOTHING, Time::ZERO);
        let at = Time::from_millis;
        estimator.update(at(100), vec![counts(90, &[1], 0)]).unwrap();
        estimator.update(at(200), vec![counts(120, &[2], 0)]).unwrap();
        assert_eq!(estimator.shards()[0].to_string(), "50.0 %");
        // 950 ms of nothing against a time constant of 50 ms.
        estimator.update(at(1150), vec![counts(120, &[2], 0)]).unwrap();
        assert_eq!(estimator.shards()[0].to_string(), "2.5 %");
        let before = estimator.clone();
        estimator.update(at(1150), vec![counts(999, &[99], 0)]).unwrap();
        assert_eq!(estimator.shards(), before.shards(), "no time has passed");
    }

    #[test]
    fn busy_time_without_any_work_belongs_to_no_shard() {
        let mut estimator = LoadEstimator::new(1, 1, Duration::ZERO, Time::ZERO);
        estimator.update(Time::from_millis(100), vec![counts(30, &[0], 0)]).unwrap();
        let load = estimator.snapshot(&[LaneId(0)], &[ACTIVE], LaneBounds { min: 1, max: 1 });
        assert_eq!(load.unwrap().lanes()[0].other, percent(30));
        // Counters that start anew do not wrap around.
        estimator.update(Time::from_millis(200), vec![counts(0, &[0], 0)]).unwrap();
        assert_eq!(estimator.shards(), [Load::ZERO]);
    }

    #[test]
    fn where_shards_are_not_told_apart_a_lanes_work_is_its_own() {
        let mut estimator = LoadEstimator::new(2, 2, Duration::ZERO, Time::ZERO);
        for (millis, busy) in [(100, 30), (200, 60)] {
            let lanes = vec![counts(busy, &[], 0), counts(busy / 3, &[], 0)];
            estimator.update(Time::from_millis(millis), lanes).unwrap();
            let load = estimator.snapshot(&[0, 1].map(LaneId), &[ACTIVE; 2], BOUNDS).unwrap();
            assert_eq!([0, 1].map(|lane| load.load(LaneId(lane))), [30, 10].map(percent));
            assert_eq!(estimator.shards(), [Load::ZERO; 2]);
        }
    }

    #[test]
    fn other_lanes_or_shards_than_at_first_are_refused() {
        let mut estimator = LoadEstimator::new(2, 1, Duration::ZERO, Time::ZERO);
        let at = Time::from_millis(100);
        let error = estimator.update(at, vec![counts(0, &[0], 0)]).unwrap_err();
        assert_eq!(error, CountsError::Lanes { given: 1, expected: 2 });
        let error =
            estimator.update(at, vec![counts(0, &[0], 0), counts(0, &[0, 0], 0)]).unwrap_err();
        let lane = LaneId(1);
        assert_eq!(error, CountsError::Shards { lane, given: 2, expected: 1 });
    }
}
