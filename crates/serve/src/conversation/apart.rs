//! Requests that are handled apart from their connections: by the lane when it has given the shards back, or by members of a pool.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rheostat_base::ShardId;
use rheostat_run::{AnyPoolClient, LaneNotifier, Lost};

use super::members::{Members, RequestClient};
use crate::application::{Application, Handled};
use crate::connections::ConnectionId;
use crate::times::{RequestStage, Timed, TimesMeter};

/// A request that waits to be handled.
pub(crate) struct Job<A: Application> {
    pub(crate) origin: Origin,
    pub(crate) request: A::Request,
}

/// Where a request comes from, and its reply goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) connection: ConnectionId,
    /// Its place among the requests of the connection.
    pub(crate) place: u32,
    /// When its stages ended, if it is timed.
    pub(crate) timed: Option<Box<Timed>>,
}

/// What came of a request.
pub(crate) struct Outcome<A: Application> {
    pub(crate) origin: Origin,
    pub(crate) reply: Result<A::Reply, Lost>,
}

/// The requests of a lane's connections that are on their way to being handled, and what came of others.
pub(crate) struct Apart<A: Application> {
    /// Those that the lane handles.
    jobs: VecDeque<Job<A>>,
    outcomes: VecDeque<Outcome<A>>,
    /// Threads that handle them in place of the lane.
    members: Option<Members<A>>,
    /// By shard, requests whose outcomes were not taken.
    outstanding: Vec<u32>,
}

impl<A: Application> Apart<A> {
    /// The lane handles requests.
    pub(crate) fn new() -> Apart<A> {
        Apart {
            jobs: VecDeque::new(),
            outcomes: VecDeque::new(),
            members: None,
            outstanding: Vec::new(),
        }
    }

    /// Members handle them.
    pub(crate) fn with_members(client: RequestClient<A>) -> Apart<A> {
        Apart { members: Some(Members::new(client)), ..Apart::new() }
    }

    /// Whether members handle requests.
    pub(crate) fn has_members(&self) -> bool {
        self.members.is_some()
    }

    /// Whether a request waits to be handled here.
    pub(crate) fn has_work(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Whether there is no room for more of a connection's requests than one.
    pub(crate) fn is_full(&self, connection: ConnectionId) -> bool {
        self.members.as_ref().is_some_and(|members| members.is_full(connection))
    }

    /// Takes a request.
    pub(crate) fn add(&mut self, job: Job<A>) {
        let shard = job.origin.connection.shard.index();
        if shard >= self.outstanding.len() {
            self.outstanding.resize(shard + 1, 0);
        }
        self.outstanding[shard] += 1;
        match &mut self.members {
            Some(members) => members.add(job),
            None => self.jobs.push_back(job),
        }
    }

    /// Handles the request that waits longest. One that takes longer waits again, behind the others. `None` if none waits.
    pub(crate) fn work(
        &mut self,
        app: &A,
        worker: &mut A::Worker,
        times: Option<&TimesMeter>,
    ) -> Option<Result<(), Lost>> {
        let Job { mut origin, request } = self.jobs.pop_front()?;
        if let Some(times) = times {
            times.handle(&mut origin.timed);
        }
        let handled = catch_unwind(AssertUnwindSafe(|| app.handle(worker, request)));
        let reply = match handled {
            Ok(Handled::Done(reply)) => Ok(reply),
            Ok(Handled::More(request)) => {
                self.jobs.push_back(Job { origin, request });
                return Some(Ok(()));
            }
            Err(_) => Err(Lost::Panicked),
        };
        if let Some(times) = times {
            times.end(&mut origin.timed, RequestStage::Application);
        }
        let result = reply.as_ref().map(|_| ()).map_err(|lost| *lost);
        self.outcomes.push_back(Outcome { origin, reply });
        Some(result)
    }

    /// The shard of the connection that the next outcome is for.
    pub(crate) fn unsettled(&self) -> Option<ShardId> {
        self.outcomes.front().map(|outcome| outcome.origin.connection.shard)
    }

    /// Takes the next outcome.
    pub(crate) fn next_outcome(&mut self) -> Option<Outcome<A>> {
        let outcome = self.outcomes.pop_front()?;
        self.outstanding[outcome.origin.connection.shard.index()] -= 1;
        Some(outcome)
    }

    /// Requests whose outcomes were not taken.
    pub(crate) fn len(&self) -> u64 {
        self.outstanding.iter().map(|count| u64::from(*count)).sum()
    }
}

/// For a lane whose requests members handle.
impl<A: Application> AnyPoolClient for Apart<A> {
    fn collect(&mut self) -> usize {
        if let Some(members) = &mut self.members {
            members.collect(&mut self.outcomes);
        }
        self.outcomes.len()
    }

    fn ring(&mut self) {
        if let Some(members) = &mut self.members {
            members.client.ring();
        }
    }

    /// Requests have left their packets.
    fn packets(&self) -> usize {
        0
    }

    fn outstanding(&self, shard: ShardId) -> usize {
        self.outstanding.get(shard.index()).map_or(0, |count| *count as usize)
    }

    fn has_replies(&self) -> bool {
        !self.outcomes.is_empty() || self.members.as_ref().is_some_and(Members::has_replies)
    }

    fn wake_by(&mut self, notifier: LaneNotifier) {
        if let Some(members) = &mut self.members {
            members.client.wake_by(notifier);
        }
    }
}
