//! Where the workers of a service run, as its scheduler and `--place` state.

use std::fs;

use rheostat_base::CoreId;
use rheostat_base::choice::IdlePolicy;
use rheostat_control::Config;
use rheostat_control::config::workers::CoreList;
use rheostat_control::config::{ServeConfig, WorkersConfig};
use rheostat_kernel::core_set::CoreError;
use rheostat_kernel::placement::{PlacementError, Siblings};
use rheostat_kernel::{CoreSet, Topology};
use rheostat_run::{PoolConfig, PoolQueueing, PoolSharing};
use rheostat_serve::AvailableScheduler;
use rheostat_serve::scheduler::MembersPlan;
use rheostat_tcp::sched::{Queueing, Scheduler, SchedulerError, SchedulerName};
use thiserror::Error;

use crate::workers::{self, WorkersError};

/// Why the workers of a service cannot be placed.
#[derive(Debug, Error)]
pub(crate) enum PlacingError {
    #[error("--place {0}")]
    Placement(#[from] PlacementError),
    #[error(
        "--place split-siblings: each network worker shares a core with an application worker, so it needs as many of \
         one as of the other, dispatcher-N:N, and this is `{scheduler}`"
    )]
    NoPairs { scheduler: AvailableScheduler },
    #[error(
        "`{scheduler}` has a lane for each of its {dispatchers} network workers, and {given} {what} are wanted: leave that out"
    )]
    LanesOfDispatcher {
        scheduler: AvailableScheduler,
        dispatchers: u16,
        given: u16,
        what: &'static str,
    },
    #[error("{0}")]
    Scheduler(SchedulerError),
    /// The plan of a scheduler does not name workers that these cores have.
    #[error("`{scheduler}` on {cores} {}: {source}", if *cores == 1 { "core" } else { "cores" })]
    Split { scheduler: String, cores: u16, source: SchedulerError },
    #[error("{0}")]
    Cores(#[from] CoreError),
    #[error("{0}")]
    Workers(#[from] WorkersError),
}

/// Requests that may wait in the queue of an application worker; in a central queue, so many for each of them.
const DEPTH: usize = 256;
/// Requests that an application worker takes from another at most.
const BURST: u32 = 32;

/// The workers of a service.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// Of its lanes: those of the configuration, with the cores and numbers that the placement or the scheduler picks.
    pub(crate) workers: WorkersConfig,
    /// Of the application, in place of the lanes, where the scheduler has some.
    pub(crate) members: Option<PoolConfig>,
}

/// Picks the cores of workers if a placement is given, or the scheduler has workers of the application.
///
/// # Errors
/// [`PlacingError`] when the machine has no such places, or too few.
pub(crate) fn place(config: &Config, serve: &ServeConfig) -> Result<Placed, PlacingError> {
    match serve.scheduling.scheduler.plan().members() {
        None => place_inline(config, serve),
        Some(members) => place_dispatcher(config, serve, members),
    }
}

fn place_inline(config: &Config, serve: &ServeConfig) -> Result<Placed, PlacingError> {
    let workers = config.workers.clone();
    let Some(placement) = serve.place else { return Ok(Placed { workers, members: None }) };
    if placement.siblings == Siblings::Split {
        return Err(PlacingError::NoPairs { scheduler: serve.scheduling.scheduler.clone() });
    }
    let topology = Topology::of_this_machine();
    let count = workers.count.or(workers.lanes).map(usize::from);
    let placed = placement.resolve(&topology, &usable(config)?, device_node(config), count)?;
    tracing::info!(target: "serve", "placed by {placement}: workers on {} of {}", names(&placed.network), describe(&topology));
    let workers = WorkersConfig { cores: list(&placed.network), ..workers };
    Ok(Placed { workers, members: None })
}

fn place_dispatcher(
    config: &Config,
    serve: &ServeConfig,
    plan: MembersPlan,
) -> Result<Placed, PlacingError> {
    let scheduler = &serve.scheduling.scheduler;
    // With the cores that a run without a placement would use, of which there may be fewer than the process may run on.
    let all = match serve.place {
        Some(_) => usable(config)?,
        None => workers::cores(&config.workers)?,
    };
    let cores = u16::try_from(all.len()).unwrap_or(u16::MAX);
    let refused = |source: SchedulerError| match source {
        // It has the numbers in its name.
        SchedulerError::TooFewCores { ref name, .. } if name == scheduler.name() => {
            PlacingError::Scheduler(source)
        }
        source => PlacingError::Split { scheduler: scheduler.to_string(), cores, source },
    };
    let dispatcher = plan.on_cores(cores, scheduler.plan().receiving()).map_err(refused)?;
    let split = dispatcher.split();
    let dispatchers = split.dispatchers();
    for (given, what) in
        [(config.workers.lanes, "lanes"), (config.workers.count, "workers of lanes")]
    {
        if let Some(given) = given.filter(|given| *given != dispatchers) {
            let scheduler = scheduler.clone();
            return Err(PlacingError::LanesOfDispatcher { scheduler, dispatchers, given, what });
        }
    }
    let most = match serve.scheduling.share_cores && serve.place.is_none() {
        true => u16::MAX,
        false => cores,
    };
    let name = SchedulerName::Dispatcher(dispatcher);
    let workers = usize::from(Scheduler::on_cores(name, most).map_err(refused)?.workers());
    let (network, application) = match serve.place {
        // In turn, where workers share cores.
        None => halves(&all.iter().copied().cycle().take(workers).collect::<Vec<_>>(), dispatchers),
        Some(placement) => {
            let (topology, device) = (Topology::of_this_machine(), device_node(config));
            let is_split = placement.siblings == Siblings::Split;
            if is_split && split.members() != dispatchers {
                return Err(PlacingError::NoPairs { scheduler: scheduler.clone() });
            }
            let wanted = if is_split { usize::from(dispatchers) } else { workers };
            let placed = placement.resolve(&topology, &all, device, Some(wanted))?;
            let halves = match is_split {
                true => (placed.network, placed.application),
                false => halves(&placed.network, dispatchers),
            };
            let (network, application) = (names(&halves.0), names(&halves.1));
            let machine = describe(&topology);
            tracing::info!(
                target: "serve",
                "placed by {placement}: network on {network}, application on {application} of {machine}"
            );
            halves
        }
    };
    let own = &network[..network.len().min(all.len())];
    let placed = WorkersConfig {
        cores: list(own),
        count: (own.len() < network.len()).then_some(dispatchers),
        lanes: Some(dispatchers),
        ..config.workers.clone()
    };
    let members = application.into_iter().take(split.members().into()).map(Some).collect();
    let members = PoolConfig {
        members,
        lanes: dispatchers.into(),
        sharing: PoolSharing::OneLane,
        queueing: match dispatcher.queueing() {
            Queueing::Cfcfs => PoolQueueing::Central(serve.scheduling.outstanding()),
            Queueing::Dfcfs => PoolQueueing::PerMember,
            Queueing::Ws => PoolQueueing::Stealing { burst: BURST },
        },
        depth: DEPTH,
        idle: match config.polling.never_sleeps() {
            true => IdlePolicy::POLLING,
            false => IdlePolicy::SLEEPING,
        },
    };
    Ok(Placed { workers: placed, members: Some(members) })
}

/// The first cores for network workers, and those behind them.
fn halves(cores: &[CoreId], dispatchers: u16) -> (Vec<CoreId>, Vec<CoreId>) {
    let (network, application) = cores.split_at(usize::from(dispatchers).min(cores.len()));
    (network.to_vec(), application.to_vec())
}

fn usable(config: &Config) -> Result<Vec<CoreId>, PlacingError> {
    Ok(match &config.workers.cores {
        Some(list) => list.cores().to_vec(),
        None => CoreSet::available()?.cores().to_vec(),
    })
}

fn names(cores: &[CoreId]) -> String {
    cores.iter().map(|core| core.0.to_string()).collect::<Vec<_>>().join(",")
}

fn list(cores: &[CoreId]) -> Option<CoreList> {
    names(cores).parse().ok()
}

/// A machine in a few words, with what it cannot show.
fn describe(topology: &Topology) -> String {
    let cores = topology.cores();
    let threads = cores.iter().map(Vec::len).max().unwrap_or(0);
    let nodes = topology.nodes().len();
    let mut missing = Vec::new();
    if threads < 2 {
        missing.push("of sharing a core");
    }
    if nodes < 2 {
        missing.push("of far memory");
    }
    let missing = match missing.as_slice() {
        [] => String::new(),
        missing => format!("; effects {} do not arise here", missing.join(" and ")),
    };
    format!("{} cores, {threads} threads each at most, {nodes} nodes{missing}", cores.len())
}

/// The node that the device is next to, where the kernel says.
fn device_node(config: &Config) -> Option<u32> {
    let interface = config.devices.first()?.facts().interface?;
    let path = format!("/sys/class/net/{interface}/device/numa_node");
    // -1 where it is not known.
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use rheostat_serve::scheduler::SchedulerPlan;
    use rheostat_tcp::sched::Split;

    use super::*;
    use crate::app::App;
    use crate::workers::Workers;

    /// What comes of a service with this scheduler, and these settings of workers: cores of lanes, and those of the application.
    fn placed(scheduler: &str, workers: &str) -> Result<(WorkersConfig, PoolConfig), String> {
        placed_by(&format!("\"{scheduler}\""), workers)
    }

    /// The same, with what follows `scheduler =`.
    fn placed_by(scheduler: &str, workers: &str) -> Result<(WorkersConfig, PoolConfig), String> {
        let text = format!(
            "[[device]]\nname = \"lan\"\nkind = \"tap\"\naddress = \"10.0.0.1/24\"\n\
             [serve]\nservice = \"echo\"\nport = 7\nscheduler = {scheduler}\n[workers]\n{workers}"
        );
        let plan =
            SchedulerPlan::dispatcher(Queueing::Ws, |cores| Split::new(cores / 2, cores / 2))
                .receiving_by(Queueing::Cfcfs);
        let registry = App::new().scheduler("halves", plan).registry;
        let (config, _) =
            Config::parse(&text, "file", &registry).map_err(|_| "not read".to_owned())?;
        let serve = config.serve.as_ref().ok_or("no service")?;
        let placed = place(&config, serve).map_err(|error| error.to_string())?;
        Ok((placed.workers, placed.members.ok_or("no members")?))
    }

    #[test]
    fn more_workers_than_cores_and_other_numbers_of_lanes_are_refused() {
        let error = |scheduler, workers| placed(scheduler, workers).err().unwrap_or_default();
        let many = error("dispatcher-100:200", "");
        assert!(many.contains("has 300 workers, but") && many.contains(": use "), "{many}");
        let lanes = error("dispatcher-1:1", "lanes = 2");
        assert!(lanes.contains("2 lanes are wanted"), "{lanes}");
        let workers = error("dispatcher-1:1", "count = 3");
        assert!(workers.contains("3 workers of lanes are wanted"), "{workers}");
        assert!(error("inline-dfcfs", "").contains("no members"));
    }

    #[test]
    fn lanes_have_the_first_cores_and_members_the_next() {
        let cores = CoreSet::available().unwrap().cores().to_vec();
        let [first, second, ..] = cores[..] else { return };
        let workers = format!("cores = \"{},{}\"", first.0, second.0);
        let (workers, members) = placed("dispatcher-1:1-ws", &workers).unwrap();
        let listed = workers.cores.unwrap().cores().to_vec();
        assert_eq!((listed, workers.lanes), (vec![first], Some(1)));
        assert_eq!((members.members, members.lanes), (vec![Some(second)], 1));
        assert_eq!(members.queueing, PoolQueueing::Stealing { burst: BURST });
    }

    #[test]
    fn an_own_scheduler_has_the_split_of_the_cores_and_is_named_where_there_is_none() {
        let cores = CoreSet::available().unwrap().cores().to_vec();
        let [first, second, ..] = cores[..] else { return };
        let workers = format!("cores = \"{},{}\"", first.0, second.0);
        let (placed_on, members) = placed("halves", &workers).unwrap();
        let listed = placed_on.cores.unwrap().cores().to_vec();
        assert_eq!((listed, placed_on.lanes), (vec![first], Some(1)));
        assert_eq!((members.members, members.lanes), (vec![Some(second)], 1));
        assert_eq!(members.queueing, PoolQueueing::Stealing { burst: BURST });
        let one = placed("halves", &format!("cores = \"{}\"", first.0)).err().unwrap();
        assert_eq!(
            one,
            "`halves` on 1 core: dispatcher-0:0 has no network worker: use at least dispatcher-1:1"
        );
        let lanes = placed("halves", &format!("{workers}\nlanes = 2")).err().unwrap();
        assert!(lanes.contains("`halves` has a lane for each of its 1 network workers"), "{lanes}");
    }

    #[test]
    fn workers_that_may_share_cores_take_them_in_turn() {
        let [first, second, ..] = CoreSet::available().unwrap().cores().to_vec()[..] else {
            return;
        };
        let workers = format!("cores = \"{},{}\"", first.0, second.0);
        let shared = |name: &str| placed_by(&format!("\"{name}\"\nshare_cores = true"), &workers);
        let (lanes, members) = shared("dispatcher-2:4-ws+receive-cfcfs").unwrap();
        let listed = lanes.cores.unwrap().cores().to_vec();
        assert_eq!((listed, lanes.lanes), (vec![first, second], Some(2)));
        let of_members = [first, second, first, second].map(Some).to_vec();
        assert_eq!((members.members, members.lanes), (of_members, 2));
        let (lanes, members) = shared("dispatcher-3:3").unwrap();
        let of_lanes = [first, second, first].map(Some).to_vec();
        assert_eq!(Workers::of(&lanes).unwrap().pinned(), of_lanes);
        assert_eq!(members.members, [second, first, second].map(Some).to_vec());
        assert!(placed("dispatcher-2:4", &workers).err().unwrap().contains("but 2 cores"));
    }
}
