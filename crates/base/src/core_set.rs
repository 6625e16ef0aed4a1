//! The cores this process may use, and pinning a thread to one of them.

use std::fs;
use std::path::Path;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use thiserror::Error;

use crate::CoreId;

/// The cores a process may use: its affinity mask, with the cgroup's quota as an upper bound on how
/// many of them can run at once.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreSet {
    cores: Vec<CoreId>,
    quota: Option<f64>,
}

/// Why a thread could not be pinned, or the cores not be read.
#[derive(Debug, Error)]
pub enum CoreError {
    /// The affinity mask could not be read.
    #[error("cannot read the CPU affinity of this process: {0}")]
    Read(rustix::io::Errno),
    /// The kernel refused the pinning.
    #[error("cannot pin a worker to {core}: {error}")]
    Pin {
        /// The core asked for.
        core: CoreId,
        /// What the kernel said.
        error: rustix::io::Errno,
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
        Ok(CoreSet { cores, quota: cgroup_quota() })
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
    let mut mask = CpuSet::new();
    mask.set(core.index());
    sched_setaffinity(None, &mask).map_err(|error| CoreError::Pin { core, error })
}

/// The tightest `cpu.max` (cgroup v2) or `cpu.cfs_quota_us` (v1) from this process's group upwards.
fn cgroup_quota() -> Option<f64> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut tightest: Option<f64> = None;
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup").to_path_buf(),
            _ if controllers.split(',').any(|name| name == "cpu") => {
                Path::new("/sys/fs/cgroup").join(controllers)
            }
            _ => continue,
        };
        let mut folder = root.join(group.trim_start_matches('/'));
        loop {
            let quota = read_v2(&folder).or_else(|| read_v1(&folder));
            tightest = match (tightest, quota) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
            if folder == root || !folder.pop() {
                break;
            }
        }
    }
    tightest
}

fn read_v2(folder: &Path) -> Option<f64> {
    parse_cpu_max(&fs::read_to_string(folder.join("cpu.max")).ok()?)
}

fn read_v1(folder: &Path) -> Option<f64> {
    let number = |name| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<f64>().ok();
    let (quota, period) = (number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// `cpu.max` holds `QUOTA PERIOD` in microseconds, or `max PERIOD` where there is no limit.
fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_quota_lines() {
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_cpu_max("max 100000\n"), None);
        assert_eq!(parse_cpu_max("garbage"), None);
        assert_eq!(parse_cpu_max("100000 0"), None);
    }

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
}
