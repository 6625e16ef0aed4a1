//! The thread that moves shards between lanes while a run goes on.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Thread, park_timeout};
use std::time::Duration;

use rheostat_base::Time;
use rheostat_kernel::CoreSet;
use rheostat_run::{ClassLooks, RunView};
use rheostat_steer::policy::{LaneBounds, Policy};

use super::{Balance, Balancer, Observation, Progress, counts};
use crate::config::BalanceConfig;

/// How often the quota of the process's cgroup is looked at.
const QUOTA: Duration = Duration::from_secs(1);

/// The running controller.
#[derive(Debug)]
pub struct Balancing {
    thread: JoinHandle<Balance>,
    over: Arc<AtomicBool>,
    board: BalanceBoard,
    change: BalancingChange,
}

/// How the running controller is given another policy. Clones are for the same one.
#[derive(Clone)]
pub struct BalancingChange {
    next: Arc<Mutex<Option<NextPolicy>>>,
    thread: Thread,
}

/// A policy that is to plan from now on, and the bounds it plans within.
struct NextPolicy {
    policy: Box<dyn Policy>,
    config: BalanceConfig,
}

/// Where the running controller shows what it does.
#[derive(Clone, Debug, Default)]
pub struct BalanceBoard(Arc<Mutex<Progress>>);

impl BalanceBoard {
    /// What it did at last.
    pub fn read(&self) -> Progress {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, progress: Progress) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }
}

impl BalancingChange {
    /// Has `policy` plan from the next moment on, as often and within the bounds that `config` states.
    pub fn set(&self, policy: Box<dyn Policy>, config: BalanceConfig) {
        let next = NextPolicy { policy, config };
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
        self.thread.unpark();
    }
}

impl fmt::Debug for BalancingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BalancingChange").finish_non_exhaustive()
    }
}

impl Balancing {
    /// Starts to drive `balancer` over the run, within the bounds of `config` and of the cgroup. What lanes measure by class is
    /// summed up at this percentile, as a share of packets.
    ///
    /// # Errors
    /// [`io::Error`] when there can be no thread.
    pub fn start(
        mut balancer: Balancer,
        mut config: BalanceConfig,
        percentile: f64,
        view: Arc<RunView>,
    ) -> io::Result<Balancing> {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let board = BalanceBoard::default();
        let shown = board.clone();
        let next = Arc::new(Mutex::new(None::<NextPolicy>));
        let given = next.clone();
        let body = move || {
            let mut look = Time::ZERO;
            let mut looks = ClassLooks::new(percentile);
            let mut plans = None;
            // Relaxed: the flag publishes nothing.
            while !is_over.load(Ordering::Relaxed) {
                let now = view.now();
                if let Some(next) = given.lock().unwrap_or_else(PoisonError::into_inner).take() {
                    config = next.config;
                    balancer.set_policy(next.policy, config.interval, now);
                    (look, plans) = (Time::ZERO, None);
                }
                if now >= look {
                    balancer.set_bounds(within_quota(config.bounds(view.lanes()), quota()));
                    look = now + QUOTA;
                }
                let mut migrator = view.migrator();
                let (owners, rewrite) = (migrator.owners().to_vec(), migrator.rewrite());
                let next = balancer.step(now, &mut *migrator, || {
                    Observation::of(&view, &mut looks, &owners, rewrite)
                });
                drop(migrator);
                if plans.replace(balancer.plans()) != Some(balancer.plans()) {
                    shown.write(balancer.progress());
                }
                park_timeout(next.min(look).since(view.now()));
            }
            balancer.finish(&counts(&view))
        };
        let thread = Builder::new().name("rheo-balance".into()).spawn(body)?;
        let change = BalancingChange { next, thread: thread.thread().clone() };
        Ok(Balancing { thread, over, board, change })
    }

    /// Where it shows what it does.
    pub fn board(&self) -> BalanceBoard {
        self.board.clone()
    }

    /// How it is given another policy.
    pub fn change(&self) -> BalancingChange {
        self.change.clone()
    }

    /// Ends it, and returns what it did. Shards that are moving are left to the end of the run.
    pub fn stop(self) -> Balance {
        self.over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Processors' worth of time that the cgroup grants at present, where it sets a limit.
fn quota() -> Option<f64> {
    CoreSet::available().ok()?.quota()
}

/// No more lanes than the quota lets run at full speed: one more would have all of them stopped for the
/// rest of each period.
fn within_quota(bounds: LaneBounds, quota: Option<f64>) -> LaneBounds {
    let most = quota.map_or(usize::MAX, |quota| (quota.floor() as usize).max(1));
    let max = bounds.max.min(most);
    LaneBounds { min: bounds.min.min(max), max }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_lowers_the_bounds_and_leaves_one_lane() {
        let bounds = LaneBounds { min: 2, max: 8 };
        let within = |quota| {
            let LaneBounds { min, max } = within_quota(bounds, quota);
            (min, max)
        };
        assert_eq!(within(None), (2, 8));
        assert_eq!(within(Some(4.9)), (2, 4));
        assert_eq!(within(Some(1.5)), (1, 1));
        assert_eq!(within(Some(0.2)), (1, 1));
    }
}
