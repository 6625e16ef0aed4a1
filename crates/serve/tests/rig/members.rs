//! Members of a pool that handle requests: stepped by a seed, or on threads.

use rheostat_base::choice::Outstanding;
use rheostat_run::{Pool, PoolConfig, PoolQueueing, PoolReport, PoolSharing};
use rheostat_serve::{StepMembers, TcpServer};

/// The ways in which requests wait for members.
pub(crate) const QUEUEING: [PoolQueueing; 4] = [
    PoolQueueing::Central(Outstanding::ONE),
    PoolQueueing::Central(Outstanding::TWO),
    PoolQueueing::PerMember,
    PoolQueueing::Stealing { burst: 4 },
];
/// Requests that are handled between two polls of the lanes at most.
const MOST: u64 = 24;
/// The same between polls of single lanes.
const MOST_BETWEEN_POLLS: u64 = 6;

/// Members of each lane.
#[derive(Clone, Copy)]
pub(crate) struct Members {
    pub(crate) each: usize,
    pub(crate) queueing: PoolQueueing,
    pub(crate) depth: usize,
    /// Names the order in which they work.
    pub(crate) seed: u64,
    /// Whether they are threads, which work when they like.
    pub(crate) are_threads: bool,
}

impl Default for Members {
    fn default() -> Members {
        let queueing = PoolQueueing::default();
        Members { each: 2, queueing, depth: 64, seed: 1, are_threads: false }
    }
}

/// Members at work.
pub(crate) struct RunningMembers {
    crew: Crew,
    random: u64,
    /// Whether stepped members do nothing.
    pub(crate) pause: bool,
}

enum Crew {
    Stepped(StepMembers),
    Threads(Pool),
}

impl Members {
    pub(super) fn start(self, server: &TcpServer, lanes: usize) -> RunningMembers {
        let Members { each, queueing, depth, seed, are_threads } = self;
        let sharing = PoolSharing::OneLane;
        let config =
            PoolConfig { queueing, sharing, ..PoolConfig::new(each * lanes, lanes, depth) };
        let crew = match are_threads {
            true => Crew::Threads(server.start_members(&config).expect("threads")),
            false => Crew::Stepped(server.step_members(&config).expect("members")),
        };
        RunningMembers { crew, random: seed, pause: false }
    }
}

impl RunningMembers {
    /// Handles some requests, as the seed has it.
    pub(super) fn work(&mut self) {
        self.work_up_to(MOST);
    }

    /// As [`RunningMembers::work`], where lanes are polled one by one: a few at a time.
    pub(super) fn work_between_polls(&mut self) {
        self.work_up_to(MOST_BETWEEN_POLLS);
    }

    fn work_up_to(&mut self, most: u64) {
        let count = self.random() % most;
        let choices: Vec<_> = (0..count).map(|_| self.random()).collect();
        match &mut self.crew {
            Crew::Stepped(step) if !self.pause => {
                let _ = choices.into_iter().take_while(|choice| step(*choice)).count();
            }
            Crew::Stepped(_) => {}
            Crew::Threads(_) => std::thread::yield_now(),
        }
    }

    /// What steps members: they do nothing by themselves any more.
    pub(crate) fn take_steps(&mut self) -> StepMembers {
        match std::mem::replace(&mut self.crew, Crew::Stepped(Box::new(|_| false))) {
            Crew::Stepped(steps) => steps,
            Crew::Threads(_) => panic!("threads are not stepped"),
        }
    }

    /// Ends members that are threads.
    pub(crate) fn stop(self, longest: std::time::Duration) -> PoolReport {
        match self.crew {
            Crew::Stepped(_) => PoolReport::default(),
            Crew::Threads(pool) => pool.stop_within(longest),
        }
    }

    fn random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }
}
