//! Which worker does which stage.

use std::ops::Range;

use super::{Dispatcher, Queueing, SchedulerError, SchedulerName, Split, Stage};

/// What a worker is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// All stages.
    Inline,
    /// Packet delivery, TCP in and TCP out; these workers run the application for it.
    Dispatcher {
        /// Its members.
        members: Range<u16>,
    },
    /// The application.
    Member {
        /// The worker it receives requests from, and returns replies to.
        dispatcher: u16,
    },
}

/// A scheduler on a number of workers, which are numbered from 0: network workers first, then their members, those of a network
/// worker next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduler {
    name: SchedulerName,
    workers: u16,
}

impl Scheduler {
    /// The scheduler of this name on up to `cores` cores: an inline one has a worker on each, a dispatcher has D + A workers.
    ///
    /// # Errors
    /// [`SchedulerError::TooFewCores`] if it has more workers than there are cores, [`SchedulerError::NoWorkers`] if there is no core.
    pub fn on_cores(name: SchedulerName, cores: u16) -> Result<Scheduler, SchedulerError> {
        let workers = match name {
            SchedulerName::Inline(_) => u32::from(cores),
            SchedulerName::Dispatcher(dispatcher) => {
                let split = dispatcher.split();
                u32::from(split.dispatchers()) + u32::from(split.members())
            }
        };
        Scheduler::checked(name, workers, cores)
    }

    /// The scheduler of this name with `workers` workers if it is an inline one; the numbers of a dispatcher are in its name.
    ///
    /// # Errors
    /// As [`Scheduler::on_cores`].
    pub fn with_workers(
        name: SchedulerName,
        workers: u16,
        cores: u16,
    ) -> Result<Scheduler, SchedulerError> {
        match name {
            SchedulerName::Inline(_) => Scheduler::checked(name, workers.into(), cores),
            SchedulerName::Dispatcher(..) => Scheduler::on_cores(name, cores),
        }
    }

    fn checked(name: SchedulerName, workers: u32, cores: u16) -> Result<Scheduler, SchedulerError> {
        match u16::try_from(workers) {
            Ok(0) => Err(SchedulerError::NoWorkers(name.to_string())),
            Ok(workers) if workers <= cores => Ok(Scheduler { name, workers }),
            _ => {
                let fix = fitting(name, cores);
                Err(SchedulerError::TooFewCores { name: name.to_string(), workers, cores, fix })
            }
        }
    }

    /// Its name.
    pub fn name(self) -> SchedulerName {
        self.name
    }

    /// How many workers it has, at least 1.
    pub fn workers(self) -> u16 {
        self.workers
    }

    /// What a worker is for; `None` if there is no such worker.
    pub fn role(self, worker: u16) -> Option<Role> {
        if worker >= self.workers {
            return None;
        }
        Some(match self.name {
            SchedulerName::Inline(_) => Role::Inline,
            SchedulerName::Dispatcher(dispatcher) => {
                let split = dispatcher.split();
                match worker.checked_sub(split.dispatchers()) {
                    None => Role::Dispatcher { members: members_of(split, worker) },
                    Some(member) => Role::Member { dispatcher: member / split.members_each() },
                }
            }
        })
    }

    /// Whether a worker does a stage. A thief counts: under `inline-ws` every worker does all stages.
    pub fn does(self, worker: u16, stage: Stage) -> bool {
        match self.role(worker) {
            None => false,
            Some(Role::Inline) => true,
            Some(Role::Dispatcher { .. }) => stage != Stage::Application,
            Some(Role::Member { .. }) => stage == Stage::Application,
        }
    }

    /// Workers that receive packets, and do TCP: the first ones.
    pub fn network_workers(self) -> u16 {
        match self.name {
            SchedulerName::Inline(_) => self.workers,
            SchedulerName::Dispatcher(dispatcher) => dispatcher.split().dispatchers(),
        }
    }

    /// How many receive queues each device has.
    pub fn receive_queues(self) -> u16 {
        match self.name.receiving() {
            Queueing::Cfcfs => 1,
            Queueing::Dfcfs | Queueing::Ws => self.network_workers(),
        }
    }

    /// The workers that a receive queue is for; where workers receive by WS, idle ones take from it, too.
    pub fn receivers(self, queue: u16) -> Range<u16> {
        match self.name.receiving() {
            Queueing::Cfcfs if queue == 0 => 0..self.network_workers(),
            _ if queue < self.receive_queues() => queue..queue + 1,
            _ => 0..0,
        }
    }

    /// Whether several workers take from a receive queue, so that it has a lock.
    pub fn shares_queues(self) -> bool {
        self.name.receiving() != Queueing::Dfcfs
    }

    /// Whether several workers do TCP for a connection, so that it has a lock.
    pub fn shares_connections(self) -> bool {
        self.shares_queues()
    }
}

fn members_of(split: Split, dispatcher: u16) -> Range<u16> {
    let first = split.dispatchers() + dispatcher * split.members_each();
    first..first + split.members_each()
}

/// A scheduler of the same kind for so many cores.
fn fitting(name: SchedulerName, cores: u16) -> String {
    match name {
        SchedulerName::Inline(_) if cores == 0 => {
            "a machine, or a set of cores, with at least 1 core".into()
        }
        SchedulerName::Inline(_) => format!("at most {cores} workers"),
        SchedulerName::Dispatcher(dispatcher) => {
            // As many members as the other cores have room for, in equal parts.
            let most = |dispatchers: u16| {
                let members = cores.checked_sub(dispatchers)? / dispatchers * dispatchers;
                Split::new(dispatchers, members).ok()
            };
            let fits = (1..=dispatcher.split().dispatchers()).rev().find_map(most);
            match fits.map(|split| Dispatcher::new(split, dispatcher.queueing())) {
                // One network worker shares its queue with none.
                Some(own) => own.receiving_by(dispatcher.receiving()).unwrap_or(own).to_string(),
                None => format!("inline-{}", dispatcher.queueing().name()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn on(name: &str, cores: u16) -> Result<Scheduler, SchedulerError> {
        Scheduler::on_cores(name.parse().unwrap(), cores)
    }

    #[test]
    fn workers_of_two_dispatchers_have_their_places() {
        let scheduler = on("dispatcher-2:6-ws", 8).unwrap();
        assert_eq!((scheduler.workers(), scheduler.receive_queues()), (8, 2));
        assert_eq!(scheduler.role(0), Some(Role::Dispatcher { members: 2..5 }));
        assert_eq!(scheduler.role(1), Some(Role::Dispatcher { members: 5..8 }));
        assert_eq!(scheduler.role(4), Some(Role::Member { dispatcher: 0 }));
        assert_eq!(scheduler.role(5), Some(Role::Member { dispatcher: 1 }));
        assert_eq!(scheduler.role(8), None);
        assert_eq!((scheduler.receivers(1), scheduler.receivers(2)), (1..2, 0..0));
    }

    #[test]
    fn network_workers_share_receive_queues_as_inline_workers_do() {
        let queues = |name| {
            let scheduler = on(name, 8).unwrap();
            (scheduler.receive_queues(), scheduler.receivers(0), scheduler.receivers(1))
        };
        assert_eq!(queues("dispatcher-2:6-ws+receive-cfcfs"), (1, 0..2, 0..0));
        assert_eq!(queues("dispatcher-2:6+receive-ws"), (2, 0..1, 1..2));
        assert_eq!(queues("dispatcher-2:6"), (2, 0..1, 1..2));
        let role = on("dispatcher-2:6+receive-cfcfs", 8).unwrap().role(1);
        assert_eq!(role, Some(Role::Dispatcher { members: 5..8 }), "members stay with theirs");
    }

    #[test]
    fn only_workers_that_share_connections_need_locks() {
        let shares = |name| on(name, 8).unwrap().shares_connections();
        assert!(shares("inline-cfcfs") && shares("inline-ws"));
        assert!(
            !shares("inline-dfcfs") && !shares("dispatcher-1:7") && !shares("dispatcher-1:7-ws")
        );
        assert!(shares("dispatcher-2:6-ws+receive-cfcfs") && shares("dispatcher-2:6+receive-ws"));
        assert_eq!(on("inline-cfcfs", 8).unwrap().receivers(0), 0..8);
        assert_eq!(on("inline-ws", 8).unwrap().receivers(3), 3..4);
    }

    #[test]
    fn too_few_cores_are_an_error_that_names_what_fits() {
        let text = |name, cores| on(name, cores).unwrap_err().to_string();
        assert_eq!(
            text("dispatcher-2:6", 7),
            "dispatcher-2:6 has 8 workers, but 7 cores: use dispatcher-2:4"
        );
        assert_eq!(
            text("dispatcher-4:4-dfcfs", 2),
            "dispatcher-4:4-dfcfs has 8 workers, but 2 cores: use dispatcher-1:1-dfcfs"
        );
        let shared = text("dispatcher-4:4-ws+receive-cfcfs", 7);
        assert!(shared.ends_with(": use dispatcher-3:3-ws+receive-cfcfs"), "{shared}");
        let one = text("dispatcher-2:2+receive-ws", 3);
        assert!(one.ends_with(": use dispatcher-1:2"), "{one}");
        assert!(text("dispatcher-1:1-ws", 1).ends_with("but 1 core: use inline-ws"));
        assert_eq!(text("inline-ws", 0), "inline-ws with 0 workers: give it at least 1");
        let error = Scheduler::with_workers("inline-ws".parse().unwrap(), 3, 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "inline-ws has 3 workers, but 2 cores: use at most 2 workers"
        );
        assert!(on("dispatcher-65535:65535", 8).is_err());
    }

    proptest! {
        #[test]
        fn every_stage_has_a_worker_and_members_one_dispatcher(cores in 1_u16..130) {
            let sharing = |name| match name {
                SchedulerName::Dispatcher(dispatcher) => [Queueing::Cfcfs, Queueing::Ws]
                    .map(|model| dispatcher.receiving_by(model).map(SchedulerName::Dispatcher))
                    .into_iter()
                    .flatten()
                    .collect(),
                SchedulerName::Inline(_) => Vec::new(),
            };
            let all = SchedulerName::all(cores);
            let others: Vec<_> = all.iter().copied().flat_map(sharing).collect();
            for name in all.into_iter().chain(others) {
                let scheduler = Scheduler::on_cores(name, cores).unwrap();
                prop_assert_eq!(scheduler.workers(), cores);
                for stage in Stage::ALL {
                    prop_assert!((0..cores).any(|worker| scheduler.does(worker, stage)));
                    prop_assert!(!scheduler.does(cores, stage));
                }
                let mut members = 0;
                for worker in 0..cores {
                    if let Some(Role::Dispatcher { members: own }) = scheduler.role(worker) {
                        members += own.len();
                        for member in own {
                            prop_assert_eq!(
                                scheduler.role(member),
                                Some(Role::Member { dispatcher: worker })
                            );
                        }
                    }
                }
                let all = (0..cores).filter(|w| matches!(scheduler.role(*w), Some(Role::Member { .. })));
                prop_assert_eq!(members, all.count());
                // Each queue has receivers that take packets, and each of these a queue.
                let mut has_queue = vec![false; usize::from(cores)];
                for queue in 0..scheduler.receive_queues() {
                    for worker in scheduler.receivers(queue) {
                        prop_assert!(scheduler.does(worker, Stage::Delivery));
                        has_queue[usize::from(worker)] = true;
                    }
                }
                for worker in 0..cores {
                    let takes = scheduler.does(worker, Stage::Delivery);
                    prop_assert_eq!(has_queue[usize::from(worker)], takes);
                }
            }
        }

        #[test]
        fn what_an_error_names_instead_fits(d in 1_u16..20, each in 1_u16..20, cores in 2_u16..100) {
            let split = Split::new(d, d * each).unwrap();
            let dispatcher = Dispatcher::new(split, Queueing::Ws);
            let shared = dispatcher.receiving_by(Queueing::Cfcfs).unwrap_or(dispatcher);
            let name = SchedulerName::Dispatcher(shared);
            match Scheduler::on_cores(name, cores) {
                Ok(_) => prop_assert!(d + d * each <= cores),
                Err(SchedulerError::TooFewCores { fix, .. }) => {
                    prop_assert!(d + d * each > cores);
                    prop_assert!(Scheduler::on_cores(fix.parse().unwrap(), cores).is_ok());
                }
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }
}
