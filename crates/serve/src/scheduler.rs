//! Schedulers of services: each registers its name and its plan once. Reading, help and messages follow from the registration.

mod plan;
mod registration;

use std::fmt;

use rheostat_run::Sharing;
use rheostat_tcp::sched::{Dispatcher, Queueing, SchedulerError, SchedulerName};

pub use self::plan::{MembersPlan, SchedulerPlan};
pub use self::registration::SchedulerRegistration;

/// The schedulers that come along, the default first.
pub const ALL: [SchedulerRegistration; 4] = [
    SchedulerRegistration::new("inline-dfcfs", SchedulerPlan::inline(Queueing::Dfcfs))
        .summarised("each worker does everything, for connections of its own"),
    SchedulerRegistration::new("inline-cfcfs", SchedulerPlan::inline(Queueing::Cfcfs))
        .summarised("any worker takes the next packet of one queue"),
    SchedulerRegistration::new("inline-ws", SchedulerPlan::inline(Queueing::Ws))
        .summarised("a worker without packets takes those of others"),
    SchedulerRegistration::of_form("dispatcher-D:A", dispatcher).summarised(
        "D workers for the network, A for requests; with -dfcfs or -ws behind it for other queues than a central one before the \
         latter, and +receive-cfcfs or +receive-ws behind that to have the former share packets as inline workers do",
    ),
];

/// A scheduler that a service can run with.
#[derive(Clone, Debug)]
pub struct AvailableScheduler {
    name: String,
    plan: SchedulerPlan,
}

impl AvailableScheduler {
    /// A scheduler with this name and this plan.
    pub fn new(name: impl Into<String>, plan: SchedulerPlan) -> AvailableScheduler {
        AvailableScheduler { name: name.into(), plan }
    }

    /// Its name in a configuration.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its plan.
    pub fn plan(&self) -> SchedulerPlan {
        self.plan
    }

    /// How lanes share receive queues, and with them connections: the setting of the run
    /// ([`RuntimeConfig::sharing`](rheostat_run::RuntimeConfig::sharing)).
    pub fn sharing(&self) -> Option<Sharing> {
        self.plan.sharing()
    }

    /// The scheduler to take in its place where lanes must have connections of their own: one that comes along.
    pub fn with_own_queues(&self) -> AvailableScheduler {
        let own = self.plan.name().map(SchedulerName::with_own_queues);
        own.map_or_else(AvailableScheduler::default, AvailableScheduler::from)
    }
}

/// By the name: no two that are registered have the same.
impl PartialEq for AvailableScheduler {
    fn eq(&self, other: &AvailableScheduler) -> bool {
        self.name == other.name
    }
}

impl Eq for AvailableScheduler {}

impl Default for AvailableScheduler {
    fn default() -> AvailableScheduler {
        SchedulerName::default().into()
    }
}

impl From<SchedulerName> for AvailableScheduler {
    fn from(name: SchedulerName) -> AvailableScheduler {
        AvailableScheduler::new(name.to_string(), name.into())
    }
}

impl fmt::Display for AvailableScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// A dispatcher by its name; `None` if the name is not that of a dispatcher.
fn dispatcher(name: &str) -> Option<Result<AvailableScheduler, SchedulerError>> {
    let read = || name.parse().map(|read| SchedulerName::Dispatcher(read).into());
    name.starts_with(Dispatcher::PREFIX).then(read)
}

#[cfg(test)]
mod tests;
