//! Schedulers by name.

use std::fmt;
use std::str::FromStr;

use super::SchedulerError;

/// How the workers of a stage share what waits before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queueing {
    /// One queue for all workers, first come, first served.
    Cfcfs,
    /// A queue for each worker; a connection has one worker.
    Dfcfs,
    /// A queue for each worker; an idle worker takes from other workers' queues.
    Ws,
}

impl Queueing {
    /// All models.
    pub const ALL: [Queueing; 3] = [Queueing::Cfcfs, Queueing::Dfcfs, Queueing::Ws];

    /// The name within those of schedulers.
    pub fn name(self) -> &'static str {
        match self {
            Queueing::Cfcfs => "cfcfs",
            Queueing::Dfcfs => "dfcfs",
            Queueing::Ws => "ws",
        }
    }

    fn parse(text: &str) -> Option<Queueing> {
        Queueing::ALL.into_iter().find(|queueing| queueing.name() == text)
    }
}

/// Network workers and application workers: D:A, where A is a multiple of D and neither is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    dispatchers: u16,
    members: u16,
}

impl Split {
    /// D network workers and A application workers.
    ///
    /// # Errors
    /// [`SchedulerError`] if either is 0, D > A, or A is not divisible by D.
    pub fn new(dispatchers: u16, members: u16) -> Result<Split, SchedulerError> {
        if dispatchers == 0 || members == 0 {
            return Err(SchedulerError::Empty { dispatchers, members });
        }
        if dispatchers > members {
            return Err(SchedulerError::TooManyDispatchers { dispatchers, members });
        }
        if !members.is_multiple_of(dispatchers) {
            return Err(SchedulerError::Indivisible { dispatchers, members });
        }
        Ok(Split { dispatchers, members })
    }

    /// Network workers.
    pub fn dispatchers(self) -> u16 {
        self.dispatchers
    }

    /// Application workers, of all network workers together.
    pub fn members(self) -> u16 {
        self.members
    }

    /// Application workers of each network worker.
    pub fn members_each(self) -> u16 {
        self.members / self.dispatchers
    }

    /// All splits that use `cores` cores, by number of network workers.
    pub fn all(cores: u16) -> impl Iterator<Item = Split> {
        (1..=cores / 2)
            .filter_map(move |dispatchers| Split::new(dispatchers, cores - dispatchers).ok())
    }
}

/// A scheduler's name: `inline-cfcfs`, `inline-dfcfs`, `inline-ws`, or `dispatcher-D:A` with `-cfcfs` (the default), `-dfcfs` or `-ws`.
///
/// [`FromStr`] parses it, [`fmt::Display`] prints it. The default of a dispatcher is not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchedulerName {
    /// Each worker does all stages.
    Inline(Queueing),
    /// Network workers, and application workers that receive requests from them by the queueing model.
    Dispatcher(Split, Queueing),
}

impl SchedulerName {
    /// All schedulers that use `cores` cores: the inline ones, then each split with each queueing model.
    pub fn all(cores: u16) -> Vec<SchedulerName> {
        let inline = Queueing::ALL.into_iter().map(SchedulerName::Inline);
        let of = |split| {
            Queueing::ALL.into_iter().map(move |model| SchedulerName::Dispatcher(split, model))
        };
        inline.chain(Split::all(cores).flat_map(of)).collect()
    }

    /// How the application stage's workers share what waits before it.
    pub fn queueing(self) -> Queueing {
        match self {
            SchedulerName::Inline(queueing) | SchedulerName::Dispatcher(_, queueing) => queueing,
        }
    }
}

impl fmt::Display for SchedulerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchedulerName::Inline(queueing) => f.pad(&format!("inline-{}", queueing.name())),
            SchedulerName::Dispatcher(Split { dispatchers, members }, queueing) => {
                let suffix = match queueing {
                    Queueing::Cfcfs => "",
                    Queueing::Dfcfs => "-dfcfs",
                    Queueing::Ws => "-ws",
                };
                f.pad(&format!("dispatcher-{dispatchers}:{members}{suffix}"))
            }
        }
    }
}

impl FromStr for SchedulerName {
    type Err = SchedulerError;

    fn from_str(text: &str) -> Result<SchedulerName, SchedulerError> {
        let unknown = || SchedulerError::Unknown(text.to_owned());
        if let Some(queueing) = text.strip_prefix("inline-") {
            return Queueing::parse(queueing).map(SchedulerName::Inline).ok_or_else(unknown);
        }
        let split = text.strip_prefix("dispatcher-").ok_or_else(unknown)?;
        let (split, queueing) = match split.split_once('-') {
            None => (split, Queueing::Cfcfs),
            Some((split, queueing)) => (split, Queueing::parse(queueing).ok_or_else(unknown)?),
        };
        let (dispatchers, members) = split.split_once(':').ok_or_else(unknown)?;
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse::<u16>().ok()).flatten().ok_or_else(unknown)
        };
        let split = Split::new(number(dispatchers)?, number(members)?)?;
        Ok(SchedulerName::Dispatcher(split, queueing))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(cores: u16) -> Vec<String> {
        SchedulerName::all(cores).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn eight_cores_have_the_splits_of_the_thesis() {
        let splits: Vec<_> =
            Split::all(8).map(|split| (split.dispatchers(), split.members())).collect();
        assert_eq!(splits, [(1, 7), (2, 6), (4, 4)]);
        assert_eq!(names(1), ["inline-cfcfs", "inline-dfcfs", "inline-ws"]);
        assert_eq!(names(2)[3..], ["dispatcher-1:1", "dispatcher-1:1-dfcfs", "dispatcher-1:1-ws"]);
    }

    #[test]
    fn the_default_of_a_dispatcher_may_be_written() {
        let name: SchedulerName = "dispatcher-2:6-cfcfs".parse().unwrap();
        assert_eq!(name, "dispatcher-2:6".parse().unwrap());
        assert_eq!(name.to_string(), "dispatcher-2:6");
        assert_eq!(name.queueing(), Queueing::Cfcfs);
        assert_eq!(format!("{name:>16}|"), "  dispatcher-2:6|");
    }

    #[test]
    fn what_is_no_scheduler_is_refused_with_a_fix() {
        for text in [
            "",
            "inline",
            "inline-",
            "inline-fifo",
            "Inline-ws",
            "dispatcher",
            "dispatcher-",
            "dispatcher-4",
            "dispatcher-1:",
            "dispatcher-:7",
            "dispatcher-1:7-",
            "dispatcher-1:7-ws-ws",
            "dispatcher-+1:7",
            "dispatcher-1:70000",
            "dispatcher--1:7",
            "dispatcher- 1:7",
            "inline-ws ",
        ] {
            let error = text.parse::<SchedulerName>().unwrap_err();
            assert_eq!(error, SchedulerError::Unknown(text.to_owned()));
            assert!(
                error
                    .to_string()
                    .contains("inline-cfcfs, inline-dfcfs, inline-ws or dispatcher-D:A")
            );
        }
        let fixes = [
            ("dispatcher-0:4", "dispatcher-0:4 has no network worker: use at least dispatcher-1:1"),
            (
                "dispatcher-1:0",
                "dispatcher-1:0 has no application worker: use at least dispatcher-1:1",
            ),
            ("dispatcher-4:2", "use dispatcher-2:2 or fewer network workers"),
            ("dispatcher-2:5", "use dispatcher-2:4 or dispatcher-2:6"),
            ("dispatcher-3:7-ws", "use dispatcher-3:6 or dispatcher-3:9"),
        ];
        for (text, fix) in fixes {
            let error = text.parse::<SchedulerName>().unwrap_err().to_string();
            assert!(error.ends_with(fix), "{error}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_itself(cores in 1_u16..200) {
            let all = SchedulerName::all(cores);
            for name in &all {
                prop_assert_eq!(name.to_string().parse::<SchedulerName>(), Ok(*name));
            }
            // Divisors of the number of cores, but the number itself: D divides A = cores - D.
            let divisors = (1..cores).filter(|d| cores % d == 0).count();
            prop_assert_eq!(all.len(), 3 * (1 + divisors));
        }

        #[test]
        fn a_fix_that_an_error_names_is_a_scheduler(dispatchers in 0_u16..70, members in 0_u16..70) {
            if let Err(error) = Split::new(dispatchers, members) {
                let text = error.to_string();
                let (_, fix) = text.split_once("use ").unwrap();
                let name = fix.split(' ').find(|word| word.starts_with("dispatcher-")).unwrap();
                prop_assert!(name.parse::<SchedulerName>().is_ok(), "{}", text);
            }
        }

        #[test]
        fn no_text_is_a_panic(text in ".{0,40}", dispatchers in any::<u16>(), members in any::<u16>()) {
            let _ = text.parse::<SchedulerName>();
            for queueing in ["", "-cfcfs", "-dfcfs", "-ws"] {
                if let Err(error) = format!("dispatcher-{dispatchers}:{members}{queueing}").parse::<SchedulerName>() {
                    prop_assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
