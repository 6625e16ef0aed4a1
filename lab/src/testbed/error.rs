//! Why a testbed could not be built.

use std::io;

use thiserror::Error;

/// Why there is no testbed.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// A command that sets something up failed.
    #[error("`{command}`: {message}")]
    Command {
        /// The command.
        command: String,
        /// Its output, or why it could not be run.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The namespace could not be entered.
    #[error("cannot enter the namespace {name}: {error}")]
    Enter {
        /// Its name.
        name: String,
        /// The error of the system.
        error: io::Error,
    },
    /// A virtual cable does not come up.
    #[error("the interface {interface} of the namespace {name} stays down")]
    Down {
        /// The namespace.
        name: String,
        /// The interface.
        interface: String,
    },
    /// `rheo` ended with a failure.
    #[error("rheo ended with {status}: {output}")]
    Rheo {
        /// How it ended.
        status: String,
        /// The last lines of its output.
        output: String,
    },
}

impl TestbedError {
    /// For a file that could not be read or written.
    pub(crate) fn file(path: &str, error: io::Error) -> TestbedError {
        TestbedError::File { path: path.to_owned(), error }
    }
}
