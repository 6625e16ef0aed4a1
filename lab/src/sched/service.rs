//! A service under a scheduler, with its clients.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::Clock;
use rheostat_base::clock::Cycles;
use rheostat_io::Device;
use rheostat_run::{LaneSample, Pool, Runtime, RuntimeConfig};
use rheostat_serve::work::{Operations, Work, WorkConfig};
use rheostat_serve::{
    Application, AvailableScheduler, RequestTimes, ServeConfig, ServeControl, TcpServer,
    TimesConfig,
};
use rheostat_state::{FlowHasher, FragmentConfig};
use rheostat_tcp::sched::{Outstanding, Scheduler};

use super::error::SchedBenchError;
use super::members::{self, MEMBERS_TIME};
use super::rig::{Clients, RigConfig, RigTotals};
use super::workload::RigWorkload;
use crate::testbed::lanes::{finish, pool};
use crate::testbed::{Cores, server};

/// Packet buffers for each receive queue.
const BUFFERS: u32 = 8_192;
/// How long nothing may happen.
pub(super) const TIMEOUT: Duration = Duration::from_secs(15);

/// What runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceConfig {
    pub(super) scheduler: Scheduler,
    /// Connections in all.
    pub(super) connections: u32,
    /// Requests that a member of a central queue may hold.
    pub(super) outstanding: Outstanding,
    /// Packets that a worker takes at a time of a receive queue that others take from, too.
    pub(super) burst: u32,
    /// Whether the application is a probe.
    pub(super) records_stages: bool,
    /// Whether the service times the stages of requests.
    pub(super) is_timed: bool,
}

/// The application of a workload.
pub(super) fn work(workload: &RigWorkload, operations: &Operations) -> Work {
    let config = WorkConfig {
        work: workload.kind(),
        service_time: workload.times().clone(),
        ..WorkConfig::default()
    };
    Work::new(&config, operations.clone(), 0, Vec::new())
}

/// A service that runs, all of whose connections are open.
pub(super) struct RunningService {
    name: String,
    runtime: Runtime,
    members: Option<Pool>,
    control: ServeControl,
    pub(super) clients: Clients,
    pub(super) clock: Clock,
}

impl RunningService {
    /// Starts it, and opens the connections.
    pub(super) fn start(
        config: &ServiceConfig,
        app: impl Application,
    ) -> Result<RunningService, SchedBenchError> {
        let ServiceConfig { scheduler, outstanding, .. } = *config;
        let ServiceConfig { connections, burst, records_stages, is_timed, .. } = *config;
        let name = scheduler.name().to_string();
        let (lanes, workers) = (members::lanes(scheduler), usize::from(scheduler.workers()));
        let cores = Cores::of_lanes(0, workers)?;
        let pool = pool(BUFFERS * workers as u32)?;
        let steering = server::steering()?;
        let clock = Clock::new();
        let rig = RigConfig {
            device: server::DEVICE,
            queues: lanes,
            connections,
            macs: [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]],
            client: Ipv4Addr::new(10, 1, 0, 1),
            server: server::ADDRESS,
            records_stages,
        };
        let mac = rig.macs[1];
        let clients = Clients::new(rig, &steering, Arc::new(clock.clone()));
        let clients = clients.ok_or(SchedBenchError::Connections(connections.into()))?;
        let (network, listeners) = (server::network(mac), vec![server::listener()]);
        // Clients acknowledge that a connection is open with their first request, or after some time.
        let most = 2 * connections as usize + 1_024;
        let limits = ServeConfig { connections: most, half_open: most, ..ServeConfig::default() };
        let mut service = TcpServer::new(app, listeners, limits, network, lanes, &server::SECRET)?;
        if is_timed {
            let times = TimesConfig::new(Arc::new(clock.clone()));
            service = service.timing(TimesConfig { has_arrivals: true, ..times });
        }
        let named = AvailableScheduler::from(scheduler.name());
        let sharing = named.sharing();
        let service = service.under(named)?;
        let members = members::members(scheduler, outstanding, cores.as_slice());
        let pool_of_members = members.map(|members| service.start_members(&members)).transpose()?;
        let hasher = FlowHasher::fixed();
        let shards = service.shards(server::SHARDS, hasher, FragmentConfig::default())?;
        let runtime_config = RuntimeConfig {
            workers: cores.bound(lanes),
            handoff_capacity: 1_024,
            sharing: sharing.map(|sharing| sharing.in_bursts_of(burst as usize)),
            ..RuntimeConfig::new(lanes, pool, steering, hasher)
        };
        let devices: Vec<Box<dyn Device>> = vec![Box::new(clients.clone())];
        let runtime = Runtime::start(
            runtime_config,
            devices,
            clock.clone(),
            |lane| service.service(lane),
            shards,
        )?;
        let control = service.control();
        let running =
            RunningService { name, runtime, members: pool_of_members, control, clients, clock };
        running.open()
    }

    /// Waits until all connections are open.
    fn open(self) -> Result<RunningService, SchedBenchError> {
        let begun = Instant::now();
        while !self.clients.are_open() {
            if begun.elapsed() > TIMEOUT {
                let (scheduler, seconds) = (self.name.clone(), TIMEOUT.as_secs());
                let problem = SchedBenchError::Unopened { scheduler, seconds };
                self.runtime.join()?;
                self.members
                    .map(|members| members.stop_within(MEMBERS_TIME).into_result())
                    .transpose()?;
                return Err(problem);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(self)
    }

    /// Requests were not answered: says what else was odd.
    pub(super) fn silent(&self) -> SchedBenchError {
        let totals = self.control.totals();
        let service = totals.named().filter(|(name, _)| {
            name.starts_with("ignored_") || ["retransmitted", "unclaimed", "panics"].contains(name)
        });
        let RigTotals { broken, no_buffer, stray, .. } = self.clients.totals();
        let clients = [("broken", broken), ("no_buffer", no_buffer), ("stray", stray)];
        let sample = self.runtime.view().sample();
        let dropped = sample.dropped().map(|(reason, count)| (reason.name(), count));
        let odd = service.chain(clients).chain(dropped).filter(|(_, count)| *count > 0);
        let odd: Vec<_> = odd.map(|(name, count)| format!(", {name}: {count}")).collect();
        SchedBenchError::Silent {
            scheduler: self.name.clone(),
            seconds: TIMEOUT.as_secs(),
            under_way: self.clients.under_way(),
            odd: odd.concat(),
        }
    }

    /// Where the time of its requests went, if it is timed.
    pub(super) fn request_times(&self) -> Option<RequestTimes> {
        self.control.request_times()
    }

    /// The polls in which lanes had something to do so far, and their nanoseconds.
    pub(super) fn busy(&self) -> (u64, u64) {
        let lanes = self.runtime.view().sample().lanes;
        let sum = |of: fn(&LaneSample) -> u64| lanes.iter().map(of).sum();
        (sum(|lane| lane.busy_polls), sum(|lane| lane.busy_ns))
    }

    /// Nanoseconds of so many ticks.
    pub(super) fn nanos(&self, ticks: u64) -> f64 {
        self.clock.nanos_between(Cycles(0), Cycles(ticks)) as f64
    }

    /// Ends it, and says whether all that it did was sound.
    pub(super) fn stop(self, unrecorded: u64) -> Result<(), SchedBenchError> {
        // Before the drain, which ends connections.
        let totals = self.clients.totals();
        let ended = finish(self.runtime);
        self.members.map(|members| members.stop_within(MEMBERS_TIME).into_result()).transpose()?;
        ended?;
        let RigTotals { broken, no_buffer, stray, .. } = totals;
        if broken + no_buffer + stray + unrecorded > 0 {
            let scheduler = self.name;
            return Err(SchedBenchError::Unsound {
                scheduler,
                broken,
                no_buffer,
                stray,
                unrecorded,
            });
        }
        Ok(())
    }
}
