//! Requests that the members of a pool handle.

use std::collections::VecDeque;
use std::sync::Arc;

use rheostat_base::{ClockSource, LaneId, ShardId, Time};
use rheostat_run::{Lost, PoolClient};

use super::apart::{Job, Origin, Outcome};
use crate::application::{Application, Handled};
use crate::connections::ConnectionId;

/// A lane's client at the pool whose members handle its requests.
pub(crate) type RequestClient<A> = PoolClient<Origin, Asked<A>, Answered<A>>;

/// A request on its way to a member.
pub(crate) struct Asked<A: Application> {
    request: A::Request,
    is_timed: bool,
}

/// What a member made of it, and between which times if it is timed.
pub(crate) struct Answered<A: Application> {
    handled: Handled<A::Request, A::Reply>,
    times: Option<(Time, Time)>,
}

/// A lane's requests that members handle.
pub(crate) struct Members<A: Application> {
    pub(super) client: RequestClient<A>,
    /// Requests that found no room, oldest first, by the queue that they wait for. A connection has one here at most if others of
    /// it are under way, so there are never more than requests per connection and connections allow.
    kept: Vec<VecDeque<Job<A>>>,
}

impl<A: Application> Members<A> {
    pub(super) fn new(client: RequestClient<A>) -> Members<A> {
        let kept = (0..client.queues()).map(|_| VecDeque::new()).collect();
        Members { client, kept }
    }

    /// Whether requests of a connection wait for room.
    pub(super) fn is_full(&self, connection: ConnectionId) -> bool {
        !self.kept[self.client.queue_of(hash(connection))].is_empty()
    }

    /// Gives a request to a member, or keeps it until there is room.
    pub(super) fn add(&mut self, job: Job<A>) {
        let queue = self.client.queue_of(hash(job.origin.connection));
        match self.kept[queue].is_empty() {
            true => {
                if let Some(job) = self.submit(job) {
                    self.kept[queue].push_back(job);
                }
            }
            false => self.kept[queue].push_back(job),
        }
    }

    /// Takes what has come of requests.
    pub(super) fn collect(&mut self, outcomes: &mut VecDeque<Outcome<A>>) {
        self.client.collect();
        while let Some((mut origin, outcome)) = self.client.next_outcome() {
            let Answered { handled, times } = match outcome {
                Ok(answered) => answered,
                Err(lost) => {
                    outcomes.push_back(Outcome { origin, reply: Err(lost) });
                    continue;
                }
            };
            if let (Some(timed), Some((began, ended))) = (&mut origin.timed, times) {
                timed.handled(began, ended);
            }
            match handled {
                Handled::Done(reply) => outcomes.push_back(Outcome { origin, reply: Ok(reply) }),
                Handled::More(request) => self.add(Job { origin, request }),
            }
        }
        for queue in 0..self.kept.len() {
            while let Some(job) = self.kept[queue].pop_front() {
                if let Some(job) = self.submit(job) {
                    self.kept[queue].push_front(job);
                    break;
                }
            }
        }
        if self.client.has_ended() {
            let lost = |Job { origin, .. }| Outcome { origin, reply: Err(Lost::Ended) };
            outcomes.extend(self.kept.iter_mut().flat_map(|kept| kept.drain(..)).map(lost));
        }
    }

    /// Whether [`Members::collect`] would find something.
    pub(super) fn has_replies(&self) -> bool {
        self.client.has_replies()
            || self.client.has_ended() && self.kept.iter().any(|kept| !kept.is_empty())
    }

    fn submit(&mut self, Job { origin, request }: Job<A>) -> Option<Job<A>> {
        let asked = Asked { request, is_timed: origin.timed.is_some() };
        let hash = hash(origin.connection);
        let refused = self.client.submit(origin, hash, asked);
        refused.err().map(|(origin, Asked { request, .. })| Job { origin, request })
    }
}

/// What a member does with requests; `clock` is what they are timed by.
pub(crate) fn handling<A: Application>(
    app: Arc<A>,
    member: usize,
    clock: Option<Arc<dyn ClockSource>>,
) -> impl FnMut(Asked<A>) -> Answered<A> {
    // Members are fewer than cores.
    let number = LaneId(member as u16);
    let mut worker = app.worker(number);
    let mut is_whole = true;
    move |Asked { request, is_timed }| {
        if !is_whole {
            // After a panic: whatever it was about is in doubt.
            worker = app.worker(number);
        }
        is_whole = false;
        let clock = clock.as_ref().filter(|_| is_timed);
        let began = clock.map(|clock| clock.now());
        let handled = app.handle(&mut worker, request);
        is_whole = true;
        let times = began.zip(clock.map(|clock| clock.now()));
        Answered { handled, times }
    }
}

/// A hash of a connection's name, all of whose bits count.
fn hash(connection: ConnectionId) -> u32 {
    // Slots of a shard follow one another, and so do shards: Fibonacci hashing spreads them evenly.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let ConnectionId { shard: ShardId(shard), slot, .. } = connection;
    let name = u64::from(shard) << 32 | u64::from(slot);
    (name.wrapping_mul(GOLDEN) >> 32) as u32
}
