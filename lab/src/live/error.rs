//! Why a live path could not be measured.

use std::io;

use rheostat_kernel::core_set::CoreError;
use thiserror::Error;

use super::path::LivePath;
use crate::testbed::TestbedError;

/// Why there is no figure.
#[derive(Debug, Error)]
pub enum LiveError {
    /// Namespaces, programs and limits are root's.
    #[error("namespaces and BPF programs are made by root only: run it as root")]
    NotRoot,
    /// A BPF program could not be loaded, attached or run.
    #[error("the BPF program that {task}: {message}")]
    Program {
        /// What it is for.
        task: &'static str,
        /// The loader's or the kernel's complaint.
        message: String,
    },
    /// Namespaces, cables or programs in them could not be had.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// The cores of this process are not known.
    #[error(transparent)]
    Cores(#[from] CoreError),
    /// Sockets of the kernel's TCP failed, or their peer did.
    #[error("cannot {task} over TCP: {error}")]
    Socket {
        /// What was to be done.
        task: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// Nothing comes out of the path.
    #[error(
        "{path} does not forward: {sent} packets were sent, {arrived} arrived; it says: {said}"
    )]
    Silent {
        /// The path.
        path: &'static str,
        /// Packets sent.
        sent: u64,
        /// Packets that reached the sink.
        arrived: u64,
        /// Its output about that.
        said: String,
    },
}

impl LiveError {
    /// Names the path, and what it said at its end, where the error is about one.
    pub(super) fn of(mut self, measured: LivePath, words: &str) -> LiveError {
        if let LiveError::Silent { path, said, .. } = &mut self {
            *path = measured.name();
            words.clone_into(said);
        }
        self
    }

    /// For complaints about `task`'s program.
    pub(crate) fn program(task: &'static str, error: impl std::error::Error) -> LiveError {
        // Loaders put the interesting part, the verifier's words, into sources.
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(inner) = source {
            message = format!("{message}: {inner}");
            source = inner.source();
        }
        LiveError::Program { task, message }
    }
}
