//! One working and one offloading lane, each on a core of its own, that poll all the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rheostat_base::{Clock, LaneId};
use rheostat_measure::memory::{LAN, WAN};
use rheostat_run::{Routes, RunReport, Runtime, RuntimeConfig, StageSwitch};
use rheostat_steer::{HashKey, Orientation, Steering};

use super::feed::Feed;
use crate::costs::meter::{CostMeter, metered};
use crate::error::BenchError;
use crate::testbed::{Cores, dut, lanes};

/// Entries of the indirection table, and shards: those of a run by default.
const BUCKETS: usize = 512;
const SHARDS: usize = 128;
const BUFFERS: u32 = 1 << 14;
const HANDOFF: usize = 1 << 12;
/// The working lane and the offloading one.
const LANES: usize = 2;
const WORKING: LaneId = LaneId(0);
pub(super) const OFFLOADING: LaneId = LaneId(1);
/// How long flows may take to be opened, to leave, or to come home.
const TIMEOUT: Duration = Duration::from_secs(60);
/// From one look at them to the next.
const LOOK: Duration = Duration::from_millis(1);

/// A run under way.
pub(super) struct OffloadTestbed {
    pub(super) runtime: Runtime,
    pub(super) feed: Arc<Feed>,
    /// Of the lanes, where polls are measured.
    pub(super) meters: Vec<Arc<CostMeter>>,
}

impl OffloadTestbed {
    /// The firewall on `flows` open flows of datagrams. Hops are timed from when `hops` is on; with `is_metered`, polls can be
    /// measured, which takes some time of each.
    pub(super) fn start(
        flows: u32,
        hops: Option<StageSwitch>,
        is_metered: bool,
    ) -> Result<OffloadTestbed, BenchError> {
        let cores = Cores::of_lanes(0, LANES)?;
        let pool = lanes::pool(BUFFERS)?;
        let sides = vec![Orientation::Inside, Orientation::Outside];
        let steering = Arc::new(Steering::new(&HashKey::MICROSOFT, BUCKETS, SHARDS, sides)?);
        let clock = Clock::new();
        let feed = Feed::new(clock.clone(), LANES);
        let mut devices = feed.devices(flows, &steering);
        let mut meters = Vec::new();
        if is_metered {
            let inside = devices.remove(LAN.index());
            let (device, of_lanes) = metered(inside, LANES as u16, &clock, false);
            devices.insert(LAN.index(), Box::new(device));
            meters = of_lanes;
        }
        let chain = dut::firewall()?;
        let hasher = lanes::hasher(1);
        // Flows fall into shards by chance.
        let capacity = 2 * flows as usize / SHARDS + 64;
        let shards = dut::shards(&chain, &steering, capacity, (hasher, 1))?;
        let config = RuntimeConfig {
            workers: cores.bound(LANES),
            handoff_capacity: HANDOFF,
            offloading: 1,
            hops,
            ..RuntimeConfig::new(LANES, pool, steering, hasher)
        };
        let routes = Routes(vec![WAN, LAN]);
        let service = |lane| chain.service(lane, &routes, None);
        let runtime = Runtime::start(config, devices, clock, service, shards)?;
        let mut testbed = OffloadTestbed { runtime, feed, meters };
        testbed.offload(None, 0);
        let feed = testbed.feed.clone();
        testbed.wait(|_| feed.opened() == u64::from(flows))?;
        Ok(testbed)
    }

    /// Lets flows leave, until they have so many hundredths of the packets; for none, takes all home.
    pub(super) fn offload(&self, to: Option<LaneId>, share: u8) {
        // The lane reads each command at its next poll.
        while !self.runtime.migrator().offload(WORKING, to, share) {
            std::thread::yield_now();
        }
    }

    /// Waits until so many flows are away.
    pub(super) fn wait_away(&mut self, flows: u64) -> Result<(), BenchError> {
        self.wait(|runtime| runtime.sample().lanes[WORKING.index()].flows_away == flows)
    }

    fn wait(&mut self, mut until: impl FnMut(&mut Runtime) -> bool) -> Result<(), BenchError> {
        let last = Instant::now() + TIMEOUT;
        while !until(&mut self.runtime) {
            if Instant::now() > last {
                return Err(BenchError::NoTransition(TIMEOUT));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Ends it.
    pub(super) fn stop(self) -> Result<RunReport, BenchError> {
        lanes::finish(self.runtime)
    }
}
