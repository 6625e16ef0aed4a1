//! The lanes of a run, before anything runs.

use std::sync::Arc;

use rheostat_base::{DeviceId, LaneId, QueueId, ShardId};
use rheostat_io::layer::shared_receive::share_receive;
use rheostat_io::{Device, QueuePair, ReplayBarrier};
use rheostat_packet::PoolCache;
use rheostat_state::Shard;

use super::{RuntimeConfig, StartError};
use crate::account::received_and_done;
use crate::handoff::Handoff;
use crate::lane::{Lane, LaneConfig, Unusual};
use crate::service::Service;
use crate::shard_set::{EntryOrder, ShardSet};

/// Flows of each lane that are away at a time at most.
pub const FLOWS_AWAY: usize = 512;
/// Hundredths of a lane's packets that flows have that are away, at most.
const SHARE_AWAY: u8 = 50;

/// Builds the lanes of a run without starting them, for callers that poll them themselves: tests, the simulator, the benchmark.
/// `shards` are all of the run, in the order of their numbers.
///
/// # Errors
/// [`StartError`] when devices, lanes and shards do not fit.
pub fn build_lanes(
    config: &RuntimeConfig,
    devices: &mut [Box<dyn Device>],
    mut service: impl FnMut(LaneId) -> Box<dyn Service>,
    shards: impl IntoIterator<Item = Box<Shard>>,
) -> Result<Vec<Lane>, StartError> {
    build_replaying(config, devices, &mut service, shards.into_iter().collect())
        .map(|(lanes, _)| lanes)
}

/// As [`build_lanes`], with what the devices keep packets in order by.
pub(super) fn build_replaying(
    config: &RuntimeConfig,
    devices: &mut [Box<dyn Device>],
    service: &mut dyn FnMut(LaneId) -> Box<dyn Service>,
    made: Vec<Box<Shard>>,
) -> Result<(Vec<Lane>, Arc<ReplayBarrier>), StartError> {
    if config.lanes == 0 || config.workers.is_empty() {
        return Err(StartError::Empty);
    }
    config.queues.check(config.lanes)?;
    check_numbers(devices)?;
    let groups = Groups::of(config)?;
    let unusual = Unusual::from_env()?;
    let shards = config.steering.shards();
    if made.len() != shards {
        return Err(StartError::Shards { given: made.len(), placed: shards });
    }
    let leaves = config.offloading > 0 || config.plans_offloading;
    if config.offloading > config.lanes / 2 || (leaves && config.claimants() > 1) {
        return Err(StartError::Offloading { offloading: config.offloading, lanes: config.lanes });
    }
    let working = config.lanes - config.offloading;
    let owners: Vec<_> = (0..shards).map(|shard| LaneId((shard % working) as u16)).collect();
    let mut queues: Vec<Vec<_>> = (0..config.lanes).map(|_| Vec::new()).collect();
    for device in devices.iter_mut() {
        let mut pairs = device.queues();
        if pairs.len() != config.lanes {
            let (queues, lanes) = (pairs.len(), config.lanes);
            return Err(StartError::Queues { device: device.name().into(), queues, lanes });
        }
        if let Some(table) = device.table() {
            let entries =
                (0..table.len()).map(|bucket| config.queues.queue_of(owners[bucket % shards]));
            let entries: Vec<_> = entries.collect();
            // Nothing is in flight yet, so the fence need not be awaited.
            table
                .rewrite(&entries)
                .map_err(|error| StartError::Table { device: device.name().into(), error })?;
        }
        if let Some(sharing) = config.sharing {
            let (rx, tx): (Vec<_>, Vec<_>) =
                pairs.into_iter().map(|pair| (pair.rx, pair.tx)).unzip();
            let rx = share_receive(rx, sharing);
            pairs = rx.into_iter().zip(tx).map(|(rx, tx)| QueuePair { rx, tx }).collect();
        }
        for (queue, pair) in (0..).map(QueueId).zip(pairs) {
            queues[config.queues.lane_of(queue).index()].push(pair);
        }
    }
    let sets = groups.sets(made, &owners);
    let flows = if leaves { FLOWS_AWAY } else { 0 };
    let handoffs = Handoff::mesh(config.lanes, config.handoff_capacity, shards, flows);
    let mut lanes: Vec<_> = queues
        .into_iter()
        .zip(sets)
        .zip(handoffs)
        .enumerate()
        .map(|(index, ((queues, shards), handoff))| {
            let id = LaneId(index as u16);
            let mut lane = Lane::new(LaneConfig {
                id,
                queues,
                shards,
                owners: owners.clone(),
                claimants: groups.claimants(id),
                takes_turns: config.sharing.is_some(),
                steering: config.steering.clone(),
                hasher: config.hasher,
                handoff,
                hold_capacity: config.handoff_capacity,
                pool: PoolCache::new(config.pool.clone()),
                service: service(id),
                time: config.time,
                reporting: config.reporting,
                classes: config.classes.clone(),
                stages: config.stages.clone(),
                hops: config.hops.clone(),
            });
            lane.treat_as_unusual(unusual);
            if config.offloading > 0 && index < working {
                let to = LaneId((working + index % config.offloading) as u16);
                lane.offload_to(Some(to), SHARE_AWAY);
            }
            lane
        })
        .collect();
    if config.claimants() > 1 && lanes.iter_mut().any(Lane::needs_own_shards) {
        return Err(StartError::PoolClient);
    }
    let counters: Vec<_> = lanes.iter().map(Lane::counters).collect();
    let barrier = ReplayBarrier::new(move || received_and_done(&counters));
    let barrier = Arc::new(if config.claimants() > 1 { barrier.one_by_one() } else { barrier });
    for replay in devices.iter_mut().filter_map(|device| device.as_replay()) {
        replay.replay_by(barrier.clone());
    }
    Ok((lanes, barrier))
}

/// The lanes that own shards together: those of one receive queue.
struct Groups {
    /// Lanes to a group.
    claimants: usize,
    /// The lanes, group by group.
    lanes: Vec<LaneId>,
    /// In which order packets enter the shards.
    order: EntryOrder,
}

impl Groups {
    fn of(config: &RuntimeConfig) -> Result<Groups, StartError> {
        let (lanes, claimants) = (config.lanes, config.claimants());
        if claimants == 0 || !lanes.is_multiple_of(claimants) {
            return Err(StartError::Claimants { lanes, claimants });
        }
        let lane_of = |queue| config.queues.lane_of(QueueId(queue as u16));
        let order = match config.sharing {
            Some(_) => EntryOrder::Tickets,
            None => EntryOrder::Any,
        };
        Ok(Groups { claimants, lanes: (0..lanes).map(lane_of).collect(), order })
    }

    /// The lanes that own shards together with this one, itself included; none if each owns its own.
    fn claimants(&self, lane: LaneId) -> Vec<LaneId> {
        let mut groups = self.lanes.chunks(self.claimants).filter(|_| self.claimants > 1);
        groups.find(|group| group.contains(&lane)).map_or_else(Vec::new, <[LaneId]>::to_vec)
    }

    /// The shards of each lane, by the lane that owns them or in which their fragments meet.
    fn sets(&self, made: Vec<Box<Shard>>, owners: &[LaneId]) -> Vec<ShardSet> {
        let count = made.len();
        let mut sets: Vec<_> = (0..self.lanes.len()).map(|_| ShardSet::new(count)).collect();
        let mut shards: Vec<_> = made.into_iter().map(Some).collect();
        for group in self.lanes.chunks(self.claimants) {
            let mine = owners.iter().zip(&mut shards).filter(|(owner, _)| group.contains(owner));
            let mine: Vec<_> = mine.filter_map(|(_, shard)| shard.take()).collect();
            if let [lane] = group {
                mine.into_iter().for_each(|shard| sets[lane.index()].install(shard));
                continue;
            }
            let home = |shard: ShardId| owners[shard.index()];
            let joint = ShardSet::joint(count, group, mine, home, self.order);
            for (lane, set) in group.iter().zip(joint) {
                sets[lane.index()] = set;
            }
        }
        sets
    }
}

/// Each device has the number of its place.
fn check_numbers(devices: &[Box<dyn Device>]) -> Result<(), StartError> {
    let most = DeviceId::NONE.index();
    if devices.len() > most {
        return Err(StartError::TooManyDevices { devices: devices.len(), most });
    }
    for (place, device) in devices.iter().enumerate() {
        let number = device.id().index();
        if let Some(first) = devices[..place].iter().find(|first| first.id() == device.id()) {
            let (first, second) = (first.name().to_owned(), device.name().to_owned());
            return Err(StartError::SameNumber { first, second, number });
        }
        if number != place {
            return Err(StartError::Place { device: device.name().to_owned(), number, place });
        }
    }
    Ok(())
}
