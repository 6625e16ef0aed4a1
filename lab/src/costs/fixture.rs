//! What costs are measured on: lanes behind a simulated NIC, each with a meter.

use std::sync::Arc;

use rheostat_base::{Clock, DeviceId, LaneId};
use rheostat_functions::shipped;
use rheostat_io::{Device, Drawing, Driver, NullSink, Pacing, SimConfig, SimNic};
use rheostat_run::{Routes, Runtime, RuntimeConfig, Service};
use rheostat_state::Shard;
use rheostat_steer::{IndirectionTable, Steering};
use rheostat_traffic::{Mix, MixConfig};

use super::meter::{CostMeter, metered};
use crate::error::BenchError;
use crate::testbed::dut::{self, Bounce};
use crate::testbed::{Cores, lanes};

/// Entries of the indirection table, and shards: those of a run by default.
pub(super) const BUCKETS: usize = 512;
pub(super) const SHARDS: usize = 128;
const BUFFERS: u32 = 1 << 16;
const DESCRIPTORS: u32 = 1 << 12;
const HANDOFF: usize = 1 << 12;

/// What lanes are measured under.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixture {
    pub(super) lanes: u16,
    /// Flows of the mix.
    pub(super) flows: u32,
    /// Whether packets come as fast as lanes take them, or hardly ever.
    pub(super) busy: bool,
    /// Whether every packet arrives at a lane that it does not belong to.
    pub(super) crossed: bool,
}

/// A run under way.
pub(super) struct Running {
    pub(super) runtime: Runtime,
    pub(super) meters: Vec<Arc<CostMeter>>,
    pub(super) table: Arc<dyn IndirectionTable>,
}

impl Running {
    /// Ends it.
    pub(super) fn stop(self) -> Result<(), BenchError> {
        lanes::finish(self.runtime).map(drop)
    }
}

impl Fixture {
    /// Lanes that send every packet back.
    pub(super) fn bounce(&self) -> Result<Running, BenchError> {
        let steering = Arc::new(dut::steering(BUCKETS, SHARDS)?);
        let shards = dut::shards(&shipped::empty(), &steering, 1, (lanes::hasher(1), 1))?;
        self.run(steering, |_| Box::new(Bounce), shards)
    }

    /// Lanes with the firewall, as scenarios have it.
    pub(super) fn firewall(&self) -> Result<Running, BenchError> {
        let steering = Arc::new(dut::steering(BUCKETS, SHARDS)?);
        let chain = dut::firewall()?;
        // Those that are under way, and those that are over and remembered.
        let capacity = (2 * self.flows as usize + (1 << 20)) / SHARDS;
        let shards = dut::shards(&chain, &steering, capacity, (lanes::hasher(1), 1))?;
        let routes = Routes(vec![DeviceId(0)]);
        self.run(steering, |lane| chain.service(lane, &routes, None), shards)
    }

    fn run(
        &self,
        steering: Arc<Steering>,
        service: impl FnMut(LaneId) -> Box<dyn Service>,
        shards: Vec<Box<Shard>>,
    ) -> Result<Running, BenchError> {
        let pool = lanes::pool(BUFFERS)?;
        let packets_per_second = if self.busy { 1_000_000 } else { 1 };
        let mix =
            Mix::new(MixConfig { flows: self.flows, packets_per_second, ..MixConfig::default() })?;
        let mut nic = SimConfig::new("load", self.lanes, steering.clone());
        nic.descriptors = DESCRIPTORS;
        let clock = Clock::new();
        nic.driver = Driver::Pumped(Drawing::Ahead(Arc::new(clock.clone())));
        if self.busy {
            nic.pacing = Pacing::Lossless;
        }
        let nic = SimNic::open(nic, Box::new(mix), |_| Box::new(NullSink), &pool)?;
        let table = nic.table().expect("a simulated NIC has one");
        let (device, meters) = metered(Box::new(nic), self.lanes, &clock, self.crossed);
        let config = RuntimeConfig {
            workers: Cores::of_lanes(0, self.lanes.into())?.bound(self.lanes.into()),
            handoff_capacity: HANDOFF,
            ..RuntimeConfig::new(self.lanes.into(), pool, steering, lanes::hasher(1))
        };
        let runtime = Runtime::start(config, vec![Box::new(device)], clock, service, shards)?;
        Ok(Running { runtime, meters, table })
    }
}
