//! The plan of a scheduler, which the runtime carries out.

use std::fmt;

use rheostat_run::Sharing;
use rheostat_tcp::sched::{Dispatcher, Queueing, SchedulerError, SchedulerName, Split};

/// The plan of a scheduler: how lanes share the packets that arrive, and whether they handle requests or give them to application
/// workers.
///
/// Replies leave through the lane that has the connection, in the order of its requests. Lanes that share packets share all
/// connections, and the lane that completes the oldest reply of a connection sends it.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerPlan {
    receiving: Queueing,
    members: Option<MembersPlan>,
}

/// The application workers of a plan. Those of a lane share its requests, and no other lane's.
#[derive(Clone, Copy)]
pub struct MembersPlan {
    queueing: Queueing,
    numbers: Numbers,
}

/// How many workers there are.
#[derive(Clone, Copy)]
enum Numbers {
    Fixed(Split),
    OfCores(&'static SplitCores),
}

/// Splits so many cores.
type SplitCores = dyn Fn(u16) -> Result<Split, SchedulerError> + Send + Sync;

impl SchedulerPlan {
    /// Lanes do all stages of a request, and share packets by `receiving`: with dFCFS each has connections of its own, with cFCFS they
    /// take packets from one queue, with WS an idle lane takes packets of others.
    pub const fn inline(receiving: Queueing) -> SchedulerPlan {
        SchedulerPlan { receiving, members: None }
    }

    /// Lanes do TCP for connections of their own, and application workers handle requests. The workers of a lane share its requests by
    /// `queueing`. `split` returns the numbers of lanes and of application workers for a number of cores, which is that of `[workers]
    /// cores` or of the process, at least 1. It is called before the service starts; its error refuses the start, and so does a split
    /// into more workers than cores, unless they may share cores.
    ///
    /// The plan is kept for the rest of the program, and `split` with it.
    pub fn dispatcher<F>(queueing: Queueing, split: F) -> SchedulerPlan
    where
        F: Fn(u16) -> Result<Split, SchedulerError> + Send + Sync + 'static,
    {
        let numbers = Numbers::OfCores(Box::leak(Box::new(split)));
        SchedulerPlan {
            receiving: Queueing::Dfcfs,
            members: Some(MembersPlan { queueing, numbers }),
        }
    }

    /// The same plan, with lanes that share packets by `receiving`.
    #[must_use]
    pub fn receiving_by(self, receiving: Queueing) -> SchedulerPlan {
        SchedulerPlan { receiving, ..self }
    }

    /// How lanes share packets.
    pub fn receiving(&self) -> Queueing {
        self.receiving
    }

    /// The setting of the run by which lanes share receive queues, and with them connections.
    pub fn sharing(&self) -> Option<Sharing> {
        match self.receiving {
            Queueing::Cfcfs => Some(Sharing::CENTRAL),
            Queueing::Ws => Some(Sharing::STEALING),
            Queueing::Dfcfs => None,
        }
    }

    /// The application workers; `None` where lanes handle requests.
    pub fn members(&self) -> Option<MembersPlan> {
        self.members
    }

    /// Whether requests wait for application workers in one queue of their lane.
    pub fn has_central_queue(&self) -> bool {
        self.members.is_some_and(|members| members.queueing == Queueing::Cfcfs)
    }

    /// The name of a scheduler that comes along with this plan; `None` where the numbers of workers depend on the cores.
    pub(super) fn name(&self) -> Option<SchedulerName> {
        let Some(members) = &self.members else {
            return Some(SchedulerName::Inline(self.receiving));
        };
        match members.numbers {
            Numbers::Fixed(split) => {
                Some(SchedulerName::Dispatcher(members.dispatcher(split, self.receiving)))
            }
            Numbers::OfCores(_) => None,
        }
    }
}

impl MembersPlan {
    /// How the application workers of a lane share its requests.
    pub fn queueing(&self) -> Queueing {
        self.queueing
    }

    /// The lanes and application workers on so many cores, where lanes share packets by `receiving`.
    ///
    /// # Errors
    /// [`SchedulerError`] if the plan has no split of so many cores.
    pub fn on_cores(&self, cores: u16, receiving: Queueing) -> Result<Dispatcher, SchedulerError> {
        let split = match self.numbers {
            Numbers::Fixed(split) => split,
            Numbers::OfCores(split) => split(cores)?,
        };
        Ok(self.dispatcher(split, receiving))
    }

    fn dispatcher(&self, split: Split, receiving: Queueing) -> Dispatcher {
        let own = Dispatcher::new(split, self.queueing);
        // One network worker shares its queue with none.
        own.receiving_by(receiving).unwrap_or(own)
    }
}

impl From<SchedulerName> for SchedulerPlan {
    fn from(name: SchedulerName) -> SchedulerPlan {
        let members = match name {
            SchedulerName::Inline(_) => None,
            SchedulerName::Dispatcher(dispatcher) => {
                let numbers = Numbers::Fixed(dispatcher.split());
                Some(MembersPlan { queueing: dispatcher.queueing(), numbers })
            }
        };
        SchedulerPlan { receiving: name.receiving(), members }
    }
}

impl fmt::Debug for MembersPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut plan = f.debug_struct("MembersPlan");
        plan.field("queueing", &self.queueing);
        match self.numbers {
            Numbers::Fixed(split) => plan.field("split", &split).finish(),
            Numbers::OfCores(_) => plan.finish_non_exhaustive(),
        }
    }
}
