//! Requests that are handled apart from their connections: by the lane when it has given the shards back, or by members of a pool.

use std::collections::VecDeque;

use rheostat_base::ShardId;
use rheostat_run::{AnyPoolClient, LaneNotifier, Lost};

use super::members::{Members, RequestClient};
use crate::application::Application;
use crate::connections::ConnectionId;
use crate::times::Timed;

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
    /// Requests that wait for the lane, where it handles them.
    pub(super) jobs: VecDeque<Job<A>>,
    pub(super) outcomes: VecDeque<Outcome<A>>,
    /// Threads that handle requests in place of the lane.
    pub(super) members: Option<Members<A>>,
    /// By shard, requests whose outcomes were not taken.
    pub(super) outstanding: Vec<u32>,
}

impl<A: Application> Apart<A> {
    /// Members handle requests; without a client of theirs, the lane does.
    pub(crate) fn new(client: Option<RequestClient<A>>) -> Apart<A> {
        Apart {
            jobs: VecDeque::new(),
            outcomes: VecDeque::new(),
            members: client.map(Members::new),
            outstanding: Vec::new(),
        }
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

    /// Takes the next outcome.
    pub(crate) fn next_outcome(&mut self) -> Option<Outcome<A>> {
        let outcome = self.outcomes.pop_front()?;
        self.outstanding[outcome.origin.connection.shard.index()] -= 1;
        Some(outcome)
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
