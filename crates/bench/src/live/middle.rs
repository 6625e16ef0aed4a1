//! What stands between source and sink while it is measured.

mod kernel;
mod rheo;

use std::path::Path as FilePath;

use super::error::LiveError;
use super::path::Path;
use super::programs::Redirect;
use super::wires::{LAN, WAN, Wires};
use rheo::Rheo;

/// What kernels queue between softirqs is emptied by the sender itself; so a few chunks will do.
const KERNEL_WINDOW: u64 = 4096;

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
    /// `rheo run`.
    Rheo(Rheo),
}

impl Middle {
    pub(super) fn start(
        path: Path,
        wires: &Wires,
        flows: u32,
        rheo: &FilePath,
    ) -> Result<Middle, LiveError> {
        match path {
            Path::Nothing => Ok(Middle::Kernel),
            Path::NftMasquerade => kernel::masquerade(wires).map(|()| Middle::Kernel),
            Path::XdpRedirect => {
                let program = Redirect::attach(&wires.middle, LAN, WAN)?;
                Ok(Middle::Redirect { _program: program })
            }
            Path::RheoForward | Path::RheoNat => {
                Rheo::start(path, wires, flows, rheo).map(Middle::Rheo)
            }
        }
    }

    /// How many packets it may have under way before it drops some.
    pub(super) fn window(&self) -> u64 {
        match self {
            Middle::Kernel | Middle::Redirect { .. } => KERNEL_WINDOW,
            Middle::Rheo(_) => rheo::WINDOW,
        }
    }

    /// Its processes.
    pub(super) fn tasks(&self) -> Vec<u32> {
        match self {
            Middle::Kernel | Middle::Redirect { .. } => Vec::new(),
            Middle::Rheo(rheo) => vec![rheo.process()],
        }
    }

    pub(super) fn stop(self) -> Result<(), LiveError> {
        match self {
            Middle::Kernel | Middle::Redirect { .. } => Ok(()),
            Middle::Rheo(rheo) => rheo.stop(),
        }
    }
}
