//! The controller over lanes that the test polls, with loads that the test makes up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rheostat_base::{LaneId, ShardId, Time};
use rheostat_control::config::BalanceConfig;
use rheostat_control::{Balance, Balancer};
use rheostat_run::runtime::build_lanes;
use rheostat_run::{Lane, Migrator};
use rheostat_steer::policy::{
    self, LaneBounds, LaneCounts, Load, LoadSnapshot, Plan, Policy, PolicyRegistration, by_name,
};
use rheostat_testkit::runtime::{config, pool, shards};
use rheostat_testkit::service::bounce;

const SHARDS: usize = 128;
const PERIOD: Duration = Duration::from_millis(100);

/// Lanes that get no packets.
fn lanes(count: usize) -> Vec<Lane> {
    let config = config(count, SHARDS, pool(256));
    build_lanes(&config, &mut [], |_| bounce(), shards(SHARDS, 8, ())).unwrap()
}

/// A run in virtual time. Each shard makes its owner busy for a part of each second.
struct World {
    lanes: Vec<Lane>,
    migrator: Migrator,
    balancer: Balancer,
    /// Of each shard, the part of a lane's time that it takes, in percent.
    weights: Vec<f64>,
    counts: Vec<LaneCounts>,
    now: Time,
}

impl World {
    fn new(count: usize, policy: Box<dyn Policy>, weights: Vec<f64>) -> World {
        let mut lanes = lanes(count);
        let migrator = Migrator::new(&mut lanes, Vec::new());
        let balancer = Balancer::new(policy, Some(PERIOD), (count, SHARDS), Time::ZERO);
        let counts = LaneCounts { shards: vec![0; SHARDS], ..LaneCounts::default() };
        World { lanes, migrator, balancer, weights, counts: vec![counts; count], now: Time::ZERO }
    }

    fn named(count: usize, policy: &str, weights: Vec<f64>) -> World {
        World::new(count, by_name(policy).unwrap(), weights)
    }

    /// Works on until `now + time`, stepping as the controller asks; lanes are polled if `polled`.
    fn run(&mut self, time: Duration, polled: bool) {
        let end = self.now + time;
        while self.now < end {
            let World { balancer, migrator, counts, .. } = self;
            let next = balancer.step(self.now, migrator, || counts.clone());
            assert!(next > self.now, "the controller gets on");
            if polled {
                self.lanes.iter_mut().for_each(|lane| {
                    lane.poll(self.now);
                });
            }
            let next = next.min(end);
            self.work(next.since(self.now));
            self.now = next;
        }
    }

    fn work(&mut self, time: Duration) {
        for (shard, weight) in self.weights.iter().enumerate() {
            let owner = &mut self.counts[self.migrator.owners()[shard].index()];
            let nanos = (time.as_nanos() as f64 * weight / 100.0) as u64;
            owner.busy_ns += nanos;
            owner.shards[shard] += nanos;
        }
    }

    /// How much of its time each lane is busy at present, in percent.
    fn loads(&self) -> Vec<f64> {
        let mut loads = vec![0.0; self.lanes.len()];
        for (owner, weight) in self.migrator.owners().iter().zip(&self.weights) {
            loads[owner.index()] += weight;
        }
        loads
    }

    /// Lanes with work.
    fn active(&self) -> usize {
        self.loads().iter().filter(|load| **load > 0.0).count()
    }

    fn finish(self) -> Balance {
        self.balancer.finish(&self.counts)
    }
}

/// Of two lanes, the first has nine tenths of the work.
fn uneven() -> Vec<f64> {
    (0..SHARDS).map(|shard| if shard % 2 == 0 { 90.0 } else { 10.0 } / 64.0).collect()
}

#[test]
fn shards_move_until_lanes_work_alike() {
    for policy in ["rsspp", "local-search"] {
        let mut world = World::named(2, policy, uneven());
        assert_eq!(world.loads().iter().map(|load| load.round()).collect::<Vec<_>>(), [90.0, 10.0]);
        world.run(Duration::from_secs(2), true);
        let loads = world.loads();
        assert!((loads[0] - loads[1]).abs() < 3.0, "{policy}: {loads:?}");
        assert!(world.migrator.is_idle() && world.migrator.moved() > 0);
        // Every lane has the shards that the migrator states, and each is there once.
        for (lane, shards) in world.lanes.iter().map(|lane| (lane.id(), lane.shards())) {
            let owned = world.migrator.owners().iter().filter(|owner| **owner == lane).count();
            assert_eq!(shards.iter().count(), owned);
        }
        let balance = world.finish();
        assert_eq!((balance.policy, balance.plans > 10), (policy, true));
        // A twentieth of the time at 1.8, the rest near 1.
        let imbalance = balance.imbalance.unwrap();
        assert!((1.0..1.2).contains(&imbalance), "{policy}: {imbalance}");
    }
}

#[test]
fn nothing_moves_without_a_policy_that_says_so() {
    let mut world = World::named(2, "rss", uneven());
    world.run(Duration::from_secs(2), true);
    assert_eq!(world.migrator.moved(), 0);
    let imbalance = world.finish().imbalance.unwrap();
    assert!((imbalance - 1.8).abs() < 1e-3, "{imbalance}");
}

#[test]
fn lanes_are_parked_when_there_is_little_to_do_and_woken_when_there_is_more() {
    let mut world = World::named(4, "rsspp", vec![20.0 / SHARDS as f64; SHARDS]);
    world.run(Duration::from_secs(3), true);
    let working = |world: &World| world.loads().iter().filter(|load| **load > 0.0).count();
    assert_eq!(working(&world), 2, "{:?}", world.loads());
    world.weights = vec![300.0 / SHARDS as f64; SHARDS];
    world.run(Duration::from_secs(3), true);
    assert_eq!(working(&world), 4, "{:?}", world.loads());
    let loads = world.loads();
    assert!(loads.iter().all(|load| (70.0..80.0).contains(load)), "{loads:?}");
}

/// Moves the first shard to the other of two lanes whenever it is asked.
struct ToAndFro(Arc<AtomicUsize>);

impl Policy for ToAndFro {
    fn name(&self) -> &'static str {
        "to-and-fro"
    }

    fn plan(&mut self, _: Time, load: &LoadSnapshot) -> Plan {
        use rheostat_steer::policy::{Load, Move, MoveReason};
        self.0.fetch_add(1, Ordering::Relaxed);
        let (shard, from) = (ShardId(0), load.shards()[0].owner);
        let why = MoveReason::Exchange { load: Load::ZERO };
        let moves = vec![Move { shard, from, to: LaneId(1 - from.0), why }];
        Plan { moves, ..Plan::default() }
    }

    fn period(&self) -> Duration {
        unreachable!("an interval is set")
    }
}

#[test]
fn nothing_is_planned_while_shards_are_moving() {
    let plans = Arc::new(AtomicUsize::new(0));
    let asked = || plans.load(Ordering::Relaxed);
    let mut world = World::new(2, Box::new(ToAndFro(plans.clone())), uneven());
    world.run(10 * PERIOD, false);
    assert_eq!((asked(), world.migrator.moving()), (1, 1), "the lanes do not get on");
    // Once they do, the next plan is made at once, and then one in each interval.
    world.run(PERIOD / 2, true);
    assert_eq!(asked(), 2);
    world.run(10 * PERIOD, true);
    assert_eq!(asked(), 12);
    assert!(world.migrator.moved() >= 11);
}

#[test]
fn lanes_are_parked_and_woken_to_fit_bounds_that_change() {
    // As with a cgroup's quota that is lowered and raised while the run goes on.
    let mut world = World::named(4, "rsspp", vec![1.6; SHARDS]);
    world.run(Duration::from_secs(1), true);
    assert_eq!(world.active(), 4, "51 % each are not enough to spare");
    world.balancer.set_bounds(LaneBounds { min: 1, max: 2 });
    world.run(Duration::from_secs(1), true);
    assert_eq!(world.active(), 2);
    world.balancer.set_bounds(LaneBounds { min: 1, max: 4 });
    world.run(Duration::from_secs(2), true);
    assert_eq!(world.active(), 3, "two are more than full, 68 % is not too much for three");
    world.balancer.set_bounds(LaneBounds { min: 4, max: 4 });
    world.run(Duration::from_secs(2), true);
    assert_eq!(world.active(), 4);
}

#[test]
fn no_lane_is_parked_below_what_the_target_allows() {
    for (target, lanes) in [(0.5, 4), (0.6, 3), (0.8, 2)] {
        let config = BalanceConfig {
            policy: PolicyRegistration::named(&policy::ALL, "rsspp").unwrap(),
            target: Load::from_share(target).unwrap(),
            ..BalanceConfig::default()
        };
        let mut world = World::new(4, config.policy(), vec![0.9; SHARDS]);
        world.run(Duration::from_secs(3), true);
        assert_eq!(world.active(), lanes, "target {target}: {:?}", world.loads());
    }
}
