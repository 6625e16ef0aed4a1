//! What a run needs of this machine, looked at without a change: `rheo run` and `rheo serve` begin with it, and `rheo check`
//! reports its outcome. What only the kernel decides when a device opens, such as privileges, is left to the run.

use rheostat_control::{Config, MissingInput};
use rheostat_kernel::identity::{self, UnknownName};
use rheostat_nf::AnyChain;
use rheostat_observe::LogError;
use thiserror::Error;

use crate::assemble::{self, AssembleError, Layout};
use crate::attachment::AttachmentArgs;
use crate::control::SocketError;
use crate::cut_off::{CutOff, cut_off};
use crate::devices::{self, DeviceError};
use crate::listeners::{ListenError, Listeners};
use crate::memory::{MemoryLimits, MemoryPlan, TooMuchMemory};
use crate::network::{self, NoAddress, WiringError};
use crate::output_file;
use crate::serve::{self, ServiceError};
use crate::workers::Workers;

/// Why a run cannot start on this machine.
#[derive(Debug, Error)]
pub(crate) enum PreflightError {
    #[error("{0}")]
    Input(#[from] MissingInput),
    #[error("{0}")]
    Name(#[from] UnknownName),
    #[error("{0}")]
    Log(#[from] LogError),
    #[error("{0}")]
    Assemble(#[from] AssembleError),
    #[error("{0}")]
    Device(#[from] DeviceError),
    #[error("{0}")]
    Network(#[from] WiringError),
    #[error("{0}")]
    NoAddress(#[from] NoAddress),
    #[error("{0}")]
    Service(#[from] ServiceError),
    #[error("{0}")]
    Memory(#[from] TooMuchMemory),
    #[error("{0}")]
    Listen(#[from] ListenError),
    #[error("{0}")]
    CutOff(#[from] CutOff),
}

/// What a run would take and say.
pub(crate) struct Preflight {
    /// The memory in use when all that is configured is in use.
    pub(crate) memory: MemoryPlan,
    /// What does not keep the run from starting.
    pub(crate) warnings: Vec<String>,
    /// The instance that has to end first, if one listens at the control socket. A configuration may be checked beside it.
    pub(crate) running: Option<ListenError>,
    /// What would end, if the run takes the interface by which this machine is reached.
    pub(crate) cut_off: Option<CutOff>,
    /// Where the run puts packets.
    layout: Layout,
}

impl Preflight {
    /// Prints the warnings, and returns where the run puts packets.
    ///
    /// # Errors
    /// When an instance has to end first, or the machine would no longer be reached and nothing forces that.
    pub(crate) fn begin(self, attachment: &AttachmentArgs) -> Result<Layout, PreflightError> {
        for warning in self.warnings {
            tracing::warn!(target: "run", "{warning}");
        }
        if let Some(cut_off) = self.cut_off.filter(|_| !attachment.force) {
            return Err(cut_off.into());
        }
        self.running.map_or(Ok(self.layout), |running| Err(running.into()))
    }
}

/// Looks at everything that a run of `config` by `workers`, whose chain is `chain`, needs before it opens devices. A service has been
/// placed ([`serve::place`]).
///
/// # Errors
/// [`PreflightError`] with the first reason for which the run could not start.
pub(crate) fn preflight(
    config: &Config,
    workers: &Workers,
    chain: &AnyChain,
) -> Result<Preflight, PreflightError> {
    config.check_inputs()?;
    identity::find(config.run.user.as_deref(), config.run.group.as_deref())?;
    config
        .chain
        .iter()
        .filter_map(|function| function.log())
        .try_for_each(output_file::check_log)?;
    let layout = assemble::lay_out(config, chain)?;
    let (steering, lanes) = (&layout.steering, workers.lanes());
    devices::check(config, steering, lanes)?;
    let planned = network::plan(config, 0, &network::link_of_kernel)?;
    if let Some(serve) = &config.serve {
        let (network, _) = planned.ok_or(NoAddress)?;
        serve::check(config, serve, network, lanes)?;
    }
    let limits = MemoryLimits::of_this_process();
    let memory = assemble::memory_plan(config, chain, steering, lanes);
    let mut warnings = network::mtu_warnings(config);
    match memory.check(&limits) {
        Ok(()) => warnings.extend(memory.warning(&limits)),
        // The tables of a chain are made at the start. What a service may take is a bound.
        Err(too_much) if config.serve.is_some() => warnings.push(too_much.to_string()),
        Err(too_much) => return Err(too_much.into()),
    }
    let running = match Listeners::check(&config.observe) {
        Ok(()) => None,
        Err(running @ ListenError::Socket(SocketError::Live(_))) => Some(running),
        Err(error) => return Err(error.into()),
    };
    Ok(Preflight { memory, warnings, running, cut_off: cut_off(config), layout })
}
