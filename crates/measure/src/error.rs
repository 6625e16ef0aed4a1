//! Why a measurement gave no figure.

use std::io;
use std::process::ExitStatus;

use rheostat_kernel::core_set::CoreError;
use rheostat_nf::ChainError;
use rheostat_nf::registry::BuildError;
use rheostat_packet::mbuf::PoolError;
use rheostat_run::{StartError, Violation};
use rheostat_state::ArenaError;
use rheostat_steer::SteeringError;
use thiserror::Error;

/// Why a measurement gave no figure.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// There are fewer cores than lanes, and lanes that share a core would measure the scheduler.
    #[error("{lanes} lanes need {lanes} cores of their own, and this process may use {cores}")]
    TooFewCores {
        /// Lanes asked for.
        lanes: usize,
        /// Cores there are.
        cores: usize,
    },
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
    /// The functions do not make a chain.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A function cannot be built as configured.
    #[error("{0}")]
    Function(BuildError),
    /// The steering does not fit.
    #[error(transparent)]
    Steering(#[from] SteeringError),
    /// The run did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A thread or a process could not be started.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Instructions cannot be counted.
    #[error(
        "instructions are counted by valgrind, and there is none in PATH: install it (on Debian \
         `apt-get install valgrind`), or leave `--instructions` out"
    )]
    NoValgrind,
    /// A run under callgrind gave no count.
    #[error("`{command}` under callgrind: {problem}")]
    Callgrind {
        /// What was run.
        command: String,
        /// What is wrong.
        problem: String,
    },
    /// A process that a row is measured in failed.
    #[error("`{command}`: {problem}")]
    Process {
        /// What was run.
        command: String,
        /// What is wrong.
        problem: String,
    },
    /// One side of a comparison failed.
    #[error("`{command}` ended with {status}:\n{message}")]
    Command {
        /// The command.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote to standard error.
        message: String,
    },
    /// One side of a comparison printed no rows, or rows that do not match the other's.
    #[error("`{command}`: {problem}")]
    Rows {
        /// The command.
        command: String,
        /// What is wrong with its output.
        problem: String,
    },
}

impl MeasureError {
    /// Adds the reasons for which packets were dropped, where they explain the error.
    pub(crate) fn because(mut self, why: &str) -> MeasureError {
        if let MeasureError::Opening { reasons, .. } = &mut self {
            why.clone_into(reasons);
        }
        self
    }
}
