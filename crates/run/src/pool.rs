//! A pool: threads that do work for lanes which would take a lane too long. They have no queue of a device
//! and no shard. A lane gives a task away at its [`PoolClient`] and goes on; when the outcome is there, it
//! goes on with it in [`crate::DeferredWork::settle`]. No thread waits for another: a pool that has too
//! much to do refuses tasks.
//!
//! | file | what it does |
//! |---|---|
//! | `client` | the lane's end: hands tasks to members, returns outcomes as they come |
//! | `slots` | values that wait at the lane for outcomes, or for their turn |
//! | `packets`, `order` | a client of packets: lets them out in their order, per shard |
//! | `queueing` | which member gets a task, and when |
//! | `channel` | the rings between one lane and one member |
//! | `team` | queues of members that steal from each other |
//! | `member` | the other end: does tasks, and sleeps |
//! | `report` | what members have done, and how they ended |
//! | `stepped` | a pool that a test drives |
//!
//! `docs/adr/0015-replies-in-order.md` states why it is so.

mod channel;
mod client;
#[cfg(all(test, shuttle))]
mod exploration;
mod member;
#[cfg(all(test, loom))]
mod models;
mod order;
mod packets;
mod queueing;
mod report;
mod slots;
mod stepped;
mod team;

pub use channel::Lost;
pub use client::PoolClient;
pub use packets::{AnyPoolClient, PacketClient, PacketPoolClient, PacketTicket, Reply};
pub use queueing::{PoolQueueing, PoolSharing};
pub use report::{MemberFailure, PoolReport};
pub use stepped::Stepped;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rheostat_base::choice::IdlePolicy;
use rheostat_base::sync::stamped_ring;
use rheostat_base::{CoreId, sync};
use rheostat_kernel::core_set::{CoreError, pin_current_thread};
use thiserror::Error;

use self::channel::{Back, Front, MemberState, NotifierSlot, TasksIn, TasksOut};
use self::member::{Member, Seat, TasksDone};
use self::team::{Team, Thief};
use crate::notifier::EventNotifier;
use crate::panic_message::panic_message;

/// How large a pool is, and the lanes it works for.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// One entry per member: the core it is pinned to, if any.
    pub members: Vec<Option<CoreId>>,
    /// Lanes of the run.
    pub lanes: usize,
    /// Which lanes a member works for.
    pub sharing: PoolSharing,
    /// How tasks wait.
    pub queueing: PoolQueueing,
    /// Tasks that may wait in a member's queue. A lane may have given this many times its members without having the outcomes;
    /// what is given beyond that is refused. Times the duration of a task, it is how much longer a shard may take to move.
    pub depth: usize,
    /// What members do that have nothing to do.
    pub idle: IdlePolicy,
}

impl PoolConfig {
    /// `members` members that are pinned nowhere and work for all of `lanes` lanes, with a central queue at each. They sleep when
    /// they have nothing to do.
    pub fn new(members: usize, lanes: usize, depth: usize) -> PoolConfig {
        PoolConfig {
            members: vec![None; members],
            lanes,
            sharing: PoolSharing::AllLanes,
            queueing: PoolQueueing::default(),
            depth,
            idle: IdlePolicy::SLEEPING,
        }
    }
}

/// Why a pool could not start, or a member not work.
#[derive(Debug, Error)]
pub enum PoolError {
    /// There are no members, no lanes, or no tasks may be given.
    #[error("a pool needs at least one member, one lane, and a depth of one")]
    Empty,
    /// Members that work for one lane each do not divide evenly.
    #[error("{members} members of a pool cannot be divided evenly among {lanes} lanes")]
    Uneven {
        /// Members.
        members: usize,
        /// Lanes.
        lanes: usize,
    },
    /// A member's thread could not be started, or not be given what it sleeps on.
    #[error("cannot start a member of the pool: {0}")]
    Spawn(#[from] io::Error),
    /// A member has ended by itself.
    #[error(transparent)]
    Member(#[from] MemberFailure),
}

/// A pool with one client per lane, in their order.
pub type WithClients<P, W, T, R> = (P, Vec<PoolClient<W, T, R>>);

/// Threads that do tasks of lanes. It should outlive the lanes: what members were given when it ends is done
/// first, and what lanes give afterwards, or have in a central queue, comes back as [`Lost::Ended`].
#[derive(Debug)]
pub struct Pool {
    members: Vec<JoinHandle<Result<TasksDone, CoreError>>>,
    states: Vec<sync::Arc<MemberState>>,
    stop: Arc<AtomicBool>,
}

impl Pool {
    /// Starts a pool. Each member calls `work`, on its own thread, with its number among all members, and does tasks by what that
    /// returns. Returns the pool with one client per lane, in their order.
    ///
    /// # Errors
    /// [`PoolError::Empty`], [`PoolError::Uneven`] and [`PoolError::Spawn`].
    pub fn start<W, T, R, F, M>(
        config: &PoolConfig,
        work: F,
    ) -> Result<WithClients<Pool, W, T, R>, PoolError>
    where
        T: Send + 'static,
        R: Send + 'static,
        F: Fn(usize) -> M + Clone + Send + 'static,
        M: FnMut(T) -> R,
    {
        let (seats, clients) = connect(config, || EventNotifier::new().map(Some))?;
        let mut pool = Pool { members: Vec::new(), states: Vec::new(), stop: Arc::default() };
        for ((index, seat), core) in seats.into_iter().enumerate().zip(&config.members) {
            let (stop, core, idle, work) = (pool.stop.clone(), *core, config.idle, work.clone());
            pool.states.push(seat.state());
            let thread = thread::Builder::new().name(format!("rheo-pool-{index}"));
            // What is started already stops when it is dropped.
            pool.members.push(thread.spawn(move || {
                // Of this thread, so that lanes learn of its end however it comes.
                let seat = seat;
                if let Some(core) = core {
                    pin_current_thread(core)?;
                }
                Ok(Member::new(seat, work(index)).run(&stop, idle))
            })?);
        }
        Ok((pool, clients))
    }

    /// Lets the members do what they were given, and ends them.
    ///
    /// # Errors
    /// [`PoolError::Member`] when a member had ended by itself. All others have ended, too.
    pub fn stop(self) -> Result<PoolReport, PoolError> {
        self.end(None).into_result()
    }

    /// As [`Pool::stop`], but waits no longer than this for tasks that do not end. The threads of such members are left alone. The
    /// report names them, and those that had ended by themselves.
    pub fn stop_within(self, longest: Duration) -> PoolReport {
        self.end(Some(Instant::now() + longest))
    }

    fn end(mut self, last: Option<Instant>) -> PoolReport {
        self.tell();
        let mut sum = PoolReport::default();
        for (member, thread) in std::mem::take(&mut self.members).into_iter().enumerate() {
            while let Some(last) = last
                && !thread.is_finished()
                && Instant::now() < last
            {
                thread::sleep(Duration::from_millis(1));
            }
            if last.is_some() && !thread.is_finished() {
                sum.running.push(member);
                continue;
            }
            match thread.join() {
                Ok(Ok(done)) => {
                    sum.tasks += done.tasks;
                    sum.panicked += done.panicked;
                }
                Ok(Err(error)) => sum.failures.push(MemberFailure::Pin { member, error }),
                Err(panic) => {
                    let message = panic_message(&*panic);
                    sum.failures.push(MemberFailure::Panicked { member, message });
                }
            }
        }
        sum
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

type Connected<W, T, R> = WithClients<Vec<Seat<T, R>>, W, T, R>;

/// Seats of members, and clients, with a channel between each two that belong together.
fn connect<W, T, R>(
    config: &PoolConfig,
    mut notifier: impl FnMut() -> io::Result<Option<EventNotifier>>,
) -> Result<Connected<W, T, R>, PoolError> {
    let PoolConfig { ref members, lanes, sharing, queueing, depth, .. } = *config;
    let members = members.len();
    if members == 0 || lanes == 0 || depth == 0 {
        return Err(PoolError::Empty);
    }
    if sharing == PoolSharing::OneLane && !members.is_multiple_of(lanes) {
        return Err(PoolError::Uneven { members, lanes });
    }
    let mut states = Vec::with_capacity(members);
    for _ in 0..members {
        states.push(sync::Arc::new(MemberState::new(notifier()?)));
    }
    let mut backs: Vec<Vec<Back<T, R>>> = (0..members).map(|_| Vec::new()).collect();
    let mut clients = Vec::with_capacity(lanes);
    for lane in 0..lanes {
        let own = match sharing {
            PoolSharing::AllLanes => 0..members,
            PoolSharing::OneLane => lane * (members / lanes)..(lane + 1) * (members / lanes),
        };
        let slot = NotifierSlot::default();
        let most = own.len() * depth;
        let team = match queueing {
            PoolQueueing::Stealing { burst } => {
                Some((Team::new(states[own.clone()].to_vec(), most), burst.max(1)))
            }
            PoolQueueing::Central(_) | PoolQueueing::PerMember => None,
        };
        let mut fronts = Vec::with_capacity(own.len());
        for (number, member) in own.enumerate() {
            let state = states[member].clone();
            // A member may answer all tasks of its lane, if it takes them from others.
            let (replies_in, replies_out) =
                stamped_ring::ring(if team.is_some() { most } else { depth.max(2) });
            let (tasks_in, tasks_out) = match &team {
                Some((team, burst)) => (
                    TasksIn::Team(team.clone(), number),
                    TasksOut::Team(Thief::new(number, team.clone(), *burst)),
                ),
                None => {
                    let (tasks_in, tasks_out) = stamped_ring::ring(depth.max(2));
                    (TasksIn::Ring(tasks_in), TasksOut::Ring(tasks_out))
                }
            };
            fronts.push(Front::new(tasks_in, replies_out, state));
            backs[member].push(Back::new(tasks_out, replies_in, slot.clone()));
        }
        clients.push(PoolClient::new(fronts, config, slot));
    }
    let seat = |(backs, state)| Seat::new(backs, state);
    Ok((backs.into_iter().zip(states).map(seat).collect(), clients))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
