//! The workers and lanes of a run on this machine.

use rheostat_base::CoreId;
use rheostat_control::config::WorkersConfig;
use rheostat_control::config::workers::MAX_LANES;
use rheostat_kernel::CoreSet;
use rheostat_kernel::core_set::CoreError;
use rheostat_run::Polling;
use thiserror::Error;

/// Why a run cannot have its workers on this machine.
#[derive(Debug, Error)]
pub(crate) enum WorkersError {
    #[error("{0}")]
    Cores(#[from] CoreError),
    #[error("{cores} cores are given for workers, but this process may use only {available}")]
    TooManyCores { cores: String, available: String },
}

/// The workers of a run, the cores they run on, and how many lanes they have: what a configuration, or the placement of a service,
/// comes to on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Workers {
    cores: Vec<CoreId>,
    count: usize,
    lanes: usize,
}

impl Workers {
    /// The workers of `config`. Without cores, they have as many as can run at once; without numbers, there is a worker for each core
    /// and a lane for each worker.
    ///
    /// # Errors
    /// [`WorkersError`] when this process may not use a core that is given.
    pub(crate) fn of(config: &WorkersConfig) -> Result<Workers, WorkersError> {
        let cores = cores(config)?;
        let count = config.count.map_or(cores.len(), usize::from);
        let sharing = usize::from(config.queue_sharing);
        let most = usize::from(MAX_LANES) / sharing * sharing;
        let one_per_worker = count.next_multiple_of(sharing).min(most);
        let lanes = config.lanes.map_or(one_per_worker, usize::from);
        Ok(Workers { cores, count, lanes })
    }

    /// The cores that they may use.
    pub(crate) fn cores(&self) -> &[CoreId] {
        &self.cores
    }

    /// The core of each worker: in turn, where there are more workers.
    pub(crate) fn pinned(&self) -> Vec<Option<CoreId>> {
        self.cores.iter().copied().map(Some).cycle().take(self.count).collect()
    }

    /// The core of each lane, where lanes are bound to workers; `None` for a lane that workers take turns at.
    pub(crate) fn cores_of_lanes(&self, polling: &Polling) -> Vec<Option<u16>> {
        let pinned = self.pinned();
        let core = |lane: usize| pinned[lane % pinned.len()].map(|core| core.0);
        let is_bound = polling.binds_lanes() && !pinned.is_empty();
        (0..self.lanes).map(|lane| if is_bound { core(lane) } else { None }).collect()
    }

    /// The number of lanes.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes
    }
}

/// The cores for workers: those that are given, or as many as can run at once.
///
/// # Errors
/// As [`Workers::of`].
pub(crate) fn cores(config: &WorkersConfig) -> Result<Vec<CoreId>, WorkersError> {
    let available = CoreSet::available()?;
    let Some(list) = &config.cores else {
        return Ok(available.cores().iter().copied().take(available.parallelism()).collect());
    };
    if list.cores().iter().all(|core| available.cores().contains(core)) {
        return Ok(list.cores().to_vec());
    }
    let names = |cores: &[CoreId]| {
        cores.iter().map(|core| core.0.to_string()).collect::<Vec<_>>().join(",")
    };
    Err(WorkersError::TooManyCores {
        cores: names(list.cores()),
        available: names(available.cores()),
    })
}
