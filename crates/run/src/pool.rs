//! A pool: threads that do work for lanes which would take a lane too long. They have no queue of a device
//! and no shard. A lane gives a packet's task away at its [`PoolClient`] and goes on; when the reply is there, it
//! goes on with the packet in [`crate::Service::complete`]. No thread waits for another: a pool that has too
//! much to do refuses tasks.
//!
//! | file | what it does |
//! |---|---|
//! | `client` | the lane's end: hands tasks to members, and holds the packets meanwhile |
//! | `order` | lets replies out in the order of their packets, per shard |
//! | `channel` | the rings between one lane and one member |
//! | `member` | the other end: does tasks, and sleeps |
//! | `stepped` | a pool that a test drives |
//!
//! `docs/adr/0015-replies-in-order.md` states why it is so.

mod channel;
mod client;
mod member;
#[cfg(all(test, loom))]
mod models;
mod order;
mod stepped;

pub use channel::Lost;
pub use client::{AnyPoolClient, PoolClient, Reply};
pub use stepped::Stepped;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rheostat_base::core_set::{CoreError, pin_current_thread};
use rheostat_base::{CoreId, sync};
use thiserror::Error;

use self::channel::{MemberState, NotifierSlot, channel};
use self::member::Member;
use crate::notifier::EventNotifier;

/// How large a pool is, and the lanes it works for.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// One entry per member: the core it is pinned to, if any.
    pub members: Vec<Option<CoreId>>,
    /// Lanes of the run.
    pub lanes: usize,
    /// Shards of the run.
    pub shards: usize,
    /// Tasks that a lane may have given one member without having the reply. What is given beyond that to
    /// all of them is refused. Times the duration of a task, it is how much longer a shard may take to move.
    pub depth: usize,
}

/// Why a pool could not start, or a member not work.
#[derive(Debug, Error)]
pub enum PoolError {
    /// There are no members, no lanes, or no tasks may be given.
    #[error("a pool needs at least one member, one lane, and a depth of one")]
    Empty,
    /// A member's thread could not be started, or not be given what it sleeps on.
    #[error("cannot start a member of the pool: {0}")]
    Spawn(#[from] io::Error),
    /// A member could not be pinned to its core; its tasks were lost.
    #[error(transparent)]
    Pin(#[from] CoreError),
}

/// What the members of a pool have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolReport {
    /// Tasks done, those included that panicked.
    pub tasks: u64,
    /// Tasks that panicked.
    pub panicked: u64,
}

/// Threads that do tasks of lanes. It should outlive the lanes: what they have given when it ends is done
/// first, and what they give afterwards comes back as [`Lost::Ended`].
#[derive(Debug)]
pub struct Pool {
    members: Vec<JoinHandle<Result<PoolReport, CoreError>>>,
    states: Vec<sync::Arc<MemberState>>,
    stop: Arc<AtomicBool>,
}

impl Pool {
    /// Starts a pool that does tasks by `work`, of which each member has a clone. Returns it with one client
    /// per lane, in their order. A task must end by itself: at the end of a run its lane waits for it.
    ///
    /// # Errors
    /// [`PoolError::Empty`] and [`PoolError::Spawn`].
    pub fn start<T, R, F>(
        config: &PoolConfig,
        work: F,
    ) -> Result<(Pool, Vec<PoolClient<T, R>>), PoolError>
    where
        T: Send + 'static,
        R: Send + 'static,
        F: Fn(T) -> R + Clone + Send + 'static,
    {
        let (members, clients) = connect(config, &work, || EventNotifier::new().map(Some))?;
        let mut pool = Pool { members: Vec::new(), states: Vec::new(), stop: Arc::default() };
        for ((index, member), core) in members.into_iter().enumerate().zip(&config.members) {
            let (stop, core) = (pool.stop.clone(), *core);
            pool.states.push(member.state());
            let thread = thread::Builder::new().name(format!("rheo-pool-{index}"));
            // What is started already stops when it is dropped.
            pool.members.push(thread.spawn(move || {
                if let Some(core) = core {
                    pin_current_thread(core)?;
                }
                Ok(member.run(&stop))
            })?);
        }
        Ok((pool, clients))
    }

    /// Lets the members do what they were given, and ends them.
    ///
    /// # Errors
    /// [`PoolError::Pin`] when a member could not be pinned and so never worked.
    ///
    /// # Panics
    /// When a member did, outside of a task.
    pub fn stop(mut self) -> Result<PoolReport, PoolError> {
        self.tell();
        let mut sum = PoolReport::default();
        for member in std::mem::take(&mut self.members) {
            let report = member.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            sum.tasks += report.tasks;
            sum.panicked += report.panicked;
        }
        Ok(sum)
    }

    fn tell(&self) {
        // Release: pairs with the Acquire load in `Member::run`.
        self.stop.store(true, Ordering::Release);
        for notifier in self.states.iter().filter_map(|state| state.notifier()) {
            notifier.wake();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.tell();
        for member in self.members.drain(..) {
            // The pool is being given up; `stop` reports panics.
            let _ = member.join();
        }
    }
}

type Connected<T, R, F> = (Vec<Member<T, R, F>>, Vec<PoolClient<T, R>>);

/// Members and clients with a channel between each two.
fn connect<T, R, F: Fn(T) -> R + Clone>(
    config: &PoolConfig,
    work: &F,
    mut notifier: impl FnMut() -> io::Result<Option<EventNotifier>>,
) -> Result<Connected<T, R, F>, PoolError> {
    let PoolConfig { ref members, lanes, shards, depth } = *config;
    if members.is_empty() || lanes == 0 || depth == 0 {
        return Err(PoolError::Empty);
    }
    let notifiers: Vec<_> = (0..lanes).map(|_| NotifierSlot::default()).collect();
    let mut fronts: Vec<_> = (0..lanes).map(|_| Vec::new()).collect();
    let mut connected = Vec::new();
    for _ in members {
        let state = sync::Arc::new(MemberState::new(notifier()?));
        let mut backs = Vec::new();
        for (fronts, notifier) in fronts.iter_mut().zip(&notifiers) {
            let (front, back) = channel(depth, state.clone(), notifier.clone());
            fronts.push(front);
            backs.push(back);
        }
        connected.push(Member::new(backs, state, work.clone()));
    }
    let client = |(fronts, notifier)| PoolClient::new(fronts, depth, shards, notifier);
    Ok((connected, fronts.into_iter().zip(notifiers).map(client).collect()))
}

#[cfg(all(test, not(loom)))]
mod tests;
