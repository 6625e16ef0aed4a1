//! The time that XDP programs take, by the kernel's own account.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use crate::live::LiveError;
use crate::testbed::TestbedError;
use aya::programs::{ProgramType, loaded_programs};
use aya::sys::{Stats, enable_stats};

/// Has the kernel keep the account as long as it lives.
pub(super) struct ProgramTimeMeter {
    _account: OwnedFd,
    before: u64,
}

impl ProgramTimeMeter {
    const TASK: &str = "is measured";

    pub(super) fn start() -> Result<ProgramTimeMeter, LiveError> {
        let account =
            enable_stats(Stats::RunTime).map_err(|error| LiveError::program(Self::TASK, error))?;
        Ok(ProgramTimeMeter { _account: account, before: total()? })
    }

    /// Nanoseconds of all XDP programs of the machine since the start.
    pub(super) fn nanos(&self) -> Result<u64, LiveError> {
        Ok(total()?.saturating_sub(self.before))
    }
}

fn total() -> Result<u64, LiveError> {
    let mut sum = 0;
    for program in loaded_programs() {
        // A program may be unloaded meanwhile: it does not run then.
        let Ok(program) = program else { continue };
        if program.program_type() != ProgramType::Xdp.into() {
            continue;
        }
        let Ok(descriptor) = program.fd() else { continue };
        let path = format!("/proc/self/fdinfo/{}", descriptor.as_fd().as_raw_fd());
        let text = fs::read_to_string(&path).map_err(|error| TestbedError::file(&path, error))?;
        let field = text.lines().find_map(|line| line.strip_prefix("run_time_ns:"));
        sum += field.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}
