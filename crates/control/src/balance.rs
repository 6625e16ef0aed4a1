//! Monitor, plan, apply: while a run goes on, looks at what lanes and shards cost, asks a policy which lane
//! should own which shard, and has the shards moved.

mod balancing;
mod imbalance;
mod observation;
mod progress;
mod shard_migrator;

use std::time::Duration;

use rheostat_base::{LaneId, Time};
use rheostat_run::Move;
use rheostat_steer::policy::{
    HeavyFlow, LaneBounds, LaneCounts, LaneState, LoadEstimator, LoadSnapshot, Offloads, Plan,
    Policy, Reason,
};

pub use self::balancing::{BalanceBoard, Balancing, BalancingChange};
pub use self::observation::{HeavyShare, Observation, counts};
pub use self::progress::{Progress, Role};
pub use self::shard_migrator::ShardMigrator;

use self::imbalance::ImbalanceMeter;

/// How often shards that are moving are looked after.
const GLANCE: Duration = Duration::from_micros(100);

/// The controller of a run. It reads no clock and sleeps nowhere: its driver, a thread or a simulation, calls
/// [`Balancer::step`] at the times that it returns.
///
/// Nothing is planned while shards are moving, so a plan never meets its predecessor's moves.
pub struct Balancer {
    policy: Box<dyn Policy>,
    /// In place of the policy's own pace.
    interval: Option<Duration>,
    estimator: LoadEstimator,
    imbalance: ImbalanceMeter,
    bounds: LaneBounds,
    lanes: Vec<BalancedLane>,
    /// Lanes that the last plan gives shards, until these have arrived.
    receiving: Vec<LaneId>,
    /// By lane, its offloading lane.
    links: Vec<Option<LaneId>>,
    /// What is to leave once the moves of the same plan are over.
    leaving: Option<Offloads>,
    /// When to plan.
    due: Time,
    plans: u64,
    /// Why the last plan is as it is.
    why: Vec<Reason>,
}

#[derive(Clone, Copy)]
struct BalancedLane {
    state: LaneState,
    /// When it was last given a shard.
    given: Option<Time>,
}

/// What a controller saw and did.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// The policy's name.
    pub policy: &'static str,
    /// How many times it was asked.
    pub plans: u64,
    /// How much more the busiest lane worked than a fair share, all intervals between plans taken
    /// together: 1 when all lanes worked alike in each, the number of lanes when always one did all the
    /// work. `None` when there was no work.
    pub imbalance: Option<f64>,
    /// What it did at last, and predicted.
    pub progress: Progress,
}

impl Balancer {
    /// A controller for a run of `lanes` lanes and `shards` shards that starts at `now`, with its counters
    /// at zero. It plans every `interval`, or as often as the policy wants.
    pub fn new(
        policy: Box<dyn Policy>,
        interval: Option<Duration>,
        (lanes, shards): (usize, usize),
        now: Time,
    ) -> Balancer {
        Balancer {
            due: now + interval.unwrap_or_else(|| policy.period()),
            policy,
            interval,
            estimator: LoadEstimator::new(lanes, shards, LoadEstimator::SMOOTHING, now),
            imbalance: ImbalanceMeter::new(lanes),
            bounds: LaneBounds { min: 1, max: lanes },
            lanes: vec![BalancedLane { state: LaneState::Active, given: None }; lanes],
            receiving: Vec::new(),
            links: vec![None; lanes],
            leaving: None,
            plans: 0,
            why: Vec::new(),
        }
    }

    /// From the next plan on, so many lanes may be active; they are parked and woken to fit, whatever
    /// their load.
    ///
    /// # Panics
    /// Unless 1 <= `min` <= `max` <= the number of lanes.
    pub fn set_bounds(&mut self, bounds: LaneBounds) {
        let LaneBounds { min, max } = bounds;
        assert!(1 <= min && min <= max && max <= self.lanes.len(), "{min} to {max} lanes");
        self.bounds = bounds;
    }

    /// From the next plan on, another policy plans, every `interval`, or as often as it wants. Lanes stay as they are until it
    /// has planned: it wakes and parks them.
    pub fn set_policy(&mut self, policy: Box<dyn Policy>, interval: Option<Duration>, now: Time) {
        self.due = self.due.min(now + interval.unwrap_or_else(|| policy.period()));
        (self.policy, self.interval) = (policy, interval);
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// How many times the policy was asked.
    pub fn plans(&self) -> u64 {
        self.plans
    }

    /// By lane, the offloading lane that its flows leave for.
    pub fn links(&self) -> &[Option<LaneId>] {
        &self.links
    }

    /// How often it has planned, what came of the last plan, and what was predicted.
    pub fn progress(&self) -> Progress {
        let roles = self.lanes.iter().map(|lane| match lane.state {
            LaneState::Active => Role::Working,
            LaneState::Offloading => Role::Offloading,
            LaneState::Parked => Role::Parked,
        });
        Progress {
            policy: self.policy.name(),
            plans: self.plans,
            roles: roles.collect(),
            links: self.links.clone(),
            why: self.why.iter().map(ToString::to_string).collect(),
            ..Progress::of(self.policy.predictions())
        }
    }

    /// Steps the moves that are under way, and plans when it is time to, from what lanes have done. Returns
    /// when it wants to be called again.
    ///
    /// # Panics
    /// When lanes and shards are not those it was made for, or other code has moved shards to a lane
    /// that it had parked.
    pub fn step<O: Into<Observation>>(
        &mut self,
        now: Time,
        migrator: &mut impl ShardMigrator,
        observe: impl FnOnce() -> O,
    ) -> Time {
        migrator.step(now);
        if migrator.is_idle() {
            for lane in self.receiving.drain(..) {
                self.lanes[lane.index()].given = Some(now);
            }
            if let Some(offloads) = self.leaving.take() {
                migrator.offload(&offloads, self.estimator.shards());
            }
            if now >= self.due {
                self.plan(now, migrator, observe().into());
                self.due = now + self.interval.unwrap_or_else(|| self.policy.period());
            }
        }
        let at_rest = migrator.is_idle() && self.leaving.is_none();
        if at_rest { self.due } else { now + GLANCE }
    }

    /// The end: takes in what lanes have done since the last plan.
    pub fn finish(mut self, counts: &[LaneCounts]) -> Balance {
        self.note_imbalance(counts);
        Balance {
            policy: self.policy.name(),
            plans: self.plans,
            imbalance: self.imbalance.of_all(),
            progress: self.progress(),
        }
    }

    fn plan(&mut self, now: Time, migrator: &mut impl ShardMigrator, mut seen: Observation) {
        self.note_imbalance(&seen.counts);
        let counts = std::mem::take(&mut seen.counts);
        self.estimator.update(now, counts).expect("a run's lanes and shards stay the same");
        let load = self.snapshot(migrator, seen);
        let mut plan = self.policy.plan(now, &load);
        self.plans += 1;
        self.why = std::mem::take(&mut plan.why);
        self.apply(now, plan, migrator);
    }

    fn note_imbalance(&mut self, counts: &[LaneCounts]) {
        let lanes = counts.iter().zip(&self.lanes);
        self.imbalance.note(lanes.map(|(lane, known)| (lane.busy_ns, known.state)));
    }

    fn snapshot(&self, migrator: &impl ShardMigrator, seen: Observation) -> LoadSnapshot {
        let Observation { classes, heavy, rewrite, .. } = seen;
        let lanes: Vec<_> = self.lanes.iter().map(|lane| (lane.state, lane.given)).collect();
        let load = self.estimator.snapshot(migrator.owners(), &lanes, self.bounds);
        let load = load.expect("parked lanes own nothing, and one lane is active");
        let shares = self.estimator.offloaded().to_vec();
        let load = load.with_offloads(Offloads { links: self.links.clone(), shares });
        let mut load = load.expect("links lead from active to offloading lanes");
        if !classes.is_empty() {
            load = load.with_classes(classes).expect("figures are those of the lanes");
        }
        let of_share = |&HeavyShare { shard, part }: &HeavyShare| HeavyFlow {
            shard,
            load: self.estimator.shards()[shard.index()].times(part),
        };
        let load = load.with_heavy(heavy.iter().map(of_share).collect());
        let load = load.expect("flows are those of the shards");
        match rewrite {
            Some(rewrite) => load.with_rewrite(rewrite),
            None => load,
        }
    }

    fn apply(&mut self, now: Time, plan: Plan, migrator: &mut impl ShardMigrator) {
        for lane in plan.wake {
            self.lanes[lane.index()].state = LaneState::Active;
        }
        for lane in plan.park {
            self.lanes[lane.index()].state = LaneState::Parked;
        }
        if let Some(offloads) = plan.offloads {
            for (id, lane) in (0..).map(LaneId).zip(&mut self.lanes) {
                match (offloads.is_target(id), lane.state) {
                    (true, _) => lane.state = LaneState::Offloading,
                    (false, LaneState::Offloading) => lane.state = LaneState::Parked,
                    (false, LaneState::Active | LaneState::Parked) => {}
                }
            }
            self.links.clone_from(&offloads.links);
            self.leaving = Some(offloads);
        }
        let moves =
            plan.moves.iter().map(|one| Move { shard: one.shard, from: one.from, to: one.to });
        let moves: Vec<_> = moves.collect();
        migrator.start(&moves, now).expect("a plan fits the owners it was made for");
        self.receiving = moves.iter().map(|one| one.to).collect();
    }
}

impl std::fmt::Debug for Balancer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Balancer").field("policy", &self.policy.name()).finish_non_exhaustive()
    }
}
