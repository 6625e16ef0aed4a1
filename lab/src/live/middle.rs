//! What stands between source and sink while it is measured.

mod bounce;
mod kernel;
mod rheo;

use std::path::Path as FilePath;

use super::error::LiveError;
use super::path::LivePath;
use super::programs::Redirect;
use super::wires::{LAN, WAN, Wires};
use crate::testbed::RheoProcess;
use bounce::BouncePath;

/// Packets that one ring of a socket holds, and so the most that are under way on any path. (The kernel's
/// are emptied by the sender itself, in softirq, and never are.)
pub(super) const RING: u32 = 1024;

/// A running middle.
#[derive(Debug)]
pub(super) enum Middle {
    /// The kernel, or nothing.
    Kernel,
    /// A program on the interface `lan`.
    Redirect {
        /// Redirects while it lives.
        _program: Redirect,
    },
    /// A bare loop.
    Bounce {
        /// Runs while it lives.
        _running: BouncePath,
    },
    /// `rheo run`.
    Rheo(RheoProcess),
}

impl Middle {
    pub(super) fn start(
        path: LivePath,
        wires: &Wires,
        flows: u32,
        rheo: &FilePath,
    ) -> Result<Middle, LiveError> {
        match path {
            LivePath::Nothing => Ok(Middle::Kernel),
            LivePath::NftMasquerade => {
                kernel::masquerade(wires)?;
                Ok(Middle::Kernel)
            }
            LivePath::XdpRedirect => {
                let program = Redirect::attach(&wires.middle, LAN, WAN)?;
                Ok(Middle::Redirect { _program: program })
            }
            LivePath::XdpBounce => {
                BouncePath::start(wires).map(|running| Middle::Bounce { _running: running })
            }
            LivePath::RheoForward | LivePath::RheoNat => {
                Ok(Middle::Rheo(rheo::start(path, wires, flows, rheo)?))
            }
        }
    }

    /// Its processes, where they are not this one.
    pub(super) fn tasks(&self) -> Vec<u32> {
        match self {
            Middle::Kernel | Middle::Redirect { .. } | Middle::Bounce { .. } => Vec::new(),
            Middle::Rheo(rheo) => vec![rheo.id()],
        }
    }

    /// Ends it; returns its last output, if it prints any.
    pub(super) fn stop(self) -> Result<String, LiveError> {
        match self {
            Middle::Kernel | Middle::Redirect { .. } | Middle::Bounce { .. } => Ok(String::new()),
            Middle::Rheo(rheo) => Ok(rheo.stop()?),
        }
    }
}
