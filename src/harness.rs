//! Tries a chain out: a whole run on one thread and in the time of the packets, without devices, clocks
//! or threads, so that the same packets always have the same outcome. For tests of network functions and
//! for small experiments; `rheo run` is for traffic.

mod packets;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rheostat_base::{DeviceId, LaneId, ShardId, Time};
use rheostat_io::{
    CaptureSource, Collected, Collector, Device, Driver, OpenError, Pacing, SimConfig, SimNic,
};
use rheostat_ip::Network;
use rheostat_nf::{AnyChain, Chain, ChainShard};
use rheostat_packet::mbuf::PoolError;
use rheostat_packet::{Mempool, MempoolConfig, PoolCache};
use rheostat_run::invariant::Remains;
use rheostat_run::runtime::{build_lanes, remains, run_dry};
use rheostat_run::{
    Lane, LaneSample, Metrics, Routes, RuntimeConfig, StartError, TimeSource, Unusual, Violation,
};
use rheostat_state::{ArenaError, FlowHasher, FragmentConfig, Shard, StateLayout, TableConfig};
use rheostat_steer::{HashKey, Orientation, PrefixList, Steering, SteeringError};
use rheostat_traffic::Source;
use thiserror::Error;

pub use packets::{PacketOutcome, TestPacket};

use packets::Feeder;

/// Shards of a harness, and entries of its indirection table.
const SHARDS: usize = 128;
/// Packet buffers of a harness.
const BUFFERS: u32 = 4_096;

/// A chain to be tried out.
#[derive(Debug)]
pub struct Harness<C: Chain> {
    /// The chain.
    pub chain: C,
    /// Where its functions have their states.
    pub layout: StateLayout,
    /// How many lanes share the work. The outcome does not depend on it.
    pub lanes: usize,
    /// How many lanes share each receive queue and, where the chain keeps flows in shards, these: 1, or a divisor of `lanes`. The
    /// outcome does not depend on it.
    pub claimants: usize,
    /// How many of the lanes, at most half of them, own no flows but work on single flows of the others, as many as they are sent.
    /// The outcome does not depend on it.
    pub offloading: usize,
    /// Flows that are remembered at most.
    pub flows: usize,
    /// The addresses that count as inside.
    pub inside: PrefixList,
    /// The network layer around the chain, whose interface is device 0; without it, packets leave with the link header
    /// they came with.
    pub network: Option<Arc<Network>>,
    /// Packets to treat as unusual ones, which do not take the fast path. The outcome does not depend on it.
    pub unusual: Unusual,
    /// The seed of what shards choose at random, such as the ports of a NAT.
    pub seed: u64,
}

/// What a harness came to.
#[derive(Clone, Debug)]
pub struct HarnessReport {
    /// The counters of all lanes together.
    pub counters: LaneSample,
    /// What left, in order.
    pub sent: Vec<Collected>,
    /// The outcome of each packet of [`Harness::packets`], in order; empty for other sources.
    pub outcomes: Vec<PacketOutcome>,
    /// What the functions have counted.
    pub metrics: Metrics,
    /// Invariants that did not hold; empty unless rheostat itself is wrong.
    pub violations: Vec<Violation>,
}

/// Why there was no harness.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "most variants are the error they wrap")]
pub enum HarnessError {
    /// A packet cannot be made of its words.
    #[error("packet {number}: {problem}")]
    Packet {
        /// Its number, counted from 1.
        number: usize,
        /// The mistake.
        problem: String,
    },
    /// Some records of a capture cannot be read.
    #[error("{problem}")]
    Capture {
        /// The file.
        path: PathBuf,
        /// The first few problems, each with its place.
        problem: String,
    },
    #[error(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Steering(#[from] SteeringError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Memory(#[from] ArenaError),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl<C: Chain> Harness<C> {
    /// A harness of `chain`, whose functions have their states in `layout`: two lanes, 64k flows, the
    /// private addresses of RFC 1918 and RFC 4193 inside, no network layer.
    pub fn new(chain: C, layout: StateLayout) -> Harness<C> {
        let inside = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"]
            .into_iter()
            .filter_map(|prefix| prefix.parse().ok())
            .collect();
        let unusual = Unusual::default();
        let (lanes, claimants, offloading, flows, network, seed) = (2, 1, 0, 65_536, None, 1);
        Harness {
            chain,
            layout,
            lanes,
            claimants,
            offloading,
            flows,
            inside,
            network,
            unusual,
            seed,
        }
    }

    /// Sends packets one after another, each when nothing of those before is under way, and reports the outcome of each.
    /// A packet is an Ethernet frame, or text in the words of a case (`docs/cases.md`), over IPv4 or IPv6; `at TIME` in front
    /// states when it arrives, otherwise a microsecond after the one before.
    ///
    /// ```
    /// use rheostat::{Firewall, FirewallConfig, Harness, Stage, StateLayout};
    ///
    /// let mut layout = StateLayout::new();
    /// let firewall = Stage::new(Firewall::new(FirewallConfig::default()), &mut layout)?;
    /// let report = Harness { lanes: 4, ..Harness::new(firewall, layout) }.packets([
    ///     "10.0.0.1:1000 > 198.51.100.1:53 udp len 30",
    ///     "at 1s 198.51.100.1:53 > 10.0.0.1:1000 udp len 60",
    ///     "198.51.100.9:53 > 10.0.0.1:1000 udp len 60",
    ///     "[fd00::1]:1000 > [2001:db8::1]:443 tcp S seq 7",
    /// ])?;
    /// let outcomes: Vec<String> = report.outcomes.iter().map(ToString::to_string).collect();
    /// assert_eq!(outcomes, [
    ///     "sent 10.0.0.1:1000 > 198.51.100.1:53 udp len 30",
    ///     "sent 198.51.100.1:53 > 10.0.0.1:1000 udp len 60",
    ///     "drop denied",
    ///     "sent [fd00::1]:1000 > [2001:db8::1]:443 tcp S seq 7",
    /// ]);
    /// assert_eq!(report.sent.len(), 3);
    /// assert!(report.violations.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`HarnessError::Packet`] with the first packet that cannot be made; others as of [`Harness::run`].
    pub fn packets<P: Into<TestPacket>>(
        self,
        packets: impl IntoIterator<Item = P>,
    ) -> Result<HarnessReport, HarnessError> {
        let collector = Collector::new();
        let packets = packets.into_iter().map(Into::into);
        let mut feeder = Feeder::new(packets, collector.clone())?;
        let source = Box::new(feeder.source());
        let mut advance = |lanes: &[Lane]| feeder.advance(lanes);
        let run = self.into_run();
        let mut report = run.carry_out(collector, source, &mut advance, &mut |_| ())?;
        let before = feeder.outcomes.iter().flat_map(|outcome| outcome.sent.clone());
        report.sent = before.chain(report.sent).collect();
        report.outcomes = feeder.outcomes;
        Ok(report)
    }

    /// Runs all packets of a capture (pcap or pcapng) through the chain.
    ///
    /// # Errors
    /// [`HarnessError::Open`] when the file is no capture, [`HarnessError::Capture`] when records in it cannot be read;
    /// others as of [`Harness::run`].
    pub fn capture(self, path: impl AsRef<Path>) -> Result<HarnessReport, HarnessError> {
        let path = path.as_ref();
        let source = CaptureSource::open(path)?;
        let status = source.status();
        let report = self.source(source)?;
        match status.malformed() {
            0 => Ok(report),
            _ => {
                let problem = status.warnings().join("; ");
                Err(HarnessError::Capture { path: path.to_owned(), problem })
            }
        }
    }

    /// Runs all packets of a source through the chain, such as [`Attack`](crate::Attack) or [`Mix`](crate::Mix):
    /// [`Harness::run`] for a test that looks at no shard. [`Limited`](crate::Limited) ends one that has no end.
    ///
    /// # Errors
    /// As [`Harness::run`].
    pub fn source(self, source: impl Source + 'static) -> Result<HarnessReport, HarnessError> {
        self.run(source, |_, _| {})
    }

    /// Runs every packet of `source` through the chain. At the end, `look` sees what the functions keep
    /// in each shard.
    ///
    /// ```
    /// use rheostat::{DynamicChain, Harness, Metrics, Source, StateLayout};
    ///
    /// /// What a chain counts of the packets of any source.
    /// fn metrics_of(source: impl Source + 'static) -> Result<Metrics, Box<dyn std::error::Error>> {
    ///     Ok(Harness::new(DynamicChain::default(), StateLayout::new()).run(source, |_, _| {})?.metrics)
    /// }
    /// # let mix = rheostat::MixConfig { packets: Some(100), ..Default::default() };
    /// # assert_eq!(metrics_of(rheostat::Mix::new(mix)?)?, Metrics::default());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`HarnessError`] when there is no memory for it, or there are no lanes.
    pub fn run(
        self,
        source: impl Source + 'static,
        look: impl FnMut(ShardId, &C::Shard),
    ) -> Result<HarnessReport, HarnessError> {
        self.run_into(Collector::new(), source, look)
    }

    /// As [`Harness::run`], with a collector that `source` may share: a source that is fed sees there what
    /// has left so far, and can answer it. The report has what was not taken out of it.
    ///
    /// # Errors
    /// As [`Harness::run`].
    pub fn run_into(
        self,
        collector: Collector,
        source: impl Source + 'static,
        mut look: impl FnMut(ShardId, &C::Shard),
    ) -> Result<HarnessReport, HarnessError> {
        let run = self.into_run();
        let mut look = |shard: &Shard| {
            let local: &ChainShard<C::Shard> = shard.local();
            look(shard.id, &local.state);
        };
        run.carry_out(collector, Box::new(source), &mut |_| false, &mut look)
    }

    fn into_run(self) -> Run {
        let Harness { chain, layout, lanes, claimants, offloading, .. } = self;
        let Harness { flows, inside, network, unusual, seed, .. } = self;
        let chain = AnyChain::new(chain, layout);
        Run { chain, lanes, claimants, offloading, flows, inside, network, unusual, seed }
    }
}

/// A [`Harness`] of whichever chain.
struct Run {
    chain: AnyChain,
    lanes: usize,
    claimants: usize,
    offloading: usize,
    flows: usize,
    inside: PrefixList,
    network: Option<Arc<Network>>,
    unusual: Unusual,
    seed: u64,
}

impl Run {
    /// `advance` is called whenever nothing is under way; if it returns `true`, the source has more.
    fn carry_out(
        self,
        collector: Collector,
        source: Box<dyn Source>,
        advance: &mut dyn FnMut(&[Lane]) -> bool,
        look: &mut dyn FnMut(&Shard),
    ) -> Result<HarnessReport, HarnessError> {
        let pool = Mempool::new(&MempoolConfig { buffers: BUFFERS, ..MempoolConfig::default() })?;
        let orientations = vec![Orientation::ByPrefix(self.inside)];
        let steering = Steering::new(&HashKey::MICROSOFT, SHARDS, SHARDS, orientations)?;
        let steering = Arc::new(self.chain.steering_for(steering)?);
        let mut nic = SimConfig::new("trial", self.lanes as u16, steering.clone());
        nic.claimants = self.claimants as u16;
        nic.pacing = Pacing::Lossless;
        nic.driver = Driver::Stepped;
        let mut nic = SimNic::open(nic, source, |queue| collector.sink(queue), &pool)?;
        let stepper = nic.stepper();
        let mut devices: Vec<Box<dyn Device>> = vec![Box::new(nic)];

        let hasher = FlowHasher::fixed();
        let table = TableConfig { capacity: self.flows.div_ceil(SHARDS), aliases: false };
        let fragments = FragmentConfig { held: 16, ..FragmentConfig::default() };
        let shards = self.chain.make_shards(&steering, table, hasher, fragments, self.seed)?;
        let config = RuntimeConfig {
            workers: vec![None],
            time: TimeSource::Packet,
            claimants: if self.chain.owns_flows() { self.claimants } else { 1 },
            offloading: self.offloading,
            ..RuntimeConfig::new(self.lanes, pool.clone(), steering, hasher)
        };
        let routes = Routes(vec![DeviceId(0)]);
        let service = |lane| self.chain.service(lane, &routes, self.network.as_ref());
        let mut lanes = build_lanes(&config, &mut devices, service, shards)?;
        lanes.iter_mut().for_each(|lane| lane.treat_as_unusual(self.unusual));
        if let Some(working) =
            self.lanes.checked_sub(self.offloading).filter(|_| self.offloading > 0)
        {
            for (number, lane) in lanes[..working].iter_mut().enumerate() {
                let to = LaneId((working + number % self.offloading) as u16);
                lane.offload_to(Some(to), 100);
            }
        }

        let mut cache = PoolCache::new(pool.clone());
        let mut first = 0;
        if let Some(mut stepper) = stepper {
            loop {
                let delivered = stepper.deliver_until(Time::ZERO, &mut cache);
                let mut polled = 0;
                for turn in 0..lanes.len() {
                    let lane = (first + turn) % self.lanes;
                    polled += lanes[lane].poll(Time::ZERO).packets;
                }
                // Of claimants, each claims first in its turn.
                first = if self.claimants > 1 { (first + 1) % self.lanes } else { 0 };
                // Flows may be on their way between lanes, and packets wait for them.
                let is_quiet = lanes.iter().all(|lane| lane.handoff_waiting() == 0);
                if delivered + polled == 0 && is_quiet && !advance(&lanes) {
                    break;
                }
            }
        }
        run_dry(&mut lanes, Time::ZERO);
        for shard in lanes.iter().flat_map(|lane| lane.shards().iter()) {
            look(shard);
        }
        let mut metrics = Metrics::default();
        lanes.iter().for_each(|lane| lane.add_metrics(&mut metrics));
        if let Some(lane) = lanes.first() {
            lane.add_shared_metrics(&mut metrics);
        }
        let counters: Vec<_> = devices.iter().map(|device| device.monitor().counters()).collect();
        let found = remains(&lanes, &counters, SHARDS);
        drop((lanes, devices, cache));
        let (buffers, buffers_home) = (pool.capacity(), pool.available());
        let remains = Remains { buffers, buffers_home, ..found };
        let violations = remains.check();
        let counters = LaneSample::sum(&remains.lanes);
        let (sent, outcomes) = (collector.drain(), Vec::new());
        Ok(HarnessReport { counters, sent, outcomes, metrics, violations })
    }
}
