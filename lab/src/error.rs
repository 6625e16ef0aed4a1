//! Why a benchmark could not be run.

use std::io;

use rheostat_kernel::core_set::CoreError;
use rheostat_nf::ChainError;
use rheostat_packet::mbuf::PoolError;
use rheostat_run::{StartError, Violation};
use rheostat_state::{ArenaError, LayoutError};
use rheostat_steer::SteeringError;
use thiserror::Error;

/// Why a benchmark gave no figure.
#[derive(Debug, Error)]
pub enum BenchError {
    /// A row of a chain gave no figure.
    #[error(transparent)]
    Measure(#[from] rheostat_measure::MeasureError),
    /// There are fewer cores than lanes, and lanes that share a core would measure the scheduler.
    #[error("{lanes} lanes need {lanes} cores of their own, and this process may use {cores}")]
    TooFewCores {
        /// Lanes asked for.
        lanes: usize,
        /// Cores there are.
        cores: usize,
    },
    /// More packets were wanted than had been drawn before the run.
    #[error(
        "the packets drawn before the run were used up before its end: they arrive faster than they can be drawn, or something kept the process from its cores; leave the machine alone, or ask for a lower rate"
    )]
    LateWindow,
    /// The pumped device did not do what a stepped one does; the program is at fault.
    #[error("poll {0} of the pumped device brought other packets than the stepped one has")]
    PumpDiffers(usize),
    /// The flows could not all be opened.
    #[error("only {opened} of {flows} flows were opened (packets dropped: {reasons})")]
    Opening {
        /// Flows whose handshake went through.
        opened: u64,
        /// Flows of the row.
        flows: u64,
        /// Why packets were dropped, with how many each; empty until the run has ended.
        reasons: String,
    },
    /// The chain dropped packets, so the figure would be that of dropping.
    #[error("{chain}: {dropped} of {received} packets were dropped ({reasons})")]
    Dropped {
        /// The chain.
        chain: &'static str,
        /// Packets dropped.
        dropped: u64,
        /// Packets received.
        received: u64,
        /// Reasons, with how many each.
        reasons: String,
    },
    /// Bytes were wrong that a service sent, or it reset connections.
    #[error("{damaged} segments had wrong bytes, and {reset} connections were reset")]
    Damaged {
        /// Segments.
        damaged: u64,
        /// Connections.
        reset: u64,
    },
    /// A policy of a scenario exists in the simulator only.
    #[error("`{0}` can be simulated only: use `rheo sim`, or leave it out with --policy")]
    OnlySimulated(String),
    /// At the rate of the scenario, packets load lanes more than they should even without any work.
    #[error(
        "at this rate lanes are loaded to {least:.2} by the chain alone, so not to {load}: lower `rate`"
    )]
    RateTooHigh {
        /// The load asked for.
        load: f64,
        /// The load without work.
        least: f64,
    },
    /// The time is up.
    #[error(
        "only {done} of {asked} shards were moved in {limit:?}: ask for fewer, or for less load"
    )]
    Slow {
        /// Shards moved.
        done: u64,
        /// Shards that were to be moved.
        asked: u64,
        /// The time there was.
        limit: std::time::Duration,
    },
    /// The time is up.
    #[error("only {done} of {asked} times a flow left or came home in {limit:?}: ask for fewer")]
    FewTransitions {
        /// Times that flows left or came home.
        done: u64,
        /// Times that they were to.
        asked: u64,
        /// The time there was.
        limit: std::time::Duration,
    },
    /// Flows did not open, leave, or come home.
    #[error("flows were not where they were to be within {0:?}: leave the machine alone meanwhile")]
    NoTransition(std::time::Duration),
    /// The traffic could not be made.
    #[error(transparent)]
    Mix(#[from] rheostat_traffic::MixError),
    /// The traffic of a scenario could not be made.
    #[error(transparent)]
    Traffic(#[from] rheostat_traffic::SourceError),
    /// The device could not be opened.
    #[error(transparent)]
    Open(#[from] rheostat_io::OpenError),
    /// Flows' packets were lost or counted twice: the lanes got in each other's way.
    #[error(
        "{system}: {counted} of {passed} packets were counted; the tables are not safe to share"
    )]
    Miscounted {
        /// How the tables were shared.
        system: &'static str,
        /// Packets counted by all flows.
        counted: u64,
        /// Packets that passed.
        passed: u64,
    },
    /// An invariant did not hold during the measurement.
    #[error("broken invariant: {0}")]
    Violated(Violation),
    /// The processor cores could not be found out, or not be used.
    #[error(transparent)]
    Cores(#[from] CoreError),
    /// No memory for packet buffers.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// No memory for flows.
    #[error(transparent)]
    Memory(#[from] ArenaError),
    /// The states do not fit into an entry.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The functions do not make a chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The steering does not fit.
    #[error(transparent)]
    Steering(#[from] SteeringError),
    /// The run did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A thread or a process could not be started.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The program that computes beside lanes did not say how far it is.
    #[error(
        "the program beside the lanes answered `{0}`: it has ended, or its nice value was refused"
    )]
    Competitor(String),
    /// A process that a row is measured in failed.
    #[error("`{command}`: {problem}")]
    Process {
        /// What was run.
        command: String,
        /// What is wrong.
        problem: String,
    },
}
