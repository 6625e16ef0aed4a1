//! The last that lanes do, and what they leave.

use std::thread;
use std::time::Duration;

use rheostat_base::{Clock, ClockSource, Time};
use rheostat_io::DeviceCounters;

use crate::invariant::Remains;
use crate::lane::Lane;
use crate::migrate::Migrator;

/// How long shards that are moving when a run ends may take to arrive, once no pool works for a lane.
/// Tables' fences are all there is to wait for then.
const SETTLE: Duration = Duration::from_secs(2);

/// Polls lanes in turn until no shard is moving. Whatever has not arrived in the end is named in the
/// account.
pub(super) fn settle(lanes: &mut [Lane], migrator: &mut Migrator, clock: &Clock) {
    let mut last = clock.now() + SETTLE;
    while !migrator.is_idle() && clock.now() < last {
        if lanes.iter().any(|lane| lane.at_pool() > 0) {
            last = clock.now() + SETTLE;
        }
        migrator.step(clock.now());
        lanes.iter_mut().for_each(|lane| {
            lane.poll(clock.now());
        });
    }
}

/// Takes all flows home, polls lanes in turn until a whole round finds nothing and no pool works for them, then ends each of
/// them. Shards that are moving must have arrived. A flow that is with a lane that is not among these stays away, as the account
/// will tell.
pub fn run_dry(lanes: &mut [Lane], now: Time) {
    lanes.iter_mut().for_each(Lane::end_offloading);
    loop {
        let packets: usize = lanes.iter_mut().map(|lane| lane.poll(now).packets).sum();
        let awaits_pool = lanes.iter().any(|lane| lane.at_pool() > 0);
        let is_dry = |lane: &Lane| lane.handoff_waiting() == 0 && !lane.has_leaving_guests();
        if packets == 0 && !awaits_pool && lanes.iter().all(is_dry) {
            break;
        }
        if packets == 0 && awaits_pool {
            thread::yield_now();
        }
    }
    let latest = lanes.iter().map(Lane::latest).max().unwrap_or(now);
    for lane in lanes {
        lane.finish(latest);
    }
}

/// What stopped lanes leave to be checked, but for the pool, which must first get their buffers.
pub fn remains(lanes: &[Lane], devices: &[DeviceCounters], shards: usize) -> Remains {
    let mut owners = vec![0; shards];
    let mut flows_live = 0;
    for lane in lanes {
        lane.shards().for_each(|shard| {
            owners[shard.id.index()] += 1;
            flows_live += shard.table.counts().live;
        });
    }
    Remains {
        lanes: lanes.iter().map(|lane| lane.counters().sample()).collect(),
        devices: devices.to_vec(),
        owners,
        flows_live,
        may_reorder: lanes.iter().any(Lane::may_reorder),
        ..Remains::default()
    }
}
