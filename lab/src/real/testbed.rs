//! What a trial runs on: lanes behind a simulated NIC, their controller, and observers.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rheostat_base::{Clock, ClockSource, DeviceId, LaneId};
use rheostat_control::config::BalanceConfig;
use rheostat_control::{BalanceBoard, Balancer, Balancing, Role};
use rheostat_functions::shipped;
use rheostat_io::{Device, Drawing, DrawnArrivals, Driver, OpenError, Pacing, SimConfig, SimNic};
use rheostat_packet::Mempool;
use rheostat_run::{
    Classes, LaneSample, LoadReporting, Routes, RunReport, Runtime, RuntimeConfig, Sample, Service,
};
use rheostat_state::{FlowHasher, Shard};
use rheostat_steer::Steering;
use rheostat_steer::policy::{Objectives, Scaling, Settings, with_settings};

use super::Trial;
use super::busy_work::BusyWork;
use super::intervals::{self, INTERVAL, Intervals, NO_ROOM};
use super::observer::Observer;
use crate::disturbance::Disturbance;
use crate::error::BenchError;
use crate::plans::{PlanLog, WatchedPlan};
use crate::record::RecordedRun;
use crate::scenario::{ChainName, LatencyGoals, Scenario, policy_of};
use crate::testbed::dut::{self, Bounce};
use crate::testbed::{Cores, lanes as runs};

/// Flows that a shard has room for.
const FLOWS: usize = 1 << 13;
const HANDOFF: usize = 1 << 12;
/// Packets that can be distinguished.
const MOST_PACKETS: u64 = 1 << 27;
/// What is drawn beyond the end of a run, which may come late.
const BEYOND: Duration = Duration::from_secs(1);
/// Memory that the packets of a run take at most while they are not due, in bytes: some hundred for each.
const MOST_MEMORY: usize = 1 << 30;

/// When packets arrive.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arriving {
    /// So many per second, ready or not.
    OpenLoop(u64),
    /// As fast as lanes take them.
    Lossless,
}

/// What one trial runs on.
pub(super) struct RealTestbed<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) trial: &'a Trial,
    /// Rounds of work per packet.
    pub(super) rounds: u32,
    pub(super) arriving: Arriving,
    /// Everything that arrives, where it was drawn before.
    pub(super) drawn: Option<DrawnArrivals>,
}

impl RealTestbed<'_> {
    /// Runs for `duration` after `warm_up`, and lets what is under way then come to its end.
    pub(super) fn run(
        &self,
        warm_up: Duration,
        duration: Duration,
    ) -> Result<RecordedRun, BenchError> {
        let steering = Arc::new(self.scenario.steering()?);
        match self.scenario.chain {
            ChainName::Firewall => {
                let chain = dut::firewall()?;
                let shards = dut::shards(&chain, &steering, FLOWS, self.random())?;
                let routes = Routes(vec![DeviceId(0)]);
                let service = |lane| chain.service(lane, &routes, None);
                self.drive(steering, service, shards, (warm_up, duration))
            }
            ChainName::Empty => {
                let shards = dut::shards(&shipped::empty(), &steering, 1, self.random())?;
                self.drive(steering, |_| Box::new(Bounce), shards, (warm_up, duration))
            }
        }
    }

    /// What is drawn at random of flow tables and shards.
    fn random(&self) -> (FlowHasher, u64) {
        (runs::hasher(self.trial.seed), self.trial.seed)
    }

    fn drive(
        &self,
        steering: Arc<Steering>,
        mut service: impl FnMut(LaneId) -> Box<dyn Service>,
        shards: Vec<Box<Shard>>,
        (warm_up, duration): (Duration, Duration),
    ) -> Result<RecordedRun, BenchError> {
        let &RealTestbed { scenario, trial, rounds, .. } = self;
        let clock = Clock::new();
        let lanes = usize::from(trial.lanes);
        let observer = Observer::new(clock.clone(), MOST_PACKETS);
        // All queues full, and what lanes and hold queues have.
        let buffers =
            trial.lanes as u32 * (scenario.queue.next_power_of_two() + 3 * HANDOFF as u32) + 4_096;
        let pool = runs::pool(buffers)?;
        let nic = self.nic(&steering, &clock, &observer, &pool)?;
        let source = nic.monitor();
        let of_shards = (lanes, shards.len());
        let policy = policy_of(&trial.policy);
        let is_static = policy == "rss";
        let plans_offloading = scenario.offloading.is_some() && !is_static;
        let config = RuntimeConfig {
            // Where lanes are more than cores, they take turns.
            workers: Cores::available()?.bound(lanes),
            handoff_capacity: HANDOFF,
            plans_offloading,
            classes: (plans_offloading || scenario.goals.is_some()).then(|| {
                Arc::new(Classes {
                    rules: LatencyGoals::rules(),
                    objectives: self.objectives(),
                    clock: Arc::new(clock.clone()),
                })
            }),
            reporting: if is_static { LoadReporting::Lanes } else { LoadReporting::Shards },
            ..RuntimeConfig::new(lanes, pool, steering, runs::hasher(trial.seed))
        };
        let service = |lane| Box::new(BusyWork::new(service(lane), rounds)) as Box<dyn Service>;
        let runtime = Runtime::start(config, vec![nic], clock.clone(), service, shards)?;

        let log = PlanLog::default();
        let controller =
            (!is_static).then(|| self.controller(&runtime, of_shards, &clock, &log)).transpose()?;
        let board = controller.as_ref().map(Balancing::board);
        let (run, intervals) =
            self.watch((&runtime, board), &observer, &clock, (warm_up, duration));
        let plans = controller.map(|controller| {
            controller.stop();
            log.summary(policy == "rsspp")
        });
        let ended = runs::finish(runtime);
        runs::in_time(source.as_ref())?;
        let mut run = intervals.finish().into_run(run);
        run.plans = plans;
        account(&mut run, &ended?, &observer);
        Ok(run)
    }

    /// Draws what arrives in a run of this length, for this testbed and all that differ from it in the policy alone. `None`
    /// where it takes more memory than it should, or arrives as fast as lanes take it.
    pub(super) fn draw(&self, length: Duration) -> Result<Option<DrawnArrivals>, BenchError> {
        let &RealTestbed { scenario, trial, arriving, .. } = self;
        let Arriving::OpenLoop(rate) = arriving else { return Ok(None) };
        let config = self.config(&Arc::new(scenario.steering()?));
        let source = scenario.source(trial.lanes, rate, trial.seed)?;
        let pool = runs::pool(64)?;
        match DrawnArrivals::draw_within(&config, source, &pool, (length + BEYOND, MOST_MEMORY)) {
            Ok(drawn) => Ok(Some(drawn)),
            Err(OpenError::Window { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn config(&self, steering: &Arc<Steering>) -> SimConfig {
        let mut config = SimConfig::new("load", self.trial.lanes, steering.clone());
        config.descriptors = self.scenario.queue;
        config
    }

    fn nic(
        &self,
        steering: &Arc<Steering>,
        clock: &Clock,
        observer: &Observer,
        pool: &Mempool,
    ) -> Result<Box<dyn Device>, BenchError> {
        let &RealTestbed { scenario, trial, arriving, .. } = self;
        let mut config = self.config(steering);
        let clock: Arc<dyn ClockSource> = Arc::new(clock.clone());
        if let Some(drawn) = &self.drawn {
            let nic = SimNic::open_drawn(&config, drawn, clock, |_| observer.sink())?;
            return Ok(Box::new(nic));
        }
        let source = match arriving {
            Arriving::OpenLoop(rate) => {
                config.driver = Driver::Pumped(Drawing::Ahead(clock));
                scenario.source(trial.lanes, rate, trial.seed)?
            }
            Arriving::Lossless => {
                config.pacing = Pacing::Lossless;
                scenario.traffic_on(trial.lanes).source(1_000_000, trial.seed)?
            }
        };
        Ok(Box::new(SimNic::open(config, source, |_| observer.sink(), pool)?))
    }

    fn controller(
        &self,
        runtime: &Runtime,
        of_shards: (usize, usize),
        clock: &Clock,
        log: &PlanLog,
    ) -> Result<Balancing, BenchError> {
        let (lanes, offloading) = (of_shards.0, self.scenario.offloading);
        let min_lanes = self.scenario.min_lanes.map_or(lanes, usize::from);
        let config = BalanceConfig { min_lanes, ..BalanceConfig::default() };
        let settings = Settings {
            scaling: Scaling { target: config.target, keep: min_lanes, ..Scaling::default() },
            objectives: self.objectives(),
            offloading: offloading.map_or(0, |offloading| offloading.most.into()),
            min_working_per_offloading: offloading.map_or(0, |lanes| lanes.min_working.into()),
        };
        let policy = with_settings(policy_of(&self.trial.policy), &settings);
        let policy = policy.expect("checked with the scenario");
        let policy = WatchedPlan::new(policy, clock.clone(), log.clone());
        let view = runtime.view();
        let balancer = Balancer::new(Box::new(policy), None, of_shards, view.now());
        Ok(Balancing::start(balancer, config, Objectives::PERCENTILE, view)?)
    }

    fn objectives(&self) -> Objectives {
        self.scenario.goals.map_or(Objectives::NONE, LatencyGoals::objectives)
    }

    /// Looks at the run in intervals, and ends it.
    fn watch(
        &self,
        (runtime, board): (&Runtime, Option<BalanceBoard>),
        observer: &Observer,
        clock: &Clock,
        (warm_up, duration): (Duration, Duration),
    ) -> (RecordedRun, Intervals) {
        let view = runtime.view();
        let active = || {
            let working = view.migrator().owners().iter().collect::<HashSet<_>>().len();
            let roles = board.as_ref().map(|board| board.read().roles).unwrap_or_default();
            working + roles.into_iter().filter(|role| *role == Role::Offloading).count()
        };
        let start = Instant::now();
        let started = clock.now();
        observer.measure(started + warm_up, started + warm_up + duration);
        let first = view.sample();
        let mut intervals = Intervals::new(first.clone(), warm_up);
        let mut undisturbed = Disturbance::read();
        let steps = ((warm_up + duration).as_secs_f64() / INTERVAL.as_secs_f64()).round() as u32;
        let (mut from, mut last) = (first.clone(), first);
        for step in 1..=steps {
            std::thread::sleep((INTERVAL * step).saturating_sub(start.elapsed()));
            last = view.sample();
            intervals.add(last.clone(), active());
            if INTERVAL * step <= warm_up {
                from = last.clone();
                undisturbed = Disturbance::read();
            }
        }
        let disturbed = Disturbance::read().since(undisturbed);
        runs::drain(runtime);
        let Trial { policy, lanes, load, seed } = self.trial.clone();
        let run = RecordedRun {
            scenario: self.scenario.name.clone(),
            policy,
            lanes,
            load,
            seed,
            seconds: last.seconds - from.seconds,
            packets: intervals::arrived(&last) - intervals::arrived(&from),
            delivered: intervals::delivered(&last) - intervals::delivered(&from),
            dropped: intervals::no_room(&last) - intervals::no_room(&from),
            migrations: intervals::migrations(&last) - intervals::migrations(&from),
            offloaded: offloaded(&last) - offloaded(&from),
            flows_offloaded: flows_offloaded(&last) - flows_offloaded(&from),
            latency_us: observer.latency_us(),
            run_delay_ms: Some(disturbed.run_delay.as_secs_f64() * 1e3),
            steal_ms: Some(disturbed.steal.as_secs_f64() * 1e3),
            ..RecordedRun::default()
        };
        (run, intervals)
    }
}

/// Packets that were sent away from home since the start.
fn offloaded(sample: &Sample) -> u64 {
    sample.lanes.iter().map(|lane| lane.offloaded).sum()
}

/// How often flows have left since the start.
fn flows_offloaded(sample: &Sample) -> u64 {
    sample.lanes.iter().map(|lane| lane.flows_offloaded).sum()
}

/// What became of all packets, those of the warm-up included.
fn account(run: &mut RecordedRun, report: &RunReport, observer: &Observer) {
    let sum = LaneSample::sum(&report.last.lanes);
    // What devices drop stands in their own books, and in the lanes' that of the way between them.
    let on_the_way: u64 = NO_ROOM.iter().map(|&reason| sum.dropped[reason as usize]).sum();
    let refused = sum.dropped_total() - on_the_way + sum.consumed;
    let accounted = intervals::no_room(&report.last) + refused + observer.seen();
    run.lost = intervals::arrived(&report.last).saturating_sub(accounted);
    run.duplicated = observer.doubled();
    run.reordered = observer.reordered().max(sum.reordered);
    run.latency_us = observer.latency_us();
    run.priority_us = observer.signalling_us(Objectives::PERCENTILE);
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use rheostat_base::DropReason;
    use rheostat_io::DeviceCounters;
    use rheostat_packet::{HashKind, Mbuf, PoolCache};

    use super::*;

    /// What the account states about a run to which so many packets arrived, one of them refused by the firewall and
    /// one dropped by a full queue, and from which those with these stamps left.
    fn said(arrived: u64, left: &[u32]) -> (u64, u64, u64) {
        let mut cache = PoolCache::new(runs::pool(16).unwrap());
        let observer = Observer::new(Clock::new(), 64);
        let mut packet = |stamp: &u32| {
            let mut packet = cache.alloc_from(&[0; 64]).unwrap();
            packet.set_stamp(*stamp);
            packet.set_hash(7, HashKind::Ports);
            packet
        };
        let packets: Vec<Mbuf> = left.iter().map(&mut packet).collect();
        observer.sink().take(&packets);
        packets.into_iter().for_each(|packet| cache.free(packet));
        let mut lane = LaneSample::default();
        lane.dropped[DropReason::Denied as usize] = 1;
        let device = DeviceCounters { arrived, queue_full: vec![1], ..DeviceCounters::default() };
        let last = Sample { lanes: vec![lane], devices: vec![device], ..Sample::default() };
        let mut run = RecordedRun::default();
        account(&mut run, &RunReport { last, ..RunReport::default() }, &observer);
        (run.lost, run.duplicated, run.reordered)
    }

    #[test]
    fn a_packet_lost_doubled_or_overtaken_is_noticed() {
        assert_eq!(said(6, &[0, 1, 2, 3]), (0, 0, 0));
        assert_eq!(said(6, &[0, 1, 3]), (1, 0, 0));
        assert_eq!(said(6, &[0, 1, 1, 2, 3]), (0, 1, 0));
        assert_eq!(said(6, &[0, 2, 1, 3]), (0, 0, 1));
    }
}
