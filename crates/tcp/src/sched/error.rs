//! Why there is no such scheduler.

use thiserror::Error;

use super::Queueing;
use super::name::dispatcher_name;

/// How the names of dispatchers are written.
const FORM: &str = "dispatcher-D:A, D network workers and A application workers, as in dispatcher-2:6; -cfcfs, -dfcfs or -ws \
                    behind it is how requests reach the latter, and +receive-cfcfs, +receive-dfcfs or +receive-ws behind that how \
                    packets reach the former";

/// Why a name is no scheduler, or a scheduler does not fit a machine. Each text names a fix.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchedulerError {
    /// The name does not parse.
    #[error("`{0}` is not a scheduler: use inline-cfcfs, inline-dfcfs, inline-ws or {form}", form = FORM)]
    Unknown(String),
    /// The name of a dispatcher does not parse.
    #[error("`{0}` is not a dispatcher: use {form}", form = FORM)]
    NotDispatcher(String),
    /// There are no network workers, or no application workers.
    #[error(
        "dispatcher-{dispatchers}:{members} has no {}: use at least dispatcher-1:1",
        if *dispatchers == 0 { "network worker" } else { "application worker" }
    )]
    Empty {
        /// Network workers.
        dispatchers: u16,
        /// Application workers.
        members: u16,
    },
    /// Some network workers would have no application worker.
    #[error(
        "dispatcher-{dispatchers}:{members} has more network workers than application workers: use \
         dispatcher-{members}:{members} or fewer network workers"
    )]
    TooManyDispatchers {
        /// Network workers.
        dispatchers: u16,
        /// Application workers.
        members: u16,
    },
    /// Network workers would have unequal numbers of application workers.
    #[error(
        "dispatcher-{dispatchers}:{members} leaves {members} application workers that {dispatchers} network workers cannot share \
         equally: use dispatcher-{dispatchers}:{} or dispatcher-{dispatchers}:{}",
        members - members % dispatchers,
        u32::from(*members) + u32::from(dispatchers - members % dispatchers)
    )]
    Indivisible {
        /// Network workers, not 0.
        dispatchers: u16,
        /// Application workers, no multiple of the network workers.
        members: u16,
    },
    /// One network worker is to share received packets.
    #[error(
        "{} has one network worker, which has no other to share received packets with: use {}, or at least two network \
         workers, as in {}",
        dispatcher_name((1, *members), *queueing, *receiving),
        dispatcher_name((1, *members), *queueing, Queueing::Dfcfs),
        dispatcher_name((2, (members & !1).max(2)), *queueing, *receiving)
    )]
    OneReceiver {
        /// Application workers.
        members: u16,
        /// How they share requests.
        queueing: Queueing,
        /// How network workers are to share packets.
        receiving: Queueing,
    },
    /// There are fewer cores than workers.
    #[error("{name} has {workers} workers, but {cores} {}: use {fix}", if *cores == 1 { "core" } else { "cores" })]
    TooFewCores {
        /// The scheduler.
        name: String,
        /// Workers that it has.
        workers: u32,
        /// Cores there are.
        cores: u16,
        /// A scheduler that fits, or a number of workers that does.
        fix: String,
    },
    /// An inline scheduler without workers.
    #[error("{0} with 0 workers: give it at least 1")]
    NoWorkers(String),
}
