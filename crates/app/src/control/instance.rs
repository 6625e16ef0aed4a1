//! What a running instance does when it is asked.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rheostat_base::{QueueId, ShardId};
use rheostat_control::{BalanceBoard, FollowedRoutes, Progress};
use rheostat_ip::Network;
use rheostat_observe::control::{
    self, BackendState, DeviceState, FileInUse, HealthWord, ListRequest, Listing, Reply, Request,
    Shuffle, Status,
};
use rheostat_observe::live_page::EventLog;
use rheostat_observe::openmetrics::{PlanState, Snapshot};
use rheostat_observe::{ClassMetrics, LinkBoard, OutputFiles, RuleBoard, Summary};
use rheostat_run::listing::WalkBoard;
use rheostat_run::{LiveMetrics, Metrics, RunView, Sample};
use rheostat_serve::ServeControl;
use rheostat_state::txn::Objects;
use rheostat_steer::Fence;

use super::listing;
use super::nat::MappingPlace;
use super::peer::Peer;
use super::server::{Answers, Depth};
use crate::active_config::ActiveConfig;
use crate::attachment::Trial;
use crate::objectives::with_progress;
use crate::reload::{LiveRun, Reloader};

/// How long a table's fence may take to pass: a worker that polls passes it at once.
const FENCE: Duration = Duration::from_secs(30);
/// How often a fence is looked at.
const GLANCE: Duration = Duration::from_micros(50);
/// How long shards may take to apply another health of backends: half a second, unless a lane is stuck.
const APPLY: Duration = Duration::from_secs(5);
/// How long lanes may take to answer what their functions have counted: their next poll, unless one is stuck.
pub(super) const COUNT: Duration = Duration::from_millis(500);
/// How often it is looked whether they have.
const APPLY_GLANCE: Duration = Duration::from_millis(2);
/// The longest pause between two rewrites.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A running instance, as clients of the control socket see it.
#[derive(Debug)]
pub(crate) struct Instance {
    /// The run.
    pub(crate) view: Arc<RunView>,
    /// Set to end the run.
    pub(crate) interrupted: Arc<AtomicBool>,
    /// Whether it ends by itself.
    pub(crate) trial: Trial,
    /// What a reload changes of it.
    pub(crate) live: Arc<LiveRun>,
    /// What reloads it, if it was started from a file.
    pub(crate) reloader: Option<Arc<Reloader>>,
    /// Where it is shown what was decided.
    pub(crate) progress: BalanceBoard,
    /// The functions of the chain.
    pub(crate) functions: Vec<String>,
    /// What they share, if they share anything.
    pub(crate) objects: Option<Objects>,
    /// The files that the run writes.
    pub(crate) files: OutputFiles,
    /// The files that the run reads or writes, which no capture may overwrite.
    pub(crate) in_use: Vec<FileInUse>,
    /// What has happened to the interfaces of live devices.
    pub(crate) links: Arc<LinkBoard>,
    /// The network layer, where devices have addresses.
    pub(crate) network: Option<Arc<Network>>,
    /// The routes of the kernel, where it is followed.
    pub(crate) followed: Option<FollowedRoutes>,
    /// The core of each lane that keeps to one.
    pub(crate) cores: Vec<Option<u16>>,
    /// The rules of the chain's functions.
    pub(crate) rules: Arc<RuleBoard>,
    /// Where walks through flows begin, if the chain keeps flows.
    pub(crate) walks: Option<Arc<WalkBoard>>,
    /// Where the NAT of the chain keeps its mappings.
    pub(crate) mappings: MappingPlace,
    /// The service over TCP, if it is one.
    pub(crate) service: Option<ServeControl>,
    /// The text of the configuration in force.
    pub(crate) config: Arc<ActiveConfig>,
    /// What has happened; other threads add to it.
    pub(crate) events: Arc<EventLog>,
}

impl Answers for Instance {
    fn answer(&self, request: Request, peer: &mut Peer) -> io::Result<()> {
        let reply = match request {
            Request::Status => {
                let status = self.status(&self.view.sample(), Depth::Functions);
                Ok(Reply::Status(Box::new(status)))
            }
            Request::Table { device, entries, shuffle } => {
                self.table(device, entries, shuffle, peer)
            }
            Request::Backend { service, backend, health } => {
                self.set_backend(service, backend, health, peer)
            }
            Request::Capture(request) => return self.capture(&request, peer),
            Request::Trace(request) => return self.trace(&request, peer),
            Request::Explain(request) => self.explain(&request, peer),
            Request::Profile(request) => self.profile(&request, peer),
            Request::Connections(request) => return self.connections(&request, peer),
            Request::List(request) => return self.list(&request, peer),
            Request::Hello => Ok(control::hello()),
            Request::DeleteFlows(request) => self.delete_flows(&request, peer),
            Request::Reload(request) => return self.reload(request, peer),
            Request::Config => Ok(Reply::Config { text: self.config_in_force() }),
            Request::Keep => Ok(super::confirm(&self.trial)),
            Request::Stop => {
                self.interrupted.store(true, Ordering::Relaxed);
                Ok(Reply::Stopping)
            }
        };
        peer.send(&reply.unwrap_or_else(|message| Reply::Error { message }))
    }

    fn snapshot(&self, depth: Depth) -> Snapshot {
        let (view, sample) = (&self.view, self.view.sample());
        let status = self.status(&sample, depth);
        let Progress { policy, plans, why, .. } = self.progress.read();
        let migrator = view.migrator();
        let (owners, moves) = (migrator.owners().to_vec(), migrator.durations().clone());
        drop(migrator);
        let shards = view.loads().iter().fold(Vec::new(), |mut sum: Vec<u64>, lane| {
            let packets = lane.packets();
            sum.resize(packets.len().max(sum.len()), 0);
            sum.iter_mut().zip(packets).for_each(|(sum, packets)| *sum += packets);
            sum
        });
        let transactions = self.objects.as_ref().map(|objects| objects.profile().lanes);
        let counted = |name: &str| status.summary.functions.get(name).copied().unwrap_or(0);
        let rules = self.rules.lines(view.now(), counted);
        Snapshot {
            rules,
            devices: view.devices().to_vec(),
            sample,
            shards,
            moves,
            owners,
            times: view.lane_times().to_vec(),
            plan: PlanState { policy, plans, why },
            latencies: ClassMetrics::latencies_by_lane(view),
            classes: ClassMetrics::latencies(view),
            transactions: transactions.unwrap_or_default(),
            ..Snapshot::of(env!("CARGO_PKG_VERSION"), status)
        }
    }

    fn config(&self) -> String {
        self.config.to_string()
    }

    fn events(&self) -> &EventLog {
        &self.events
    }

    fn view(&self) -> Option<&Arc<RunView>> {
        Some(&self.view)
    }
}

impl Instance {
    /// The text of the configuration in force: that of the last reload, or the one that the run was started with.
    fn config_in_force(&self) -> String {
        match &self.reloader {
            Some(reloader) => reloader.text(),
            None => self.config.to_string(),
        }
    }

    /// Sends a page of a listing.
    fn list(&self, request: &ListRequest, peer: &mut Peer) -> io::Result<()> {
        match &request.of {
            Listing::Connections(wanted) => {
                listing::send_of_lanes(self.page_of_connections(wanted, request), peer)
            }
            Listing::Backends => listing::send(self.page_of_backends(request), 0, peer),
            Listing::Neighbours => listing::send(self.page_of_neighbours(request), 0, peer),
            Listing::Routes => listing::send(self.page_of_routes(request), 0, peer),
            Listing::Lanes => listing::send(self.page_of_lanes(request), 0, peer),
            Listing::Shards => listing::send_of_lanes(self.page_of_shards(request), peer),
            Listing::Rules => listing::send(self.page_of_rules(request), 0, peer),
            Listing::Flows(wanted) => {
                let page = self.page_of_flows(wanted, request, peer);
                listing::send_of_lanes(page, peer)
            }
            Listing::Mappings(wanted) => {
                let page = self.page_of_mappings(wanted, request, peer);
                listing::send_of_lanes(page, peer)
            }
        }
    }

    fn status(&self, sample: &Sample, depth: Depth) -> Status {
        let incomplete = self.files.incomplete();
        let links = self.links.lines();
        let ports = self.live.ports().map(|ports| ports.lines(SystemTime::now()));
        let ports = ports.unwrap_or_default();
        let progress = self.progress.read();
        let summary = Summary { incomplete, links, ports, ..Summary::so_far(sample) };
        let mut summary = with_progress(summary, &progress, &self.view, sample);
        let (own, missing_shards) = match &self.service {
            Some(service) => (service.metrics(), 0),
            None if depth == Depth::Counters => (Metrics::default(), 0),
            None => {
                let LiveMetrics { metrics, missing_shards, .. } = self.view.metrics(COUNT);
                summary.functions =
                    metrics.iter().map(|(name, count)| (name.into(), count)).collect();
                (Metrics::default(), missing_shards)
            }
        };
        let devices = self.view.devices().iter().zip(&sample.devices).map(|(device, counters)| {
            let (arrived, lost, sent) = (counters.arrived, counters.lost(), counters.sent);
            DeviceState { device: device.clone(), arrived, lost, sent }
        });
        let backends = self.live.board().into_iter().flat_map(|board| board.backends());
        let state = |(service, backend, health): (String, String, _)| BackendState {
            service,
            backend,
            health: HealthWord::from(health),
        };
        let devices = devices.collect();
        let tcp = self.service.iter().flat_map(|service| {
            let current = ("tcpCurrEstab", service.connections() as u64);
            service.totals().mib().into_iter().chain([current])
        });
        let service = self.service.iter().flat_map(|service| {
            let current = ("half_open", service.half_open() as u64);
            service.totals().named().chain([current])
        });
        Status {
            summary,
            devices,
            tcp: by_name(tcp),
            service: by_name(service),
            connections: self.service.as_ref().map(|service| service.totals().accepted),
            application: by_name(own.iter()),
            missing_shards,
            tcp_by: None,
            backends: backends.map(state).collect(),
            config: self.reloader.as_ref().map(|reloader| reloader.state()),
        }
    }

    fn set_backend(
        &self,
        service: String,
        backend: String,
        health: HealthWord,
        peer: &Peer,
    ) -> Result<Reply, String> {
        let Some(board) = self.live.board() else {
            return Err(self.without_backends());
        };
        let change =
            board.set(&service, &backend, health.into()).map_err(|error| error.to_string())?;
        let start = Instant::now();
        loop {
            let pending = board.pending(change.generation);
            if pending.is_empty() {
                let state = BackendState { service, backend, health };
                return Ok(Reply::Backend { state, moved: change.moved });
            }
            if peer.run_is_over() || peer.has_gone() {
                return Err("the run is over".to_owned());
            }
            if start.elapsed() > APPLY {
                return Err(format!(
                    "`{backend}` of `{service}` is set to {health}, but after {} s {} may still go by \
                     what it was before: is a worker stuck?",
                    APPLY.as_secs(),
                    self.lanes_of(&pending)
                ));
            }
            thread::sleep(APPLY_GLANCE);
        }
    }

    /// The lanes that own these shards, for messages.
    fn lanes_of(&self, shards: &[ShardId]) -> String {
        let owners = self.view.migrator().owners().to_vec();
        let lanes = shards.iter().filter_map(|shard| owners.get(shard.index()));
        let lanes: BTreeSet<_> = lanes.map(|lane| lane.0).collect();
        let names: Vec<_> = lanes.iter().map(|lane| format!("lane {lane}")).collect();
        format!("{} ({} shards)", names.join(", "), shards.len())
    }

    fn table(
        &self,
        device: String,
        entries: Option<Vec<u16>>,
        shuffle: Option<Shuffle>,
        peer: &Peer,
    ) -> Result<Reply, String> {
        let rewrites = match (entries, shuffle) {
            (Some(_), Some(_)) => {
                return Err("give either `entries` or `shuffle`, not both".to_owned());
            }
            (Some(entries), None) => {
                let entries: Vec<_> = entries.into_iter().map(QueueId).collect();
                self.rewrite(&device, &entries, peer)?;
                1
            }
            (None, Some(shuffle)) => self.shuffle(&device, shuffle, peer)?,
            (None, None) => 0,
        };
        let entries = self.view.table(&device).map_err(|error| error.to_string())?;
        let entries = entries.into_iter().map(|queue| queue.0).collect();
        Ok(Reply::Table { device, entries, rewrites })
    }

    /// Puts the entries into another order, as often as asked for, unless the client goes or the run
    /// ends. Returns how often.
    fn shuffle(&self, device: &str, shuffle: Shuffle, peer: &Peer) -> Result<u32, String> {
        let mut rng = StdRng::seed_from_u64(shuffle.seed);
        let mut entries = self.view.table(device).map_err(|error| error.to_string())?;
        let pause = Duration::from_millis(shuffle.pause_ms).min(LONGEST_PAUSE);
        for time in 0..shuffle.times {
            if peer.has_gone() || peer.run_is_over() {
                return Ok(time);
            }
            entries.shuffle(&mut rng);
            self.rewrite(device, &entries, peer)?;
            peer.pause(pause);
        }
        Ok(shuffle.times)
    }

    /// Rewrites a table and waits until no packet can be placed by the old entries any more.
    fn rewrite(&self, device: &str, entries: &[QueueId], peer: &Peer) -> Result<(), String> {
        let fence: Fence = self.view.rewrite(device, entries).map_err(|error| error.to_string())?;
        let start = Instant::now();
        while !fence.passed() {
            if peer.run_is_over() {
                return Err("the run is over".to_owned());
            }
            if start.elapsed() > FENCE {
                let seconds = FENCE.as_secs();
                return Err(format!(
                    "the new entries of `{device}` are written, but after {seconds} s packets may still \
                     be placed by the old ones: is a worker stuck?"
                ));
            }
            thread::sleep(GLANCE);
        }
        Ok(())
    }
}

/// Counters by their names.
pub(crate) fn by_name<'a>(counters: impl Iterator<Item = (&'a str, u64)>) -> BTreeMap<String, u64> {
    counters.map(|(name, count)| (name.to_owned(), count)).collect()
}
