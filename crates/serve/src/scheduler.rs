//! The schedulers that services of this build run with, of all that have names.

use std::fmt;
use std::str::FromStr;

use rheostat_tcp::sched::{Queueing, SchedulerError, SchedulerName};
use thiserror::Error;

/// A scheduler that a service can run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvailableScheduler(SchedulerName);

/// Inline schedulers that there are; of dispatchers there are all.
const INLINE: [SchedulerName; 1] = [SchedulerName::Inline(Queueing::Dfcfs)];

/// Why a service cannot run with a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SchedulerChoiceError {
    /// It has no such name.
    #[error("{0}")]
    Name(#[from] SchedulerError),
    /// It can be named, and not run.
    #[error("services of this build do not run with `{name}`; available: {available}")]
    NotAvailable {
        /// The scheduler.
        name: SchedulerName,
        /// Those there are.
        available: String,
    },
}

impl AvailableScheduler {
    /// Those that use so many cores, the default first.
    pub fn all(cores: u16) -> Vec<AvailableScheduler> {
        let default = AvailableScheduler::default();
        let others = SchedulerName::all(cores).into_iter().filter(|name| *name != default.0);
        let others = others.filter_map(|name| name.to_string().parse().ok());
        std::iter::once(default).chain(others).collect()
    }

    /// Its name.
    pub fn name(self) -> SchedulerName {
        self.0
    }
}

impl Default for AvailableScheduler {
    fn default() -> AvailableScheduler {
        AvailableScheduler(INLINE[0])
    }
}

impl FromStr for AvailableScheduler {
    type Err = SchedulerChoiceError;

    fn from_str(text: &str) -> Result<AvailableScheduler, SchedulerChoiceError> {
        let name = text.parse::<SchedulerName>()?;
        if matches!(name, SchedulerName::Dispatcher(..)) || INLINE.contains(&name) {
            return Ok(AvailableScheduler(name));
        }
        let mut available = INLINE.map(|name| name.to_string()).join(", ");
        available += ", dispatcher-D:A with -cfcfs, -dfcfs or -ws";
        Err(SchedulerChoiceError::NotAvailable { name, available })
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
        for name in ["inline-dfcfs", "dispatcher-1:1", "dispatcher-2:6-ws", "dispatcher-1:7-dfcfs"]
        {
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
        assert_eq!((names(1).len(), names(1)[0].as_str()), (INLINE.len(), "inline-dfcfs"));
        assert_eq!(names(2)[0], "inline-dfcfs");
        for name in ["dispatcher-1:1", "dispatcher-1:1-dfcfs", "dispatcher-1:1-ws"] {
            assert!(names(2).contains(&name.to_owned()), "{name}");
        }
        assert!(names(8).contains(&"dispatcher-2:6-ws".to_owned()));
    }

    #[test]
    fn a_scheduler_that_is_not_available_is_answered_with_those_that_are() {
        for name in ["inline-cfcfs", "inline-ws"] {
            let error = name.parse::<AvailableScheduler>().unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("available: inline-dfcfs"), "{error}");
        }
        let unknown = "inline".parse::<AvailableScheduler>();
        assert!(matches!(unknown, Err(SchedulerChoiceError::Name(_))));
    }
}
