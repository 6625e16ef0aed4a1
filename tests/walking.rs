//! Walks through the flows of a run: each flow that stays is met once, whichever lanes have its shard meanwhile, a client that does
//! not read costs no memory, and flows are deleted as if their time were up.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat_base::{LaneId, ShardId, Time};
use rheostat_io::Pacing;
use rheostat_packet::FlowKey;
use rheostat_run::listing::{
    FlowRecord, MOST_WAITING, Record, Subject, TooManyWalks, Value, WALKS, WalkBoard, WalkHandle,
    WalkRequest, WalkResult,
};
use rheostat_run::{Migrator, Move, TimeSource};
use rheostat_testkit::world::{Setup, World};
use rheostat_traffic::{Mix, MixConfig};

/// A run in which every choice follows from a seed: lanes are polled in turn, and shards move.
struct Moving {
    world: World,
    migrator: Migrator,
    rng: StdRng,
}

impl Moving {
    fn new(seed: u64, flows: u32, change: impl FnOnce(&mut Setup)) -> Moving {
        let mut setup = Setup {
            time: TimeSource::Poll,
            pacing: Pacing::OpenLoop { origin: Some(Time::ZERO) },
            ..Setup::lossless(3)
        };
        change(&mut setup);
        let mix = MixConfig { seed, flows, packets_per_second: 2_000_000, ..MixConfig::default() };
        let mut world = World::open(&setup, Box::new(Mix::new(mix).expect("a mix")));
        let table = world.table();
        let migrator = Migrator::new(&mut world.lanes, vec![table]);
        Moving { world, migrator, rng: StdRng::seed_from_u64(seed) }
    }

    /// Some microseconds, with packets.
    fn step(&mut self) {
        self.world.now += Duration::from_nanos(self.rng.random_range(1..20_000));
        self.world.deliver();
        for lane in 0..self.world.lanes.len() {
            if self.rng.random_ratio(2, 3) {
                self.world.poll(lane);
            }
        }
        self.migrator.step(self.world.now);
    }

    /// Begins a walk, and lets the lanes see it at once.
    fn walk(&mut self, request: WalkRequest) -> WalkHandle {
        let walk = self.world.walk(request);
        self.migrator.call_services();
        walk
    }

    /// A shard begins to move.
    fn move_one(&mut self) {
        let shard = ShardId(self.rng.random_range(0..self.migrator.owners().len() as u16));
        let to = LaneId(self.rng.random_range(0..self.world.lanes.len() as u16));
        let from = self.migrator.owners()[shard.index()];
        if from != to && !self.migrator.is_moving(shard) {
            self.migrator.start(&[Move { shard, from, to }], self.world.now).expect("an owner");
        }
    }

    fn flows_ended(&self) -> u64 {
        self.world.lanes.iter().map(|lane| lane.counters().flows_ended.get()).sum()
    }

    /// Goes on with `step` until the walk is over; its flows, and what came of it.
    fn finish(
        &mut self,
        mut walk: WalkHandle,
        mut step: impl FnMut(&mut Moving),
    ) -> (Vec<FlowRecord>, WalkResult) {
        let (mut flows, mut steps) = (Vec::new(), 0);
        let flow = |record| match record {
            Record::Flow(flow) => flow,
            Record::Entry(entry) => panic!("the firewall has no entries: {entry:?}"),
        };
        while !walk.is_over() {
            step(self);
            flows.extend(walk.take().into_iter().map(flow));
            steps += 1;
            assert!(steps < 500_000, "the walk does not get on");
        }
        flows.extend(walk.take().into_iter().map(flow));
        (flows, walk.result())
    }
}

fn flows() -> WalkRequest {
    WalkRequest::of(Subject::Flows)
}

#[test]
fn each_flow_that_stays_is_listed_once_while_shards_move() {
    for seed in 0..2 {
        let mut run = Moving::new(seed, 2_000, |_| {});
        (0..3_000).for_each(|_| run.step());
        let walk = run.walk(flows());
        let (before, _) = run.finish(walk, |run| {
            // No packets: what is listed is what there is.
            run.world.now += Duration::from_micros(100);
            (0..3).for_each(|lane| _ = run.world.lanes[lane].poll(run.world.now));
        });
        assert!(before.len() > 1_000, "{} flows", before.len());
        let (moved, ended) = (run.migrator.moved(), run.flows_ended());
        let walk = run.walk(flows());
        let (listed, result) = run.finish(walk, |run| {
            run.step();
            if run.rng.random_ratio(1, 40) {
                run.move_one();
            }
        });
        assert_eq!(run.flows_ended(), ended, "the seed is to let all flows live");
        assert!(run.migrator.moved() > moved + 20, "few shards have moved");
        let mut times: HashMap<FlowKey, u32> = HashMap::new();
        listed.iter().for_each(|flow| *times.entry(flow.key).or_default() += 1);
        assert!(times.values().all(|times| *times == 1), "seed {seed}: a flow is listed twice");
        for flow in &before {
            assert!(times.contains_key(&flow.key), "seed {seed}: {} is missing", flow.key);
        }
        assert_eq!(result.matched, listed.len() as u64);
        assert_eq!((result.missing_shards, result.next), (0, None));
        let states = listed.iter().map(|flow| flow.functions[0].fields.get("state"));
        assert!(states.flatten().any(|state| *state == Value::Text("established".into())));
        let lanes: HashSet<_> = listed.iter().map(|flow| flow.lane).collect();
        assert_eq!(lanes.len(), 3);
    }
}

#[test]
fn a_walk_in_order_goes_on_where_it_stopped() {
    let mut run = Moving::new(9, 1_000, |_| {});
    (0..2_000).for_each(|_| run.step());
    let still = |run: &mut Moving| {
        run.world.now += Duration::from_micros(300);
        (0..3).for_each(|lane| _ = run.world.lanes[lane].poll(run.world.now));
    };
    let walk = run.walk(flows());
    let (all, _) = run.finish(walk, still);
    let (mut pages, mut from) = (Vec::new(), None);
    loop {
        let walk = run.walk(WalkRequest { most: Some(100), from, ..flows() });
        let (page, result) = run.finish(walk, still);
        assert!(page.len() <= 100);
        pages.extend(page);
        from = result.next;
        if from.is_none() {
            break;
        }
    }
    let sorted = |flows: &[FlowRecord]| {
        let mut keys: Vec<_> = flows.iter().map(|flow| flow.key.to_string()).collect();
        keys.sort();
        keys
    };
    assert_eq!(sorted(&pages), sorted(&all));
    assert!(pages.is_sorted_by_key(|flow| flow.shard), "in the order of shards");
    let walk = run.walk(WalkRequest::of(Subject::FlowCount));
    let (none, result) = run.finish(walk, still);
    assert_eq!((none.len(), result.matched), (0, all.len() as u64));
    let shard = all[0].shard;
    let walk = run.walk(WalkRequest { shard: Some(shard), ..flows() });
    let (of_shard, _) = run.finish(walk, still);
    assert_eq!(of_shard.len(), all.iter().filter(|flow| flow.shard == shard).count());
    let walk = run.walk(WalkRequest { lane: Some(LaneId(1)), ..flows() });
    let (of_lane, _) = run.finish(walk, still);
    assert_eq!(of_lane.len(), all.iter().filter(|flow| flow.lane == LaneId(1)).count());
}

#[test]
fn lanes_pause_for_a_client_that_does_not_read_and_no_flow_is_lost() {
    let mut run = Moving::new(5, 8_000, |setup| setup.buffers = 16_384);
    (0..5_000).for_each(|_| run.step());
    let mut walk = run.walk(flows());
    drop(run.world.take_sent());
    (0..4_000).for_each(|_| run.step());
    assert!(!walk.is_over(), "there are more flows than may wait");
    let waiting = walk.take();
    assert!(waiting.len() <= MOST_WAITING, "{} records waited", waiting.len());
    assert!(waiting.len() > MOST_WAITING / 2, "{} records waited", waiting.len());
    assert!(run.world.take_sent().len() > 1_000, "packets go on meanwhile");
    let (rest, result) = run.finish(walk, Moving::step);
    assert_eq!(result.matched, (waiting.len() + rest.len()) as u64);
    let outcome = run.world.finish();
    assert_eq!(outcome.violations, []);
}

#[test]
fn a_deletion_ends_the_flows_that_are_meant_and_nothing_else() {
    let mut run = Moving::new(7, 2_000, |_| {});
    (0..3_000).for_each(|_| run.step());
    let is_meant = |key: &FlowKey, _: Option<&FlowKey>| key.protocol() == 17;
    let walk = run.walk(flows());
    let still = |run: &mut Moving| {
        run.world.now += Duration::from_micros(300);
        (0..3).for_each(|lane| _ = run.world.lanes[lane].poll(run.world.now));
    };
    let (before, _) = run.finish(walk, still);
    let meant = before.iter().filter(|flow| is_meant(&flow.key, None)).count() as u64;
    assert!(meant > 50 && meant < before.len() as u64, "{meant} of {}", before.len());
    let (ended, sent) = (run.flows_ended(), run.world.take_sent().len());
    assert!(sent > 0);
    let deletion =
        WalkRequest { filter: Some(Box::new(is_meant)), ..WalkRequest::of(Subject::Deletion) };
    let walk = run.walk(deletion);
    let (listed, result) = run.finish(walk, still);
    assert_eq!((listed.len(), result.matched), (0, meant));
    assert_eq!(run.flows_ended() - ended, meant, "each flow ends once");
    assert_eq!(run.world.take_sent().len(), 0, "nothing is sent");
    let walk = run.walk(flows());
    let (after, _) = run.finish(walk, still);
    assert_eq!(after.len() as u64, before.len() as u64 - meant);
    assert!(after.iter().all(|flow| !is_meant(&flow.key, None)));
    assert_eq!(run.world.finish().violations, []);
}

#[test]
fn flows_that_are_away_are_listed_and_come_home_to_be_deleted() {
    let mut run = Moving::new(3, 300, |setup| setup.offloading = 1);
    for lane in 0..2 {
        run.migrator.offload(LaneId(lane), Some(LaneId(2)), 100);
    }
    (0..4_000).for_each(|_| run.step());
    let away: usize = run.world.lanes.iter().map(|lane| lane.flows_away()).sum();
    assert!(away > 0, "no flow is away");
    let walk = run.walk(flows());
    let (listed, _) = run.finish(walk, |run| {
        // Home alone is polled: no flow leaves, and none comes home.
        run.world.now += Duration::from_micros(100);
        (0..2).for_each(|lane| _ = run.world.lanes[lane].poll(run.world.now));
        run.world.lanes[2].poll(run.world.now);
    });
    let away_listed = listed.iter().filter(|flow| flow.is_away).count();
    assert!(away_listed > 0, "of {} flows, none is listed as away", listed.len());
    assert!(listed.iter().all(|flow| flow.is_away == flow.functions.is_empty()));
    let keys: HashSet<_> = listed.iter().map(|flow| flow.key).collect();
    assert_eq!(keys.len(), listed.len());
    let ended = run.flows_ended();
    let walk = run.walk(WalkRequest::of(Subject::Deletion));
    let (_, result) = run.finish(walk, Moving::step);
    assert!(result.matched >= listed.len() as u64);
    assert!(run.flows_ended() - ended >= result.matched);
    let outcome = run.world.finish();
    assert_eq!(outcome.violations, []);
    assert_eq!((outcome.sum.on_hold, outcome.sum.flows_away), (0, 0));
}

#[test]
fn a_few_clients_walk_at_a_time_and_one_that_goes_makes_room() {
    let board = std::sync::Arc::new(WalkBoard::default());
    let begin = || WalkHandle::begin(&board, flows(), 1, 4);
    let mut walks: Vec<_> = (0..WALKS).map(|_| begin().unwrap()).collect();
    assert_eq!(begin().unwrap_err(), TooManyWalks);
    let word = board.word();
    walks.pop();
    assert_ne!(board.word(), word, "lanes see that it has gone");
    let last = begin().unwrap();
    assert_eq!(last.result(), WalkResult { matched: 0, missing_shards: 4, next: None });
}
