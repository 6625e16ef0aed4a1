//! `rheo run`: runs a chain, or a service, as configured.

mod watch;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rheostat_control::{
    Balance, Balancer, Balancing, Config, DeviceOverride, KernelFollower, LoadError, Overrides,
};
use rheostat_functions::lb::{HealthBoard, LbConfig};
use rheostat_io::OpenError;
use rheostat_io::is_standard;
use rheostat_ip::RunLimit;
use rheostat_kernel::identity::{self, UnknownName};
use rheostat_kernel::priority::{Priority, RaisedPriority};
use rheostat_kernel::privileges::{self, Identity, PrivilegeError};
use rheostat_nf::registry::{ConfiguredFunction, FlowPlace};
use rheostat_observe::live_page::EventLog;
use rheostat_observe::{
    HealthLines, IncompleteFile, LinkLine, LogError, LogWriter, OutputFiles, PortLine, RuleBoard,
    Summary,
};
use rheostat_run::{RunReport, RunView, StartError};
use rheostat_state::txn::Objects;
use thiserror::Error;

use self::watch::Watch;
use crate::active_config::ActiveConfig;
use crate::app::App;
use crate::assemble::{self, AssembleError, RunAssembly, reports_shards};
use crate::attachment::{AttachmentArgs, NoConfirmation, Trial};
use crate::chains::{self, BuildError, BuiltChain, Logs};
use crate::control::{Instance, MappingPlace};
use crate::error::cause;
use crate::interrupt::Hangups;
use crate::links::WatchedLinks;
use crate::listeners::{ListenError, Listeners};
use crate::log::{LogArgs, WrongVariable};
use crate::machine::{ThisMachine, in_use, named_files};
use crate::mtu::{self, Mtus};
use crate::objectives::with_progress;
use crate::preflight::{PreflightError, preflight};
use crate::registered_help::{bounds_of, help_of, numbers_of};
use crate::reload::{self, ConfigSource, LiveBalancing, LiveChain, LiveNetwork, LiveRun, Reloader};
use crate::workers::{Workers, WorkersError};
use crate::{interrupt, log, out, serve};

/// Why a run did not start, or has no report.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error("{0}")]
    Serve(#[from] serve::Error),
    #[error("{0}")]
    Assemble(#[from] AssembleError),
    #[error("{0}")]
    Workers(#[from] WorkersError),
    #[error("{0}")]
    Chain(#[from] BuildError),
    #[error("{0}")]
    Preflight(#[from] PreflightError),
    #[error("{0}")]
    Name(#[from] UnknownName),
    #[error("{0}")]
    Privileges(#[from] PrivilegeError),
    #[error("{0}")]
    Listen(#[from] ListenError),
    #[error("{0}")]
    Trial(#[from] NoConfirmation),
    #[error("{0}")]
    Log(#[from] LogError),
    #[error("{0}")]
    Variable(#[from] WrongVariable),
    #[error("{0}")]
    Start(#[from] StartError),
    /// A thread cannot be started, or signals cannot be watched.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The exit status of a run that ended because an interface was gone.
const LINK_LOST: u8 = 3;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo run configs/demo.toml
  rheo run configs/firewall.toml --input in.pcap --output out.pcap
  rheo run configs/firewall-two-ports.toml --device lan=pcap:lan.pcap \\
    --device wan=pcap:wan.pcap
  tcpdump -w - -i eth0 | rheo run configs/monitor.toml --input - --output - | \\
    tshark -r -
  rheo run configs/demo.toml --polling metronome
  rheo run configs/demo.toml --control /run/rheo/demo.sock
  rheo run configs/demo.toml --polling metronome --workers 3 --lanes 2

SIGINT, SIGTERM, SIGQUIT, SIGHUP (a closed terminal) and `rheo stop` drain and stop a run: it receives no more
packets, processes those it has, and prints its summary. A second SIGINT, SIGTERM or SIGQUIT ends it at once.
Without a controlling terminal, as under systemd or setsid, SIGHUP reloads the configuration, as `rheo reload`
does. Under nohup, SIGHUP is ignored.

The summary is the last line of standard output with --json, and of standard error where --output - writes a
capture to standard output. A run whose reader closes standard output drains, stops, and reports the file as
incomplete. The exit status is 0 when all invariants held and
all files are complete, 1 when an invariant did not hold or a file is incomplete (a full disk, say; the summary
names it), 2 when the run could not start, 3 when it ended because an interface of a device with
on_loss = \"exit\" (the default) was gone, 130 when it was ended at once.")]
pub(crate) struct Args {
    /// The configuration.
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) overrides: OverrideArgs,
    /// Print the summary as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// When the kernel refuses a program, print the whole output of its verifier.
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Listen at this control socket, for `rheo status`, `reload`, `table`, `backend` and `stop`.
    #[arg(long, value_name = "PATH")]
    pub(crate) control: Option<PathBuf>,
    #[arg(long, help = help_of("observe.http"), value_name = "ADDR:PORT")]
    pub(crate) http: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(flatten)]
    pub(crate) attachment: AttachmentArgs,
}

/// Flags that override the configuration.
#[derive(Debug, clap::Args)]
pub(crate) struct OverrideArgs {
    #[arg(long = "device", help = device_help(), value_name = "NAME=KIND:ARG")]
    pub(crate) devices: Vec<DeviceOverride>,
    /// Read this capture (pcap or pcapng), `-` for standard input; the configuration's one device becomes a capture device.
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// Write what is sent to this capture; `-` writes pcapng to standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    // Their help lists the names that are registered.
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<String>,
    #[arg(long, value_name = "NAME")]
    pub(crate) polling: Option<String>,
    #[arg(long, help = help_of("workers.count"), value_name = "N", value_parser = numbers_of("workers.count"))]
    pub(crate) workers: Option<u16>,
    #[arg(long, help = help_of("workers.lanes"), value_name = "N", value_parser = numbers_of("workers.lanes"))]
    pub(crate) lanes: Option<u16>,
    #[arg(long, help = help_of("run.duration"), value_name = "TIME", value_parser = rheostat_base::unit::parse_duration)]
    pub(crate) duration: Option<Duration>,
    #[arg(long, help = help_of("run.seed"), value_name = "N")]
    pub(crate) seed: Option<u64>,
}

fn device_help() -> String {
    format!(
        "Give a device another kind: NAME=KIND:ARG, such as lan=pcap:in.pcap, wan=sim:2Mpps or \
         lan=af_packet:eth1,ring=8192 (rings of {} packets).",
        bounds_of("device.ring")
    )
}

impl OverrideArgs {
    /// The flags as the configuration takes them.
    pub(crate) fn to_overrides(&self) -> Overrides {
        Overrides {
            devices: self.devices.clone(),
            input: self.input.clone(),
            output: self.output.clone(),
            policy: self.policy.clone(),
            polling: self.polling.clone(),
            workers: self.workers,
            lanes: self.lanes,
            duration: self.duration,
            usual_duration: None,
            seed: self.seed,
            control: None,
            http: None,
            log: None,
            log_format: None,
        }
    }
}

/// Loads, assembles, runs, and reports.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    let (control, http) = (args.control.clone(), args.http);
    let (log, log_format) = (args.log.targets()?, args.log.format());
    let overrides = Overrides { control, http, log, log_format, ..args.overrides.to_overrides() };
    let (config, warnings) =
        Config::load_for(&args.config, &overrides, &ThisMachine, &app.registry)?;
    let source = Some(ConfigSource::new(app, &args.config, overrides));
    if !warnings.is_empty() {
        out::report(&warnings);
    }
    if config.serve.is_some() {
        let report = serve::Report { json: args.json, times: false };
        return Ok(serve::serve(config, None, report, &args.attachment, source)?);
    }
    let quiet = if args.json { Quiet::Bar } else { Quiet::No };
    let page = match config.devices.iter().any(|device| device.output().is_some_and(is_standard)) {
        true => Page::StandardError,
        false => Page::StandardOutput,
    };
    let finished = carry_out(app, config, quiet, None, &args.attachment, source);
    if let Err(error) = &finished
        && let Some(log) = cause::<OpenError>(error).and_then(OpenError::verifier_log)
    {
        match args.verbose {
            true => err!("{log}"),
            false => err!("note: `--verbose` prints the output of the kernel's verifier"),
        }
    }
    Ok(print(finished?, args.json, page))
}

/// Where the summary goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    StandardOutput,
    /// A capture has standard output.
    StandardError,
}

/// What a run does not show of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quiet {
    No,
    /// No bar, which needs a terminal of its own.
    Bar,
    /// Nothing.
    Yes,
}

/// A run that is over.
pub(crate) struct Finished {
    /// The lanes as they stand.
    pub(crate) view: Arc<RunView>,
    pub(crate) report: RunReport,
    pub(crate) balance: Balance,
    /// What has happened to the interfaces of live devices.
    pub(crate) links: Vec<LinkLine>,
    /// The ports of the chain's NAT at the end.
    pub(crate) ports: Vec<PortLine>,
    /// Whether it ended because one of them was gone.
    pub(crate) is_link_lost: bool,
    /// What the functions of the chain shared, if they shared anything.
    pub(crate) objects: Option<Objects>,
    /// The files that the run wrote; all are closed.
    pub(crate) files: OutputFiles,
    /// The incomplete files that were reported while the run went on.
    reported: Vec<String>,
}

/// Runs a configuration until its end. With `sample`, the cause of one in so many aborts is noted; with its `source`, it can be
/// reloaded.
///
/// # Errors
/// [`Error`] when the run cannot start.
pub(crate) fn carry_out(
    app: &App,
    config: Config,
    quiet: Quiet,
    sample: Option<u32>,
    attachment: &AttachmentArgs,
    source: Option<ConfigSource>,
) -> Result<Finished, Error> {
    log::configure(&config.observe);
    let trial = Trial::of(attachment, &config)?;
    let workers = Workers::of(&config.workers)?;
    let (watch, hangups) = Watch::new(&config, quiet, trial, source.is_some())?;
    // Before any thread is started that changes its user.
    let identity = identity::find(config.run.user.as_deref(), config.run.group.as_deref())?;
    if let Some(identity) = identity {
        privileges::become_later(identity);
    }
    let files = OutputFiles::default();
    let errors = assemble::error_limit(&config);
    let chain = chains::build(app, &config, workers.lanes(), &errors, Logs::Written)?;
    let run = AppRun { config, workers, watch, identity, sample, files, errors };
    run.carry_out(chain, attachment, (source, hangups))
}

/// Raises the priority of this thread, which workers inherit. Where the process may not, they work all the same.
pub(crate) fn raise(priority: Priority) -> Option<RaisedPriority> {
    match RaisedPriority::new(priority) {
        Ok(raised) => Some(raised),
        Err(refused) => {
            tracing::warn!(target: "run", "{refused}; workers keep the priority of the process");
            None
        }
    }
}

/// A run before its devices are open.
struct AppRun {
    config: Config,
    workers: Workers,
    watch: Watch,
    identity: Option<Identity>,
    sample: Option<u32>,
    files: OutputFiles,
    /// Of the chain and the network layer together.
    errors: RunLimit,
}

impl AppRun {
    fn carry_out(
        mut self,
        built: BuiltChain,
        attachment: &AttachmentArgs,
        (source, hangups): (Option<ConfigSource>, Option<Hangups>),
    ) -> Result<Finished, Error> {
        let BuiltChain { chain, beside } = built;
        let backends: Option<Arc<HealthBoard>> = beside.control();
        let layout = preflight(&self.config, &self.workers, &chain)?.begin(attachment)?;
        let rules = Arc::new(RuleBoard::new(beside.rules()));
        beside.logs().for_each(|log| self.files.add_log(log));
        // Before anything costly: another instance may listen there.
        let listeners = Listeners::open(&self.config.observe, self.identity)?;
        let health_log = self.config.function().and_then(|lb: &LbConfig| lb.log.clone());
        let balance = self.config.balance.clone();
        let config = self.config.clone();
        let shards = self.config.state.shards;
        let functions = self.config.chain.iter().map(|function| function.name().to_owned());
        let functions = functions.collect();
        let mappings = MappingPlace::of(config.function());
        let in_shards = |function: &ConfiguredFunction| {
            matches!(function.facts().flows, FlowPlace::Shards | FlowPlace::ObjectsAndShards)
        };
        let has_flows = config.chain.iter().any(in_shards);
        let objects = chain.objects().cloned();
        if let (Some(objects), Some(sample)) = (&objects, self.sample) {
            objects.sample_every(sample);
        }
        let mtus = mtu::Devices::of(&self.config);
        let named = named_files(&self.config);
        let priority = self.config.workers.priority;
        if self.config.devices.iter().any(|device| device.input().is_some_and(is_standard)) {
            interrupt::await_input(&self.watch.interrupted)?;
        }
        let cores = self.workers.cores_of_lanes(&assemble::polling(&config));
        let errors = self.errors.clone();
        let mut assembly = RunAssembly::new(self.config, self.workers, layout, self.errors)?;
        let network = assembly.network();
        let writers = assembly.writers();
        self.files.add_captures(writers.iter().cloned());
        let followed = assembly.checks().zip(backends);
        let health = followed.map(|(checks, board)| {
            start_health(HealthLines::new(checks, board), health_log.as_deref())
        });
        let health = health.transpose()?;
        health.iter().for_each(|health| self.files.add_log(health.monitor()));
        let follower = assembly.follower();
        let links = WatchedLinks::start(assembly.take_watched(), assembly.network())?;
        let board = links.board();
        // Devices are open; whatever is started from here on inherits what is left: nothing.
        let raised = priority.and_then(raise);
        privileges::give_up()?;
        privileges::check_all_threads(links.keeper())?;
        let run = assembly.start(&chain)?;
        // Workers have inherited it.
        drop(raised);
        let view = run.view();
        let sizes = (view.lanes(), shards);
        let policy = config.policy(view.lanes());
        let balancer = Balancer::new(policy, balance.interval, sizes, view.now());
        let reports_shards = reports_shards(&config);
        let balancing = Balancing::start(balancer, balance, config.slo.percentile, view.clone())?;
        let routes = follower.as_ref().map(KernelFollower::routes);
        let built = BuiltChain { chain: chain.clone(), beside };
        let live = Arc::new(LiveRun {
            chain: Some(LiveChain::new(
                built,
                health,
                errors.clone(),
                (self.files.clone(), rules.clone()),
            )),
            network: network.clone().map(|network| LiveNetwork::new(network, routes)),
            balancing: LiveBalancing::new(
                balancing.change(),
                &config,
                view.lanes(),
                reports_shards,
            ),
            times: self.watch.times(),
            errors: Some(errors),
        });
        let (active, events) = (Arc::new(ActiveConfig::of(&config)), Arc::<EventLog>::default());
        let shown = (active.clone(), events.clone());
        let reloader =
            source.map(|source| Reloader::new(source, config.clone(), live.clone(), shown));
        let reloader = reloader.map(Arc::new);
        let interrupted = &self.watch.interrupted;
        let hangups = reload::on_hangups(hangups, reloader.clone(), interrupted)?;
        let instance = Instance {
            view: view.clone(),
            interrupted: self.watch.interrupted.clone(),
            trial: self.watch.trial.clone(),
            live: live.clone(),
            reloader,
            progress: balancing.board(),
            functions,
            objects: objects.clone(),
            files: self.files.clone(),
            in_use: in_use(&named),
            links: board.clone(),
            network: network.clone(),
            followed: follower.as_ref().map(KernelFollower::routes),
            cores,
            rules,
            walks: has_flows.then(|| chain.walks().clone()),
            mappings,
            service: None,
            config: active,
            events,
        };
        let observers = listeners.start(instance)?.with_hangups(hangups);
        links.go_by(Mtus::new(mtus, network, view.clone()));
        let mut reported = Vec::new();
        let mut captures = writers.iter();
        let standard = captures.find(|writer| writer.is_standard_output()).cloned();
        let attached = (observers, links, standard);
        let (report, balance, is_link_lost) =
            self.watch.follow(run, attached, balancing, &self.files, &mut reported)?;
        // What is missing in a file is in the summary, and never costs it.
        for writer in writers {
            let _ = writer.close();
        }
        let ports = live.ports();
        live.close();
        let (links, files) = (board.lines(), self.files);
        let ports = ports.map(|ports| ports.lines(SystemTime::now())).unwrap_or_default();
        Ok(Finished { view, report, balance, links, ports, is_link_lost, objects, files, reported })
    }
}

/// Starts to put the results of checks in force, and to report them.
fn start_health(lines: HealthLines, log: Option<&Path>) -> Result<LogWriter, LogError> {
    match log {
        Some(path) => LogWriter::start(path, lines),
        None => LogWriter::start_without_file(lines),
    }
}

fn print(finished: Finished, json: bool, page: Page) -> ExitCode {
    let incomplete = finished.incomplete();
    let is_complete = incomplete.is_empty();
    let Finished { view, report, balance, links, ports, is_link_lost, .. } = finished;
    for warning in &report.warnings {
        tracing::warn!(target: "run", "{warning}");
    }
    let imbalance = balance.imbalance;
    let summary = Summary { imbalance, incomplete, links, ports, ..Summary::of(&report) };
    let summary = with_progress(summary, &balance.progress, &view, &report.last);
    let summary = if json { summary.to_json() } else { summary.to_string() };
    match page {
        Page::StandardOutput => out!("{summary}"),
        Page::StandardError => err!("{summary}"),
    }
    for violation in &report.violations {
        err!("broken invariant: {violation}");
    }
    match (report.violations.is_empty() && is_complete, is_link_lost) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(LINK_LOST),
        (true, false) => ExitCode::SUCCESS,
    }
}

impl Finished {
    /// The files in which something is missing. Those that were not reported during the run are reported now.
    pub(crate) fn incomplete(&self) -> Vec<IncompleteFile> {
        let incomplete = self.files.incomplete();
        for file in incomplete.iter().filter(|file| !self.reported.contains(&file.file)) {
            tracing::error!(target: "files", "incomplete {file}");
        }
        incomplete
    }
}
