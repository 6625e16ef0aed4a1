//! Why a command could not do what it was asked.

use std::io;

use rheostat_base::core_set::CoreError;
use rheostat_base::privileges::PrivilegeError;
use rheostat_control::{LoadError, MissingInput};
use rheostat_functions::lb::check::NoSource;
use rheostat_functions::nat::BlockError;
use rheostat_io::{OpenError, WriteError};
use rheostat_ip::NetworkError;
use rheostat_observe::LogError;
use rheostat_packet::mbuf::PoolError;
use rheostat_run::StartError;
use rheostat_state::{ArenaError, LayoutError};
use rheostat_steer::SteeringError;
use rheostat_traffic::MixError;
use thiserror::Error;

use crate::control::{ClientError, SocketError};
use crate::identity::UnknownName;
use crate::out;

/// Why a command failed; its text is for people.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("{}", render(.0))]
    Config(#[from] LoadError),
    #[error("error: {0}")]
    Input(#[from] MissingInput),
    #[error("error: {0}")]
    Open(#[from] OpenError),
    #[error("error: {0}")]
    Write(#[from] WriteError),
    #[error("error: {0}")]
    Start(#[from] StartError),
    #[error("error: {0}")]
    Cores(#[from] CoreError),
    #[error("error: {0}")]
    Pool(#[from] PoolError),
    #[error("error: {0}")]
    Memory(#[from] ArenaError),
    #[error("error: {0}")]
    TooMuch(#[from] crate::memory::TooMuchMemory),
    #[error("error: {0}")]
    Serve(#[from] rheostat_serve::ServeError),
    #[error("error: cannot serve `{root}`: {source}")]
    Root { root: String, source: io::Error },
    #[error("error: cannot relay to `{text}`: {reason}")]
    Target { text: String, reason: String },
    #[error(
        "error: interface `{interface}` does not have {address}, and a service beside the kernel is reached at the kernel's addresses: {has}"
    )]
    NotTheKernels { interface: String, address: std::net::IpAddr, has: String },
    #[error("error: the kernel does not tell the addresses of `{interface}`: {source}")]
    KernelAddresses { interface: String, source: io::Error },
    #[error(
        "error: {endpoint} cannot be taken from the kernel: {source} (`ss -tlnp` shows the program that listens there)"
    )]
    PortTaken { endpoint: std::net::SocketAddr, source: io::Error },
    #[error(
        "error: port {port} of `source_ports` is one that the kernel gives to its own connections: choose ports outside of net.ipv4.ip_local_port_range, or add them to net.ipv4.ip_local_reserved_ports"
    )]
    EphemeralPort { port: u16 },
    #[error(
        "error: a service needs an interface: pass --device NAME=tap:INTERFACE, af_packet or af_xdp"
    )]
    NotLive,
    #[error("error: a service needs an address: pass --address ADDRESS/LENGTH")]
    NoAddress,
    #[error("error: --place {0}")]
    Placement(#[from] rheostat_base::placement::PlacementError),
    #[error(
        "error: --place split-siblings: each network worker shares a core with an application worker, so it needs as many of \
         one as of the other, dispatcher-N:N, and this is `{scheduler}`"
    )]
    NoPairs { scheduler: rheostat_serve::AvailableScheduler },
    #[error("error: {0}")]
    Scheduler(#[from] rheostat_tcp::sched::SchedulerError),
    #[error(
        "error: `{scheduler}` has a lane for each of its {dispatchers} network workers, and {given} {what} are wanted: leave that out"
    )]
    LanesOfDispatcher {
        scheduler: rheostat_serve::AvailableScheduler,
        dispatchers: u16,
        given: u16,
        what: &'static str,
    },
    #[error("error: {0}")]
    Members(#[from] rheostat_serve::MembersError),
    #[error("error: application workers: {0}")]
    ApplicationWorkers(#[from] rheostat_run::PoolError),
    #[error("error: --buffer: {0}")]
    Buffer(#[from] rheostat_serve::work::buffer::BufferError),
    #[error("error: {0}")]
    Layout(#[from] LayoutError),
    #[error("error: {0}")]
    Steering(#[from] SteeringError),
    #[error(
        "error: a profile is of a chain, and this configuration has a service: `rheo run` runs it"
    )]
    NoProfile,
    #[error("error: there is no such traffic: {0}")]
    Mix(#[from] MixError),
    #[error("error: there is no such traffic: {0}")]
    Traffic(#[from] rheostat_traffic::SourceError),
    #[error("error: {0}")]
    Option(#[from] crate::generate::OptionError),
    #[error("error: {0}")]
    Captures(#[from] crate::generate::CaptureError),
    #[error(
        "error: {cores} cores are given for workers, but this process may use only {available}"
    )]
    TooManyCores { cores: String, available: String },
    #[error("error: {0}")]
    Io(#[from] io::Error),
    #[error("error: interface `{interface}`: {source}; `ip -brief link` lists those there are")]
    Link { interface: String, source: io::Error },
    #[error(
        "error: devices `{first}` and `{second}` have one interface: `{interface}` is another name of \
         `{first_interface}`; give each device an interface of its own"
    )]
    SameInterface { first: String, first_interface: String, second: String, interface: String },
    #[error(
        "error: device `{device}` is no Ethernet interface: give it no `address`, or take another"
    )]
    NotEthernet { device: String },
    #[error("error: {0}")]
    Network(#[from] NetworkError),
    #[error("error: {0}")]
    Checks(#[from] NoSource),
    #[error("error: {0}")]
    Blocks(#[from] BlockError),
    #[error(
        "error: the configuration has no NAT with port blocks: set `deterministic = true` in \
         [function.nat], or look into its log"
    )]
    NoBlocks,
    #[error("error: {0}")]
    Log(#[from] LogError),
    #[error("error: `{}` would be read and overwritten{alias}; write into a file of its own", output.display())]
    SameFile { output: std::path::PathBuf, alias: String },
    #[error("error: `{}` would be written twice; name two files", .0.display())]
    WrittenTwice(std::path::PathBuf),
    #[error("error: the capture {} is incomplete, it ends after {packets} packets: {source}", file.display())]
    CutCapture { file: std::path::PathBuf, packets: u64, source: io::Error },
    #[error("error: cannot create the capture {}: {source}", file.display())]
    CreateCapture { file: std::path::PathBuf, source: io::Error },
    #[error(
        "error: `{}` is {role} of the instance, which would be overwritten: write into a file of its own",
        file.display()
    )]
    InUse { file: std::path::PathBuf, role: String },
    #[error(
        "error: a capture is no text for a terminal: name a file with -o, or pipe it into another \
         command"
    )]
    Terminal,
    #[error("error: {0}")]
    Name(#[from] UnknownName),
    #[error("error: {0}")]
    Privileges(#[from] PrivilegeError),
    #[error("error: {0}")]
    Socket(#[from] SocketError),
    #[error("error: {0}")]
    Client(#[from] ClientError),
    #[error(
        "error: --load must be above 0 and at most 1000: 0.7 stands for 70 % of each lane's time"
    )]
    Load,
    #[error(
        "error: device `{device}` reads no capture, so there is nothing to explain: give --input FILE, or ask \
         a running instance, without a configuration"
    )]
    NoCapture { device: String },
    #[error("error: {0}")]
    Live(#[from] rheostat_bench::live::LiveError),
    #[error("error: {0}")]
    Bench(#[from] rheostat_bench::BenchError),
    #[error("error: {0}")]
    SchedBench(#[from] rheostat_bench::sched::SchedBenchError),
    #[error("error: {0}")]
    Scenario(#[from] rheostat_bench::scenario::ScenarioError),
    #[error("error: {0}")]
    RequestScenario(#[from] rheostat_bench::scenario::requests::SimulationError),
    #[error("error: the scenario `{scenario}` is about {subject}: leave {option} out")]
    Misplaced { option: &'static str, scenario: String, subject: &'static str },
    #[error("error: {0}")]
    LoadClient(#[from] rheostat_load::LoadError),
    #[error("error: {0}")]
    LoadOption(#[from] crate::load::LoadOptionError),
    #[error("error: {0}")]
    Costs(#[from] rheostat_bench::costs::CostsError),
    #[error("error: {0}")]
    Simulation(#[from] rheostat_bench::sim::SimError),
    #[error("error: {0}")]
    Queues(#[from] rheostat_bench::sim::queues::QueuesError),
    #[error("error: {0}")]
    Slo(#[from] rheostat_bench::sim::slo::SloError),
    #[error("error: {0}")]
    Cases(#[from] rheostat_bench::sim::cases::CaseError),
    #[error("error: {0}")]
    Throughput(#[from] rheostat_bench::sim::throughput::ThroughputError),
    #[error("error: {0}")]
    Rates(#[from] rheostat_bench::sim::rates::RateError),
    #[error("error: {0}")]
    Sched(#[from] rheostat_bench::sim::sched::SchedError),
    #[error("error: {0}")]
    RequestCosts(Box<rheostat_bench::sim::sched::RequestCostsError>),
    #[error("error: {0}")]
    Advice(#[from] rheostat_bench::sim::sched::AdviceError),
    #[error("error: --lock {lock}: between 0 and 1000000 nanoseconds")]
    Lock { lock: f64 },
    #[error("error: {0}")]
    Results(#[from] rheostat_bench::record::RecordError),
    #[error("error: {0}")]
    Report(#[from] rheostat_bench::report::ReportError),
    #[error("error: {}: {source}; name a file in a folder that is there", file.display())]
    Page { file: std::path::PathBuf, source: io::Error },
}

impl Failure {
    /// Prints it on standard error: mistakes of a configuration in colours, if that is a terminal.
    pub(crate) fn print(&self) {
        match self {
            Failure::Config(LoadError::Wrong(report)) => out::report(report),
            failure => err!("{failure}"),
        }
    }
}

fn render(error: &LoadError) -> String {
    match error {
        LoadError::Wrong(report) => report.render(false),
        LoadError::Read { .. } => format!("error: {error}"),
    }
}
