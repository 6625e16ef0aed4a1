//! The scheduler that a service runs with.

use std::fmt;
use std::str::FromStr;

use rheostat_run::Sharing;
use rheostat_tcp::sched::{Queueing, SchedulerError, SchedulerName};

/// A scheduler that a service can run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableScheduler(SchedulerName);

impl AvailableScheduler {
    /// Those that use so many cores and whose network workers have a receive queue each, the default first.
    pub fn all(cores: u16) -> Vec<AvailableScheduler> {
        let default = AvailableScheduler::default();
        let others = SchedulerName::all(cores).into_iter().filter(|name| *name != default.0);
        std::iter::once(default).chain(others.map(AvailableScheduler)).collect()
    }

    /// Its name.
    pub fn name(self) -> SchedulerName {
        self.0
    }

    /// How lanes share receive queues, and with them connections: the setting of the run
    /// ([`RuntimeConfig::sharing`](rheostat_run::RuntimeConfig::sharing)).
    pub fn sharing(self) -> Option<Sharing> {
        match self.0.receiving() {
            Queueing::Cfcfs => Some(Sharing::CENTRAL),
            Queueing::Ws => Some(Sharing::STEALING),
            Queueing::Dfcfs => None,
        }
    }
}

impl Default for AvailableScheduler {
    fn default() -> AvailableScheduler {
        AvailableScheduler(SchedulerName::Inline(Queueing::Dfcfs))
    }
}

impl From<SchedulerName> for AvailableScheduler {
    fn from(name: SchedulerName) -> AvailableScheduler {
        AvailableScheduler(name)
    }
}

impl FromStr for AvailableScheduler {
    type Err = SchedulerError;

    fn from_str(text: &str) -> Result<AvailableScheduler, SchedulerError> {
        text.parse().map(AvailableScheduler)
    }
}

impl fmt::Display for AvailableScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_are_read_as_they_are_written() {
        for name in [
            "inline-dfcfs",
            "dispatcher-1:1",
            "dispatcher-2:6-ws",
            "dispatcher-2:6-dfcfs+receive-ws",
        ] {
            let scheduler: AvailableScheduler = name.parse().unwrap();
            assert_eq!(scheduler.to_string(), name);
        }
        let long: AvailableScheduler = "dispatcher-1:1-cfcfs".parse().unwrap();
        assert_eq!(long.to_string(), "dispatcher-1:1");
        assert_eq!("inline-dfcfs".parse(), Ok(AvailableScheduler::default()));
    }

    #[test]
    fn the_default_is_the_first_of_all_that_use_the_cores() {
        let names = |cores| {
            let all = AvailableScheduler::all(cores).into_iter();
            all.map(|scheduler| scheduler.to_string()).collect::<Vec<_>>()
        };
        assert_eq!((names(1).len(), names(1)[0].as_str()), (3, "inline-dfcfs"));
        assert_eq!(names(2)[0], "inline-dfcfs");
        for name in ["dispatcher-1:1", "dispatcher-1:1-dfcfs", "dispatcher-1:1-ws"] {
            assert!(names(2).contains(&name.to_owned()), "{name}");
        }
        assert!(names(8).contains(&"dispatcher-2:6-ws".to_owned()));
    }

    #[test]
    fn lanes_share_queues_under_a_central_one_and_when_they_steal() {
        let sharing = |name: &str| name.parse::<AvailableScheduler>().unwrap().sharing();
        let shared = [None, Some(Sharing::CENTRAL), Some(Sharing::STEALING)];
        assert_eq!(["inline-dfcfs", "inline-cfcfs", "inline-ws"].map(sharing), shared);
        let names = [
            "dispatcher-2:4-ws",
            "dispatcher-2:4+receive-cfcfs",
            "dispatcher-2:4-dfcfs+receive-ws",
        ];
        assert_eq!(names.map(sharing), shared);
    }
}
