//! The cores that lanes, workers and peers are bound to.

use std::thread;

use rheostat_base::CoreId;
use rheostat_kernel::CoreSet;
use rheostat_kernel::core_set::{CoreError, pin_current_thread};

use crate::error::BenchError;

/// The cores of this process, at least one, in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct Cores(Vec<CoreId>);

impl Cores {
    /// Reads them.
    pub(crate) fn available() -> Result<Cores, CoreError> {
        Ok(Cores(CoreSet::available()?.cores().to_vec()))
    }

    /// A core for each of so many lanes, behind the first `skipped` cores.
    ///
    /// # Errors
    /// [`BenchError::TooFewCores`]: lanes that share a core would measure the scheduler of the kernel.
    pub(crate) fn of_lanes(skipped: usize, lanes: usize) -> Result<Cores, BenchError> {
        let Cores(cores) = Cores::available()?;
        match cores.get(skipped..skipped.saturating_add(lanes)) {
            Some(of_lanes) => Ok(Cores(of_lanes.to_vec())),
            None => Err(BenchError::TooFewCores { lanes, cores: cores.len() }),
        }
    }

    /// Refuses fewer cores than lanes.
    ///
    /// # Errors
    /// [`BenchError::TooFewCores`].
    pub(crate) fn require(&self, lanes: usize) -> Result<(), BenchError> {
        match self.count() {
            cores if cores < lanes => Err(BenchError::TooFewCores { lanes, cores }),
            _ => Ok(()),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn as_slice(&self) -> &[CoreId] {
        &self.0
    }

    /// The core of generators and clients.
    pub(crate) fn first(&self) -> CoreId {
        self.0[0]
    }

    /// The core of the system under test, which is the first as well where there is only one.
    pub(crate) fn last(&self) -> CoreId {
        self.0[self.0.len() - 1]
    }

    /// A core for each of so many workers; workers take turns where they are more than cores.
    pub(crate) fn in_turn(&self, workers: usize) -> Vec<CoreId> {
        self.0.iter().copied().cycle().take(workers).collect()
    }

    /// The same as a runtime wants it.
    pub(crate) fn bound(&self, workers: usize) -> Vec<Option<CoreId>> {
        self.in_turn(workers).into_iter().map(Some).collect()
    }

    /// Workers bound to no core: as many as lanes or cores, whichever are fewer, and at least two.
    pub(crate) fn unbound(&self, lanes: usize) -> Vec<Option<CoreId>> {
        vec![None; self.count().min(lanes).max(2)]
    }
}

/// Threads of a simulation: one for each core, and one where the cores are not known.
pub(crate) fn threads() -> usize {
    Cores::available().map_or(1, |cores| cores.count())
}

/// Runs `work` in a thread bound to a core, and waits for its end. Processes that it starts inherit the core.
pub(crate) fn on_core<T: Send>(core: CoreId, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            // Where that is refused, the figures are only less steady.
            let _ = pin_current_thread(core);
            work()
        });
        running.join().expect("an experiment returns its errors")
    })
}

#[cfg(test)]
mod tests {
    //! Timed: threads.

    use super::*;

    #[test]
    fn lanes_have_cores_of_their_own_and_workers_take_turns() {
        let cores = Cores::available().unwrap();
        let count = cores.count();
        assert_eq!(Cores::of_lanes(0, count).unwrap().as_slice(), cores.as_slice());
        for error in [Cores::of_lanes(0, count + 1), Cores::of_lanes(1, count)] {
            let error = error.unwrap_err();
            assert!(matches!(error, BenchError::TooFewCores { cores, .. } if cores == count));
        }
        assert!(cores.require(count).is_ok() && cores.require(count + 1).is_err());
        let bound = cores.bound(2 * count);
        assert_eq!(bound[..count], bound[count..]);
        assert_eq!(bound[count - 1], Some(cores.last()));
        assert_eq!(cores.unbound(1), [None, None]);
    }

    #[test]
    fn work_runs_on_its_core() {
        let core = Cores::available().unwrap().last();
        let there = on_core(core, || Cores::available().unwrap());
        assert_eq!(there.as_slice(), [core]);
    }
}
