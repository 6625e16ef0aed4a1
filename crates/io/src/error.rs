//! Why a device cannot be opened.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::backend::pcap::FormatError;

/// Why a device cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The capture to read cannot be opened.
    #[error("cannot open the capture {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file to read is not a capture we can read.
    #[error("cannot read {}: {source}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: FormatError,
    },
    /// A device without queues is of no use.
    #[error("device `{device}` needs at least one queue")]
    NoQueue {
        /// The device.
        device: String,
    },
    /// Lanes that share queues come in groups of one size.
    #[error(
        "device `{device}`: {lanes} lanes cannot share queues by {claimants}: each queue needs as many lanes"
    )]
    Claimants {
        /// The device.
        device: String,
        /// The lanes.
        lanes: u16,
        /// The lanes that are to share a queue.
        claimants: u16,
    },
    /// A ring of this size is impossible.
    #[error(
        "device `{device}` cannot have rings of {descriptors} descriptors: 1 to 2^20 are possible"
    )]
    Descriptors {
        /// The device.
        device: String,
        /// The descriptors asked for.
        descriptors: u32,
    },
    /// More packets than memory should hold are to be drawn before a run.
    #[error(
        "device `{device}`: packets of {length:?} take more than {} MiB when they are drawn before the run; {drawn:?} fit",
        memory >> 20
    )]
    Window {
        /// The device.
        device: String,
        /// What fits.
        drawn: Duration,
        /// What was requested.
        length: Duration,
        /// Bytes that they may take.
        memory: usize,
    },
    /// Packets that arrive as fast as they are taken cannot be drawn before.
    #[error(
        "device `{device}`: packets that are delivered without loss are not drawn before the run"
    )]
    Lossless {
        /// The device.
        device: String,
    },
    /// What comes back to a device has no place among what arrives there.
    #[error(
        "device `{device}` cannot have what it sends answered: replies need packets that arrive in an open loop, by the pumped driver or a stepper, and a receive queue for each lane"
    )]
    Answering {
        /// The device.
        device: String,
    },
    /// A rate or a speed that is not a positive number.
    #[error("device `{device}`: {what} must be a positive number")]
    NotPositive {
        /// The device.
        device: String,
        /// What is not positive.
        what: &'static str,
    },
    /// An interface cannot be used.
    #[cfg(not(any(loom, shuttle)))]
    #[error("device `{device}`: {source}")]
    Interface {
        /// The device.
        device: String,
        /// What is wrong.
        source: crate::backend::interface_error::InterfaceError,
    },
    /// A device of an own kind cannot be opened.
    #[error("device `{device}`: {source}")]
    Own {
        /// The device.
        device: String,
        /// What is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The device has nothing to wake its lanes by.
    #[error(
        "device `{device}`: no event for a queue: {source}; allow the process more open files (ulimit -n)"
    )]
    Event {
        /// The device.
        device: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// No thread could be started for the device.
    #[error("cannot start the thread of device `{device}`: {source}")]
    Thread {
        /// The device.
        device: String,
        /// What the operating system said.
        source: io::Error,
    },
}

#[cfg(not(any(loom, shuttle)))]
impl OpenError {
    /// All that the kernel's verifier said, where it refused a program.
    pub fn verifier_log(&self) -> Option<&str> {
        use crate::backend::interface_error::InterfaceError;
        match self {
            OpenError::Interface { source: InterfaceError::Program(error), .. } => {
                error.verifier_log()
            }
            _ => None,
        }
    }
}
