//! The workers of a scheduler: lanes, and members that handle requests in place of them.

use std::time::Duration;

use rheostat_base::CoreId;
use rheostat_run::{PoolConfig, PoolQueueing, PoolSharing};
use rheostat_tcp::sched::{IdlePolicy, Outstanding, Queueing, Scheduler, SchedulerName};

/// Requests that may wait in a member's queue, as in `rheo serve`.
const DEPTH: usize = 256;
/// Requests that a member takes from another at most.
const BURST: u32 = 32;
/// How long members may take for the requests at hand when a run is over.
pub(super) const MEMBERS_TIME: Duration = Duration::from_secs(1);

/// Workers that run the application.
pub(super) fn application_workers(scheduler: Scheduler) -> u32 {
    match scheduler.name() {
        SchedulerName::Inline(_) => scheduler.workers().into(),
        SchedulerName::Dispatcher(dispatcher) => dispatcher.split().members().into(),
    }
}

/// Lanes: workers that do TCP.
pub(super) fn lanes(scheduler: Scheduler) -> usize {
    scheduler.network_workers().into()
}

/// The members of a dispatcher, on the cores behind those of the lanes.
pub(super) fn members(
    scheduler: Scheduler,
    outstanding: Outstanding,
    cores: &[CoreId],
) -> Option<PoolConfig> {
    let SchedulerName::Dispatcher(dispatcher) = scheduler.name() else { return None };
    let lanes = lanes(scheduler);
    let cores = cores.iter().skip(lanes).take(dispatcher.split().members().into());
    Some(PoolConfig {
        members: cores.map(|core| Some(*core)).collect(),
        lanes,
        sharing: PoolSharing::OneLane,
        queueing: match dispatcher.queueing() {
            Queueing::Cfcfs => PoolQueueing::Central(outstanding),
            Queueing::Dfcfs => PoolQueueing::PerMember,
            Queueing::Ws => PoolQueueing::Stealing { burst: BURST },
        },
        depth: DEPTH,
        idle: IdlePolicy::POLLING,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dispatcher_has_its_members_on_the_cores_behind_its_lanes() {
        let cores: Vec<CoreId> = (0..8).map(CoreId).collect();
        let on = |name: &str| Scheduler::on_cores(name.parse().unwrap(), 8).unwrap();
        let scheduler = on("dispatcher-2:6-ws");
        let pool = members(scheduler, Outstanding::ONE, &cores).unwrap();
        assert_eq!((lanes(scheduler), application_workers(scheduler)), (2, 6));
        assert_eq!(pool.members, (2..8).map(|core| Some(CoreId(core))).collect::<Vec<_>>());
        assert_eq!(pool.queueing, PoolQueueing::Stealing { burst: 32 });
        let inline = on("inline-dfcfs");
        assert!(members(inline, Outstanding::ONE, &cores).is_none());
        assert_eq!((lanes(inline), application_workers(inline)), (8, 8));
    }
}
