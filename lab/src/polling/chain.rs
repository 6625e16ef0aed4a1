//! What lanes do with packets while their polling is measured.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{DeviceId, LaneId};
use rheostat_functions::monitor::MonitorConfig;
use rheostat_functions::{Monitor, shipped};
use rheostat_nf::{AnyChain, link};
use rheostat_run::{Routes, Service};
use rheostat_state::{FlowHasher, Shard};
use rheostat_steer::Steering;

use crate::error::BenchError;
use crate::real::busy_work::{BusyWork, RoundTime};
use crate::testbed::dut::{self, Bounce};

/// Flows that a shard has room for.
const FLOWS: usize = 1 << 10;
/// The work of [`PollingChain::BusyMicrosecond`] for each packet.
const WORK: Duration = Duration::from_micros(1);

/// What lanes do with a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PollingChain {
    /// Sends it back to where it came from.
    #[default]
    Forward,
    /// The stateful firewall.
    Firewall,
    /// The monitor, without a log.
    Monitor,
    /// A microsecond of arithmetic, then as [`PollingChain::Forward`]: as much work as encryption.
    BusyMicrosecond,
}

impl PollingChain {
    /// All of them, from the least to the most work.
    pub const ALL: [PollingChain; 4] = [
        PollingChain::Forward,
        PollingChain::Monitor,
        PollingChain::Firewall,
        PollingChain::BusyMicrosecond,
    ];

    /// The name, as the command line and rows have it.
    pub const fn name(self) -> &'static str {
        match self {
            PollingChain::Forward => "forward",
            PollingChain::Firewall => "firewall",
            PollingChain::Monitor => "monitor",
            PollingChain::BusyMicrosecond => "busy-1us",
        }
    }
}

/// Makes services and shards of a chain.
pub(super) struct Equipment {
    chain: Option<AnyChain>,
    /// Rounds of work per packet.
    rounds: u32,
}

impl Equipment {
    pub(super) fn new(chain: PollingChain) -> Result<Equipment, BenchError> {
        let (chain, rounds) = match chain {
            PollingChain::Forward => (None, 0),
            PollingChain::Firewall => (Some(dut::firewall()?), 0),
            PollingChain::Monitor => {
                let monitor = Monitor::new(MonitorConfig::default(), None);
                (Some(shipped::chain(vec![link(monitor)])?), 0)
            }
            PollingChain::BusyMicrosecond => (None, RoundTime::measure().rounds(WORK)),
        };
        Ok(Equipment { chain, rounds })
    }

    /// What a lane does.
    pub(super) fn service(&self) -> impl Fn(LaneId) -> Box<dyn Service> {
        let routes = Routes(vec![DeviceId(0)]);
        move |lane| {
            let service: Box<dyn Service> = match &self.chain {
                Some(chain) => chain.service(lane, &routes, None),
                None => Box::new(Bounce),
            };
            match self.rounds {
                0 => service,
                rounds => Box::new(BusyWork::new(service, rounds)),
            }
        }
    }

    pub(super) fn shards(
        &self,
        steering: &Arc<Steering>,
        random: (FlowHasher, u64),
    ) -> Result<Vec<Box<Shard>>, BenchError> {
        Ok(match &self.chain {
            Some(chain) => dut::shards(chain, steering, FLOWS, random)?,
            None => dut::shards(&shipped::empty(), steering, 1, random)?,
        })
    }
}
