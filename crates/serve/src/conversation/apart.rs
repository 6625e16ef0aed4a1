//! Requests that are handled apart from their connections: by the lane when it has given the shards back, or by another thread.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rheostat_base::ShardId;

use crate::application::{Application, Handled};
use crate::connections::ConnectionId;
use crate::times::{RequestStage, Timed, TimesMeter};

/// A request that waits to be handled.
pub(crate) struct Job<A: Application> {
    pub(crate) origin: Origin,
    pub(crate) request: A::Request,
}

/// Where a request comes from, and its reply goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) connection: ConnectionId,
    /// Its place among the requests of the connection.
    pub(crate) place: u32,
    /// What kind of request it is, as the application says.
    pub(crate) class: u8,
    /// When its stages ended, if it is timed.
    pub(crate) timed: Option<Timed>,
}

/// What came of a request.
pub(crate) struct Outcome<A: Application> {
    pub(crate) origin: Origin,
    pub(crate) reply: Result<A::Reply, Panicked>,
}

/// The application panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

/// The requests of a lane's connections that are on their way to being handled, and what came of others.
pub(crate) struct Apart<A: Application> {
    pub(crate) jobs: VecDeque<Job<A>>,
    pub(crate) outcomes: VecDeque<Outcome<A>>,
}

impl<A: Application> Apart<A> {
    pub(crate) fn new() -> Apart<A> {
        Apart { jobs: VecDeque::new(), outcomes: VecDeque::new() }
    }

    /// Handles the request that waits longest. One that takes longer waits again, behind the others. `None` if none waits.
    pub(crate) fn work(
        &mut self,
        app: &A,
        worker: &mut A::Worker,
        times: Option<&TimesMeter>,
    ) -> Option<Result<(), Panicked>> {
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
            Err(_) => Err(Panicked),
        };
        if let Some(times) = times {
            times.end(&mut origin.timed, RequestStage::Application);
        }
        let result = reply.as_ref().map(|_| ()).map_err(|panicked| *panicked);
        self.outcomes.push_back(Outcome { origin, reply });
        Some(result)
    }

    /// The shard of the connection that the next outcome is for.
    pub(crate) fn unsettled(&self) -> Option<ShardId> {
        self.outcomes.front().map(|outcome| outcome.origin.connection.shard)
    }
}
