//! Lanes with the firewall under the synthetic mix, for experiments that move shards or flows between them meanwhile.

use std::sync::Arc;

use rheostat_base::{Clock, DeviceId, QueueId};
use rheostat_io::{Drawing, Driver, SimConfig, SimNic, Sink};
use rheostat_run::{Routes, Runtime, RuntimeConfig};
use rheostat_traffic::{Mix, MixConfig};

use super::cores::Cores;
use super::{dut, lanes};
use crate::error::BenchError;

/// Entries of the indirection table, and shards: those of a run by default.
const BUCKETS: usize = 512;
pub(crate) const SHARDS: u16 = 128;
/// Packets that arrive at most, and that sinks distinguish.
pub(crate) const MOST_PACKETS: u64 = 1 << 26;
/// Packet buffers and places between lanes: a worker that the operating system suspends for a while loses nothing.
const BUFFERS: u32 = 1 << 16;
const HANDOFF: usize = 1 << 13;
/// Flows that a shard has room for.
const FLOWS: usize = 4_096;

/// Lanes and their load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MixLoad {
    /// Lanes, those that only take flows of others included.
    pub(crate) lanes: u16,
    /// Lanes that only take flows of others.
    pub(crate) offloading: usize,
    /// Flows of the mix.
    pub(crate) flows: u32,
    pub(crate) packets_per_second: u64,
    /// Descriptors of each receive queue.
    pub(crate) descriptors: u32,
    /// Decides the packets, and the hash of their flows.
    pub(crate) seed: u64,
}

impl MixLoad {
    /// Starts the lanes, whose packets leave by `sink`. Workers are bound to no core, and poll lanes in turn where these are more.
    pub(crate) fn start(
        &self,
        sink: impl FnMut(QueueId) -> Box<dyn Sink>,
    ) -> Result<Runtime, BenchError> {
        let pool = lanes::pool(BUFFERS)?;
        let steering = Arc::new(dut::steering(BUCKETS, SHARDS.into())?);
        let mix = Mix::new(MixConfig {
            seed: self.seed,
            flows: self.flows,
            packets_per_second: self.packets_per_second,
            packets: Some(MOST_PACKETS),
            ..MixConfig::default()
        })?;
        let clock = Clock::new();
        let mut nic = SimConfig::new("load", self.lanes, steering.clone());
        nic.descriptors = self.descriptors;
        nic.driver = Driver::Pumped(Drawing::Ahead(Arc::new(clock.clone())));
        let nic = SimNic::open(nic, Box::new(mix), sink, &pool)?;
        let (chain, hasher) = (dut::firewall()?, lanes::hasher(self.seed));
        let shards = dut::shards(&chain, &steering, FLOWS, (hasher, self.seed))?;
        let config = RuntimeConfig {
            workers: Cores::available()?.unbound(self.lanes.into()),
            handoff_capacity: HANDOFF,
            offloading: self.offloading,
            ..RuntimeConfig::new(self.lanes.into(), pool, steering, hasher)
        };
        let routes = Routes(vec![DeviceId(0)]);
        let service = |lane| chain.service(lane, &routes, None);
        Ok(Runtime::start(config, vec![Box::new(nic)], clock, service, shards)?)
    }
}
