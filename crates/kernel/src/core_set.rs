//! The cores this process may use, and pinning a thread to one of them.

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use thiserror::Error;

use crate::cgroup::Cgroups;
use rheostat_base::CoreId;

/// The cores a process may use: its affinity mask, with the cgroup's quota as an upper bound on how
/// many of them can run at once.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreSet {
    cores: Vec<CoreId>,
    quota: Option<f64>,
}

/// Why a thread could not be pinned, or the cores not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CoreError {
    /// The affinity mask could not be read.
    #[error("cannot read the CPU affinity of this process: {0}")]
    Read(Errno),
    /// The kernel refused the pinning.
    #[error("cannot pin a worker to {core}: {error}")]
    Pin {
        /// The core asked for.
        core: CoreId,
        /// What the kernel said.
        error: Errno,
    },
}

impl CoreSet {
    /// Reads the affinity mask and the quota of the cgroup the process runs in.
    pub fn available() -> Result<CoreSet, CoreError> {
        let mask = sched_getaffinity(None).map_err(CoreError::Read)?;
        let cores = (0..CpuSet::MAX_CPU)
            .filter(|&cpu| mask.is_set(cpu))
            .map(|cpu| CoreId(cpu as u16))
            .collect();
        Ok(CoreSet {
            cores,
            quota: Cgroups::of_this_process().cpu_quota().map(|quota| quota.value),
        })
    }

    /// The cores, ascending.
    pub fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    /// Processors' worth of time the cgroup grants, where it sets a limit.
    pub fn quota(&self) -> Option<f64> {
        self.quota
    }

    /// How many workers can run at full speed: the cores, or fewer when the quota is lower. At least 1.
    pub fn parallelism(&self) -> usize {
        let quota = self.quota.map_or(usize::MAX, |quota| quota.floor() as usize);
        self.cores.len().min(quota).max(1)
    }
}

/// Pins the calling thread to `core`.
pub fn pin_current_thread(core: CoreId) -> Result<(), CoreError> {
    let pinned = if core.index() < CpuSet::MAX_CPU {
        let mut mask = CpuSet::new();
        mask.set(core.index());
        sched_setaffinity(None, &mask)
    } else {
        // What the kernel says of cores that it does not have.
        Err(Errno::INVAL)
    };
    pinned.map_err(|error| CoreError::Pin { core, error })
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use super::*;

    #[test]
    fn quota_bounds_parallelism_and_one_worker_always_runs() {
        let cores: Vec<_> = (0..8).map(CoreId).collect();
        let with = |quota| CoreSet { cores: cores.clone(), quota }.parallelism();
        assert_eq!(with(None), 8);
        assert_eq!(with(Some(2.5)), 2);
        assert_eq!(with(Some(0.5)), 1);
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads the affinity mask of the process")]
    fn this_process_has_a_core_and_can_pin_to_it() {
        let set = CoreSet::available().unwrap();
        let core = set.cores()[0];
        std::thread::spawn(move || pin_current_thread(core).unwrap()).join().unwrap();
    }

    #[test]
    fn a_core_beyond_those_that_a_mask_has_is_refused() {
        let core = CoreId(u16::MAX);
        assert_eq!(pin_current_thread(core), Err(CoreError::Pin { core, error: Errno::INVAL }));
    }
}
