//! `rheo serve`: a service over TCP in the lanes of a run.

mod assembly;
mod beside_kernel;
mod check;
mod flags;
mod placing;
mod summary;
mod work;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rheostat_base::core_set::CoreError;
use rheostat_base::privileges::{self, PrivilegeError};
use rheostat_base::{Clock, Placement, WallClock};
use rheostat_control::config::{HttpServiceConfig, ServeConfig, ServiceConfig};
use rheostat_control::{Balancer, Balancing, Config, DeviceOverride, LoadError};
use rheostat_io::ImpairConfig;
use rheostat_observe::OutputFiles;
use rheostat_run::{PoolConfig, PoolError, RunReport, Runtime, StartError, Violation};
use rheostat_serve::echo::Echo;
use rheostat_serve::http::Http;
use rheostat_serve::relay::Relay;
use rheostat_serve::resp::Resp;
use rheostat_serve::work::buffer::BufferError;
use rheostat_serve::{
    Application, AvailableScheduler, ListenerConfig, MembersError, ServeConfig as Limits,
    ServeControl, ServeError, TcpServer, TimesConfig,
};
use rheostat_steer::policy::{Objectives, Settings};
use thiserror::Error;

use self::assembly::Assembly;
pub(crate) use self::check::{ServiceError, check};
pub(crate) use self::placing::{PlacingError, place};
use self::summary::ServeSummary;
use self::work::WorkReport;
pub(crate) use self::work::buffer_bytes;
pub use self::work::operations_of_roots;
use crate::app::App;
use crate::assemble::{self, AssembleError};
use crate::control::{ControlSocket, Instance, Server, SocketError};
use crate::identity::{self, UnknownName};
use crate::links::Links;
use crate::mtu::{self, Mtus};
use crate::preflight::{PreflightError, preflight};
use crate::{interrupt, run};
use beside_kernel::BesideKernelError;

/// Why a service did not start, or has no report.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error("{0}")]
    NotLive(#[from] NotLive),
    #[error("{0}")]
    Placing(#[from] PlacingError),
    #[error("{0}")]
    Preflight(#[from] PreflightError),
    #[error("--buffer: {0}")]
    Buffer(#[from] BufferError),
    #[error("{0}")]
    Service(#[from] ServiceError),
    #[error("{0}")]
    BesideKernel(#[from] BesideKernelError),
    #[error("{0}")]
    Assemble(#[from] AssembleError),
    #[error("{0}")]
    Cores(#[from] CoreError),
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
    Socket(#[from] SocketError),
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

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo serve http --root /srv/www --device lan=tap:rheo0 --address 10.0.0.1/24 \\
    --port 80
  rheo serve echo --device lan=af_xdp:eth1 --address 192.168.77.1/24 \\
    --address fd77::1/64 --port 7
  rheo serve resp --memory 1GiB --device lan=af_xdp:eth1 \\
    --address 192.168.77.1/24 --port 6379
  rheo serve work --service bimodal-1 --device lan=af_xdp:eth1 \\
    --address 192.168.77.1/24 --port 7000
  rheo serve work --calibrate --work chase --service 10us --json
  rheo serve relay --to 192.0.2.7:22 --device lan=af_xdp:eth1 \\
    --address 192.168.77.1/24 --gateway 192.168.77.254 --port 2222
  rheo serve http --root . --device lan=af_xdp:eth1 --address 192.168.77.1/24 \\
    --port 8080 --lanes 2 --policy rsspp
  rheo serve http --root . --device lan=af_xdp:eth0 --address 192.0.2.10/24 \\
    --port 80 --beside-kernel

The addresses must not be those of this machine's kernel: rheo answers ARP and neighbour discovery for them itself. With
--beside-kernel they must be: the listed ports of TCP are the service's, and ssh and all else go on.
A tap interface is this machine's end of a cable to rheo; give it an address on the same network:
  ip address add 10.0.0.2/24 dev rheo0 && ip link set rheo0 up
  curl http://10.0.0.1/

`listening A:P` is printed for each address once connections are accepted. SIGINT, SIGTERM, SIGQUIT, SIGHUP drain the
service: it accepts no more connections, closes those that are idle and the others behind the reply at hand, resets what
is left after --drain-time, and prints its summary. A second SIGINT, SIGTERM or SIGQUIT ends it at once.

The exit status is 0 when all invariants held, 1 when one did not, 2 when the service could not start, 3 when it ended
because an interface was gone, 130 when it was ended at once.")]
pub(crate) struct Args {
    #[command(subcommand)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum ServiceArgs {
    /// Files of a directory over HTTP/1.1.
    Http(HttpArgs),
    /// A store of keys and values that speaks Redis's protocol.
    Resp(RespArgs),
    /// What a client sends comes back.
    Echo(CommonArgs),
    /// Each connection is joined to one to another host.
    Relay(RelayArgs),
    /// Requests take as long as is wanted, with square roots or reads of memory; for `rheo load`.
    Work(Box<work::WorkArgs>),
}

#[derive(Debug, clap::Args)]
struct HttpArgs {
    /// The directory. No name leads out of it.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
    /// Let clients put files there (PUT).
    #[arg(long)]
    writable: bool,
    /// Serve names that begin with a dot; otherwise they are refused, but for .well-known.
    #[arg(long)]
    dotfiles: bool,
    /// Bytes of an upload at most, such as 100MiB: 1 byte to 1 PiB; 1GiB otherwise. With --writable.
    #[arg(long, value_name = "SIZE", requires = "writable")]
    longest_upload: Option<String>,
    /// How long the header of a request may take from its first byte on, 1s to 1h; then the reply is 408.
    #[arg(long, value_name = "TIME", default_value = "30s")]
    header_timeout: String,
    /// How long a worker uses what it knows of a file before it looks at the file again, 0 (never) to 60s.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    cache_time: String,
    /// Bytes that each worker keeps of files at most; 0 keeps nothing.
    #[arg(long, value_name = "SIZE", default_value = "16MiB")]
    cache_memory: String,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, clap::Args)]
struct RespArgs {
    /// Bytes for keys and values at most, such as 1GiB.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    memory: String,
    /// Bytes of a value at most, 1KiB to 512MiB; 64MiB otherwise. A value that arrives takes memory of its connection, so it is
    /// not more than --shard-memory.
    #[arg(long, value_name = "SIZE")]
    longest_value: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, clap::Args)]
struct RelayArgs {
    /// The host to connect to, as ADDRESS:PORT (IPv6 addresses in brackets) or NAME:PORT. A name is looked up once, at the
    /// start; its addresses are tried in turn.
    #[arg(long, value_name = "HOST:PORT")]
    to: String,
    /// The ports to connect from, as FIRST-LAST: 1024-65535, unless beside the kernel, where some must be given. At least 256, two
    /// for each shard.
    #[arg(long, value_name = "FIRST-LAST")]
    source_ports: Option<String>,
    #[command(flatten)]
    common: CommonArgs,
}

/// Flags that all services have.
#[derive(Debug, clap::Args)]
struct CommonArgs {
    /// A device, as NAME=KIND:INTERFACE, such as lan=tap:rheo0, lan=af_xdp:eth1 or lan=af_packet:eth1. With ,ring=N behind it,
    /// rings between the kernel and a lane hold N packets, 64 to 32768; 2048 otherwise.
    #[arg(long, value_name = "NAME=KIND:ARG")]
    device: DeviceOverride,
    /// An address of the device with its length, such as 10.0.0.1/24 or fd00::1/64; may be given several times.
    #[arg(long, value_name = "ADDRESS/LENGTH", required = true)]
    address: Vec<String>,
    /// Where peers beyond the link are reached: the router's address.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "beside_kernel")]
    gateway: Vec<IpAddr>,
    /// Be reached at addresses that the kernel has on this interface: only the listed ports are the service's, all else stays
    /// the kernel's; routes and neighbours are the kernel's, too. With af_xdp and af_packet.
    #[arg(long)]
    beside_kernel: bool,
    /// The port; may be given several times.
    #[arg(long, value_name = "P", required = true, value_parser = clap::value_parser!(u16).range(1..))]
    port: Vec<u16>,
    /// Which workers do what of a request: inline-dfcfs (all on one worker, each with connections of its own), inline-cfcfs (any
    /// worker takes the next packet of one queue), inline-ws (a worker without packets takes those of others), or
    /// dispatcher-D:A (D workers for the network, A for requests), with -dfcfs or -ws behind it for other queues than a central one
    /// before the latter, and +receive-cfcfs or +receive-ws behind that to have the former share packets as inline workers do.
    #[arg(long, value_name = "NAME", default_value_t)]
    scheduler: AvailableScheduler,
    /// Requests that an application worker of a dispatcher with a central queue may hold: 1, or 2 to hide the hand-off.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=2))]
    outstanding: Option<u32>,
    /// Packets that a lane takes at a time of a receive queue that others take from, too: 1 to 32. More than 1 does more short
    /// requests, and those taken along wait for each other.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    burst: Option<u32>,
    /// Let the workers of a dispatcher share cores in turn where there are fewer, which is refused otherwise: to try one out.
    #[arg(long, conflicts_with = "place")]
    share_cores: bool,
    /// Where workers run: idle-siblings (one thread of each core), both-siblings or split-siblings (network and application on
    /// threads of one core), and any-node, device-node, other-node or half-half; as idle-siblings,device-node.
    #[arg(long, value_name = "PLACES")]
    place: Option<Placement>,
    /// The key by which connections are placed on lanes: random, symmetric or microsoft. With one that is known, clients can
    /// choose the lanes of their connections.
    #[arg(long, value_name = "NAME", default_value = "random")]
    hash_key: String,
    /// How many lanes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: Option<u16>,
    /// Move shards, with their connections, between lanes by this policy:
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// What workers without packets do:
    #[arg(long, value_name = "NAME", default_value = "interrupt")]
    polling: String,
    /// Connections at most; a SYN beyond is dropped.
    #[arg(long, value_name = "N", default_value = "100000")]
    connections: usize,
    /// Handshakes that clients have not completed, at most (4096 otherwise): beyond, --syn-cookies decides.
    #[arg(long, value_name = "N")]
    half_open: Option<usize>,
    /// When SYNs are answered with cookies, of which nothing is kept: on-pressure (beyond --half-open), off or always.
    #[arg(long, value_name = "WHEN", default_value = "on-pressure")]
    syn_cookies: String,
    /// How long a client may take to complete the handshake, 1s to 5min.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    handshake_timeout: String,
    /// Bytes for data of all connections at most; from three quarters on, SYNs are dropped, windows close, and of the connections
    /// that hardly move, the one with the most bytes is reset first.
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    connection_memory: String,
    /// The same for the connections of one shard.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    shard_memory: String,
    /// Bytes of memory that one reply may take; a longer one that is not sent in pieces becomes an error reply. Files and stored
    /// values are sent in pieces. 64MiB by default.
    #[arg(long, value_name = "SIZE")]
    reply_memory: Option<String>,
    /// Bytes of one connection that wait to be sent or acknowledged at most. The buffer grows to twice the congestion window, as
    /// memory allows: to 4MiB unless given.
    #[arg(long, value_name = "SIZE")]
    send_buffer: Option<String>,
    /// Bytes of one connection that are received and not read at most. The window grows to twice what is read in a round trip, as
    /// memory allows: to 6MiB unless given.
    #[arg(long, value_name = "SIZE")]
    receive_buffer: Option<String>,
    /// How long a connection may be silent.
    #[arg(long, value_name = "TIME", default_value = "5min")]
    idle_timeout: String,
    /// The congestion controller: cubic or newreno.
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    congestion: String,
    /// How long connections may take to end once the service is told to.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    drain_time: String,
    /// Put a bad network before the device: packets of both directions are lost, change places with the next, and take
    /// longer; some arrive twice; as loss=0.01,duplicate=0.001,reorder=0.01,delay=50ms,seed=7.
    #[arg(long, value_name = "FAULTS")]
    fault: Option<ImpairConfig>,
    /// Where `rheo connections`, `rheo status` and `rheo stop` reach the service: the path of a control socket.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Stop after this long, such as 10s.
    #[arg(long, value_name = "TIME", value_parser = rheostat_base::unit::parse_duration)]
    duration: Option<Duration>,
    /// Time the stages of requests, of one in 256 and of the slowest 1,000, and say where the time went: receive queue, TCP in,
    /// queue, application, waiting for its turn to leave, TCP out. For http, resp, echo and work.
    #[arg(long)]
    times: bool,
    /// Print the summary as one line of JSON, the last of standard output.
    #[arg(long)]
    json: bool,
}

/// Serves as the flags state until it is told to end, and reports.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    let common = match &args.service {
        ServiceArgs::Work(work) if work.common.is_none() => return work::run_calibration(work),
        service => service.common().ok_or(NotLive)?,
    };
    let config = flags::config(app, &args.service, common)?;
    serve(config, common.fault, Report { json: common.json, times: common.times })
}

/// What is said of a service when it is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// As JSON.
    pub(crate) json: bool,
    /// Where the time of requests went.
    pub(crate) times: bool,
}

/// Serves as a configuration states, which has a service, until it is told to end, and reports. `faults` are put before its device.
///
/// # Errors
/// [`Error`] when the service cannot start.
pub(crate) fn serve(
    mut config: Config,
    faults: Option<ImpairConfig>,
    report: Report,
) -> Result<ExitCode, Error> {
    let serve = config.serve.clone().expect("the caller has looked");
    let members = place(&mut config, &serve)?;
    preflight(&config, &rheostat_functions::shipped::empty())?.begin()?;
    let mut run = Run { config, serve: serve.clone(), faults, report, work: None, members };
    match &serve.service {
        ServiceConfig::Echo => run.requests(Echo),
        ServiceConfig::Work(config) => {
            let cores = match &run.members {
                Some(members) => members.members.iter().filter_map(|core| *core).collect(),
                None => assemble::choose_cores(&run.config)?,
            };
            let (work, report) = work::prepare(config, cores)?;
            run.work = Some(report);
            run.requests(work)
        }
        ServiceConfig::Resp(resp) => run.requests(Resp::new(*resp, Arc::new(Clock::new()))),
        ServiceConfig::Http(http) => run.requests(serve_files(http)?),
        ServiceConfig::Relay { to, .. } => {
            let (targets, outgoing) = (targets(to)?, serve.outgoing());
            run.carry_out(|listeners, limits, assembly| {
                let (lanes, secret) = (assembly.lanes(), assembly.secret());
                let (handler, network) = (Relay::new(targets), assembly.network());
                let server =
                    TcpServer::with_handler(handler, listeners, limits, network, lanes, &secret)?;
                assembly.connecting(server, outgoing)
            })
        }
    }
}

fn serve_files(config: &HttpServiceConfig) -> Result<Http, ServiceError> {
    let root = config.files.root.display().to_string();
    let wrong = |source: io::Error| ServiceError::Root { root, source };
    Http::new(config.files.clone(), Arc::new(WallClock)).map_err(wrong)
}

/// The addresses that a relay connects to.
fn targets(text: &str) -> Result<Vec<SocketAddr>, ServiceError> {
    let wrong = |reason: String| ServiceError::Target { text: text.to_owned(), reason };
    let found = text.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    let targets: Vec<_> = found.filter(|target| target.port() != 0).collect();
    match targets.is_empty() {
        true => Err(wrong("it has no address and port".to_owned())),
        false => Ok(targets),
    }
}

/// A service before its device is open.
struct Run {
    config: Config,
    serve: ServeConfig,
    faults: Option<ImpairConfig>,
    report: Report,
    work: Option<WorkReport>,
    /// Workers that handle requests in place of the lanes.
    members: Option<PoolConfig>,
}

impl Run {
    fn requests(self, app: impl Application) -> Result<ExitCode, Error> {
        let is_timed = self.report.times;
        self.carry_out(|listeners, limits, assembly| {
            let (lanes, secret) = (assembly.lanes(), assembly.secret());
            let server =
                TcpServer::new(app, listeners, limits, assembly.network(), lanes, &secret)?;
            Ok(match is_timed {
                true => server.timing(TimesConfig::new(Arc::new(assembly.clock()))),
                false => server,
            })
        })
    }

    fn carry_out(
        self,
        make: impl FnOnce(Vec<ListenerConfig>, Limits, &Assembly) -> Result<TcpServer, ServeError>,
    ) -> Result<ExitCode, Error> {
        let Run { mut config, serve, faults, report: Report { json, .. }, work, members } = self;
        let interrupted = Arc::new(AtomicBool::new(false));
        interrupt::set(&interrupted)?;
        // Before any thread is started that changes its user.
        let identity = identity::find(config.run.user.as_deref(), config.run.group.as_deref())?;
        if let Some(identity) = identity {
            privileges::become_later(identity);
        }
        // Before anything costly: another instance may listen there.
        let socket = config.observe.control.as_deref().map(ControlSocket::bind).transpose()?;
        if let (Some(socket), Some(identity)) = (&socket, identity) {
            socket.give_to(identity)?;
        }
        let _kept_ports = beside_kernel::prepare(&mut config)?;
        let own = config.devices.iter().flat_map(|device| &device.addresses);
        let addresses: Vec<_> = own.map(|own| own.address).collect();
        let (duration, priority) = (config.run.duration, config.workers.priority);
        let (mtus, shards) = (mtu::Devices::of(&config), config.state.shards);
        let mut assembly = Assembly::new(config, faults)?;
        let network = assembly.network();
        let server = make(serve.listeners(), serve.limits, &assembly)?.under(serve.scheduler)?;
        let _follower = assembly.take_follower();
        let links = Links::start(assembly.take_watched(), Some(network.clone()))?;
        // Devices are open; whatever is started from here on inherits what is left: nothing.
        let raised = priority.and_then(run::raise);
        privileges::give_up()?;
        privileges::check_all_threads(links.keeper())?;
        let balance = assembly.balance();
        let faults = assembly.faults();
        let members = members.map(|members| server.start_members(&members)).transpose()?;
        let runtime = assembly.start(&server)?;
        // Workers have inherited it.
        drop(raised);
        let view = runtime.view();
        let control = server.control();
        control.wake_by(runtime.lane_notifiers());
        let sizes = (view.lanes(), shards);
        let balancer = Balancer::new(balance.policy(), balance.interval, sizes, view.now());
        let balancing =
            Balancing::start(balancer, balance.clone(), Objectives::PERCENTILE, view.clone())?;
        let instance = Instance {
            view: view.clone(),
            interrupted: interrupted.clone(),
            board: None,
            balance,
            progress: balancing.board(),
            settings: Settings::default(),
            functions: Vec::new(),
            objects: None,
            files: OutputFiles::default(),
            in_use: Vec::new(),
            links: links.board(),
            ports: None,
            service: Some(control.clone()),
        };
        let answers = socket.map(|socket| Server::start(socket, instance)).transpose()?;
        links.go_by(Mtus::new(mtus, Some(network), view));
        for port in &serve.ports {
            for address in &addresses {
                out!("listening {}", SocketAddr::new(*address, *port));
            }
        }
        let ends = Ends { interrupted, duration, drain_time: serve.drain_time };
        let is_lost = ends.wait(&runtime, &control, &links);
        balancing.stop();
        drop((answers, links));
        let report = runtime.join_within(WORKERS_TIME);
        // Whatever came of the run: those that do not end would be waited for.
        let members = members.map(|members| members.stop_within(MEMBERS_TIME)).unwrap_or_default();
        for member in members.running {
            err!("warning: application worker {member} is left at a request that does not end");
        }
        let mut report = report?;
        report.violations.extend(members.failures.into_iter().map(Violation::from));
        let work = work.map(|work| work.summary());
        let summary = ServeSummary::new(&report, &control, &faults, work);
        Ok(print(&report, &summary, json, is_lost))
    }
}

impl ServiceArgs {
    /// `None` where nothing is served.
    fn common(&self) -> Option<&CommonArgs> {
        Some(match self {
            ServiceArgs::Http(http) => &http.common,
            ServiceArgs::Resp(resp) => &resp.common,
            ServiceArgs::Echo(common) => common,
            ServiceArgs::Relay(relay) => &relay.common,
            ServiceArgs::Work(work) => return work.common.as_ref(),
        })
    }
}

/// What ends a service.
struct Ends {
    interrupted: Arc<AtomicBool>,
    duration: Option<Duration>,
    drain_time: Duration,
}

impl Ends {
    /// Waits until the service is to end, and then until its connections have ended, or have had time to. Returns whether an
    /// interface was lost.
    fn wait(&self, run: &Runtime, control: &ServeControl, links: &Links) -> bool {
        let start = Instant::now();
        let mut drained_by: Option<Instant> = None;
        while !run.is_finished() {
            std::thread::sleep(TICK);
            let now = Instant::now();
            let time_is_up = self.duration.is_some_and(|duration| now >= start + duration);
            if links.is_lost() {
                return true;
            }
            match drained_by {
                None if time_is_up || self.interrupted.load(Ordering::Relaxed) => {
                    control.drain();
                    drained_by = Some(now + self.drain_time);
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
        err!("warning: {warning}");
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
