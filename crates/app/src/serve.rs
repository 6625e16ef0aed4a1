//! `rheo serve`: a service over TCP in the lanes of a run.

mod assembly;
mod beside_kernel;
mod check;
mod flags;
mod over_kernel;
mod placing;
mod summary;
mod work;

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rheostat_control::config::ServeConfig;
use rheostat_control::{Balancer, Balancing, Config, KernelFollower, LoadError};
use rheostat_io::ImpairConfig;
use rheostat_kernel::identity::{self, UnknownName};
use rheostat_kernel::privileges::{self, PrivilegeError};
use rheostat_observe::OutputFiles;
use rheostat_observe::live_page::EventLog;
use rheostat_run::{PoolConfig, PoolError, RunReport, Runtime, StartError, Violation};
use rheostat_serve::host::HostError;
use rheostat_serve::registry::{
    ApplicationError, ApplicationRegistration, MadeApplication, Making, Program,
};
use rheostat_serve::{MembersError, ServeControl, ServeError, TcpServer, TimesConfig};
use rheostat_steer::policy::Objectives;
use thiserror::Error;

use self::assembly::ServeAssembly;
pub(crate) use self::check::{ServiceError, check};
pub(crate) use self::flags::{Args, with_applications};
pub(crate) use self::over_kernel::is_over_kernel;
pub(crate) use self::placing::{Placed, PlacingError, place};
use self::summary::ServeSummary;
pub use self::work::operations_of_roots;
use crate::active_config::ActiveConfig;
use crate::app::App;
use crate::assemble::AssembleError;
use crate::attachment::{AttachmentArgs, NoConfirmation, Trial};
use crate::control::{Instance, MappingPlace};
use crate::links::WatchedLinks;
use crate::listeners::{ListenError, Listeners};
use crate::log::WrongVariable;
use crate::mtu::{self, Mtus};
use crate::network::NoAddress;
use crate::preflight::{PreflightError, preflight};
use crate::reload::{self, ConfigSource, LiveBalancing, LiveNetwork, LiveRun, Reloader};
use crate::run_times::RunTimes;
use crate::workers::{Workers, WorkersError};
use crate::{interrupt, log, run};
use beside_kernel::{BesideKernelError, OwnPorts};

/// Why a service did not start, or has no report.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error("{0}")]
    Variable(#[from] WrongVariable),
    #[error("{0}")]
    NotLive(#[from] NotLive),
    #[error("{0}")]
    Placing(#[from] PlacingError),
    #[error("{0}")]
    Preflight(#[from] PreflightError),
    #[error("{0}")]
    NoAddress(#[from] NoAddress),
    #[error("{0}")]
    Application(#[from] ApplicationError),
    #[error("`{application}` cannot be served over the kernel's sockets: {source}")]
    Host { application: &'static str, source: HostError },
    #[error(
        "{flag} has no meaning where the kernel does TCP: leave it out, or take a device of kind tap, af_packet or af_xdp"
    )]
    NotOverKernel { flag: &'static str },
    #[error("{0}")]
    Service(#[from] ServiceError),
    #[error("{0}")]
    BesideKernel(#[from] BesideKernelError),
    #[error("{0}")]
    Assemble(#[from] AssembleError),
    #[error("{0}")]
    Workers(#[from] WorkersError),
    #[error("{0}")]
    Server(#[from] ServeError),
    #[error("{0}")]
    Members(#[from] MembersError),
    #[error("application workers: {0}")]
    ApplicationWorkers(#[from] PoolError),
    #[error("{0}")]
    Name(#[from] UnknownName),
    #[error("{0}")]
    Privileges(#[from] PrivilegeError),
    #[error("{0}")]
    Listen(#[from] ListenError),
    #[error("{0}")]
    Trial(#[from] NoConfirmation),
    #[error("{0}")]
    Start(#[from] StartError),
    /// A thread cannot be started, or signals cannot be watched.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A service without an interface.
#[derive(Debug, Error)]
#[error("a service needs an interface: pass --device NAME=tap:INTERFACE, af_packet or af_xdp")]
pub(crate) struct NotLive;

/// How often the end of a run is looked for.
const TICK: Duration = Duration::from_millis(5);
/// How long workers may take for the poll at hand when the run is over, beside what requests had while connections were drained.
const WORKERS_TIME: Duration = Duration::from_secs(10);
/// How long application workers may take for the requests at hand when the run is over.
const MEMBERS_TIME: Duration = Duration::from_secs(1);
/// The exit status of a run that ended because an interface was gone.
const LINK_LOST: u8 = 3;

/// What is said of a service when it is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// As JSON.
    pub(crate) json: bool,
    /// Where the time of requests went.
    pub(crate) times: bool,
}

/// The applications that come with rheostat. That of synthetic work keeps what it has measured from one run to the next.
pub(crate) fn applications() -> Vec<ApplicationRegistration> {
    let own = [work::registration()];
    let others = rheostat_serve::registry::applications();
    let is_own = |application: &ApplicationRegistration| own.contains(application);
    let (replaced, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_own);
    debug_assert_eq!(replaced.len(), own.len());
    others.into_iter().chain(own).collect()
}

/// Serves as the flags state until a signal or `rheo stop` ends it, and reports.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    if args.acts(app)? {
        return Ok(ExitCode::SUCCESS);
    }
    let (config, faults, report, attachment) = args.config(app)?;
    serve(config, faults, report, &attachment, None)
}

/// Serves as a configuration with a service states until a signal or `rheo stop` ends it, and reports. `faults` are put before
/// its device. With its `source`, it can be reloaded.
///
/// # Errors
/// [`Error`] when the service cannot start.
pub(crate) fn serve(
    config: Config,
    faults: Option<ImpairConfig>,
    report: Report,
    attachment: &AttachmentArgs,
    source: Option<ConfigSource>,
) -> Result<ExitCode, Error> {
    log::configure(&config.observe);
    let trial = Trial::of(attachment, &config)?;
    let serve = config.serve.clone().expect("the caller has looked");
    if is_over_kernel(&config) {
        return over_kernel::serve(&config, &serve, faults, report, trial);
    }
    let Placed { workers, members } = place(&config, &serve)?;
    let workers = Workers::of(&workers)?;
    preflight(&config, &workers, &rheostat_functions::shipped::empty())?.begin(attachment)?;
    let cores = match &members {
        Some(members) => members.members.iter().filter_map(|core| *core).collect(),
        None => workers.cores().to_vec(),
    };
    let made = serve.application.make(&Making { cores })?;
    ServeRun { config, serve, workers, faults, report, trial, made, members }.carry_out(source)
}

/// Has lanes run `program`.
///
/// # Errors
/// [`ServeError`] when the settings of the service contradict each other.
fn over_lanes(
    program: Program,
    serve: &ServeConfig,
    assembly: &ServeAssembly,
    times: bool,
) -> Result<TcpServer, ServeError> {
    let facts = serve.application.facts();
    let (lanes, secret) = (assembly.lanes(), assembly.secret());
    let (listeners, network) = (serve.listeners(), assembly.network());
    let mut server = program.over_lanes(listeners, serve.limits(), network, lanes, &secret)?;
    if facts.opens.is_some() {
        server = assembly.connecting(server, serve.outgoing())?;
    }
    if times && !facts.is_handler {
        server = server.timing(TimesConfig::new(Arc::new(assembly.clock())));
    }
    server.under(serve.scheduling.scheduler.clone())
}

/// A service before its device is open.
struct ServeRun {
    config: Config,
    serve: ServeConfig,
    workers: Workers,
    faults: Option<ImpairConfig>,
    report: Report,
    trial: Trial,
    made: MadeApplication,
    /// Workers that handle requests in place of the lanes.
    members: Option<PoolConfig>,
}

impl ServeRun {
    fn carry_out(self, source: Option<ConfigSource>) -> Result<ExitCode, Error> {
        let ServeRun { config, serve, workers, faults, report, trial, made, members } = self;
        let Report { json, times } = report;
        let MadeApplication { program, report: part } = made;
        let interrupted = Arc::new(AtomicBool::new(false));
        let hangups = match &source {
            Some(_) => interrupt::set_but_hangups(&interrupted)?,
            None => interrupt::set(&interrupted).map(|()| None)?,
        };
        // Before any thread is started that changes its user.
        let identity = identity::find(config.run.user.as_deref(), config.run.group.as_deref())?;
        if let Some(identity) = identity {
            privileges::become_later(identity);
        }
        // Before anything costly: another instance may listen there.
        let listeners = Listeners::open(&config.observe, identity)?;
        let active = Arc::new(ActiveConfig::of(&config));
        let OwnPorts { endpoints, kept: _kept } = beside_kernel::own_ports(&config)?;
        let own = config.devices.iter().flat_map(|device| &device.addresses);
        let addresses: Vec<_> = own.map(|own| own.address).collect();
        let (run_times, priority) = (RunTimes::of(&config), config.workers.priority);
        let loaded = config.clone();
        let (mtus, shards) = (mtu::Devices::of(&config), config.state.shards);
        let cores = workers.cores_of_lanes(&config.polling);
        let mut assembly = ServeAssembly::new(config, workers, endpoints, faults)?;
        let network = assembly.network();
        let server = over_lanes(program, &serve, &assembly, times)?;
        let follower = assembly.take_follower();
        let links = WatchedLinks::start(assembly.take_watched(), Some(network.clone()))?;
        // Devices are open; whatever is started from here on inherits what is left: nothing.
        let raised = priority.and_then(run::raise);
        privileges::give_up()?;
        privileges::check_all_threads(links.keeper())?;
        let balance = assembly.balance();
        let (faults, errors) = (assembly.faults(), assembly.errors());
        let members = members.map(|members| server.start_members(&members)).transpose()?;
        let runtime = assembly.start(&server)?;
        // Workers have inherited it.
        drop(raised);
        let view = runtime.view();
        let control = server.control();
        control.wake_by(runtime.lane_notifiers());
        let sizes = (view.lanes(), shards);
        let balancer = Balancer::new(balance.policy(), balance.interval, sizes, view.now());
        let balancing = Balancing::start(balancer, balance, Objectives::PERCENTILE, view.clone())?;
        let reports_shards = !loaded.balance.is_static();
        let routes = follower.as_ref().map(KernelFollower::routes);
        let live = Arc::new(LiveRun {
            chain: None,
            network: Some(LiveNetwork::new(network.clone(), routes)),
            balancing: LiveBalancing::new(
                balancing.change(),
                &loaded,
                view.lanes(),
                reports_shards,
            ),
            times: run_times.clone(),
            errors: Some(errors),
        });
        let events = Arc::<EventLog>::default();
        let shown = (active.clone(), events.clone());
        let reloader = source.map(|source| Reloader::new(source, loaded, live.clone(), shown));
        let reloader = reloader.map(Arc::new);
        let hangups = reload::on_hangups(hangups, reloader.clone(), &interrupted)?;
        let instance = Instance {
            view: view.clone(),
            interrupted: interrupted.clone(),
            trial: trial.clone(),
            live,
            reloader,
            progress: balancing.board(),
            functions: Vec::new(),
            objects: None,
            files: OutputFiles::default(),
            in_use: Vec::new(),
            links: links.board(),
            network: Some(network.clone()),
            followed: follower.as_ref().map(KernelFollower::routes),
            cores,
            rules: Arc::default(),
            walks: None,
            mappings: MappingPlace::default(),
            service: Some(control.clone()),
            config: active,
            events,
        };
        let observers = listeners.start(instance)?.with_hangups(hangups);
        links.go_by(Mtus::new(mtus, Some(network), view));
        for port in &serve.ports {
            for address in &addresses {
                out!("listening {}", SocketAddr::new(*address, *port));
            }
        }
        let ends = Ends { interrupted, trial, times: run_times };
        let is_lost = ends.wait(&runtime, &control, &links);
        balancing.stop();
        drop((observers, links));
        let report = runtime.join_within(WORKERS_TIME);
        // Whatever came of the run: those that do not end would be waited for.
        let members = members.map(|members| members.stop_within(MEMBERS_TIME)).unwrap_or_default();
        for member in members.running {
            tracing::warn!(target: "serve", "application worker {member} is left at a request that does not end");
        }
        let mut report = report?;
        report.violations.extend(members.failures.into_iter().map(Violation::from));
        let part = (serve.application.name(), part);
        let summary = ServeSummary::new(&report, &control, &faults, part);
        Ok(print(&report, &summary, json, is_lost))
    }
}

/// What ends a service.
struct Ends {
    interrupted: Arc<AtomicBool>,
    trial: Trial,
    times: RunTimes,
}

impl Ends {
    /// Waits until the service is to end, and then until its connections have ended, or have had time to. Returns whether an
    /// interface was lost.
    fn wait(&self, run: &Runtime, control: &ServeControl, links: &WatchedLinks) -> bool {
        let start = Instant::now();
        let mut drained_by: Option<Instant> = None;
        while !run.is_finished() {
            std::thread::sleep(TICK);
            let now = Instant::now();
            let duration = self.times.duration();
            let time_is_up = duration.is_some_and(|duration| now >= start + duration)
                || self.trial.is_over(now - start);
            if links.is_lost() {
                return true;
            }
            match drained_by {
                None if time_is_up || self.interrupted.load(Ordering::Relaxed) => {
                    control.drain();
                    drained_by = Some(now + self.times.drain_time());
                }
                Some(end) if now >= end || control.connections() == 0 => return false,
                _ => {}
            }
        }
        false
    }
}

fn print(report: &RunReport, summary: &ServeSummary, json: bool, is_lost: bool) -> ExitCode {
    for warning in &report.warnings {
        tracing::warn!(target: "run", "{warning}");
    }
    match json {
        true => out!("{}", summary.to_json()),
        false => out!("{summary}"),
    }
    for violation in &report.violations {
        err!("broken invariant: {violation}");
    }
    match (report.violations.is_empty(), is_lost) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(LINK_LOST),
        (true, false) => ExitCode::SUCCESS,
    }
}
