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

/// Network workers with their application workers, and the queueing model before either. The two models are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dispatcher {
    split: Split,
    receiving: Queueing,
    queueing: Queueing,
}

impl Dispatcher {
    /// The beginning of the names of dispatchers.
    pub const PREFIX: &str = "dispatcher-";

    /// Network workers that receive packets by dFCFS, and application workers that receive requests from them by this model.
    pub fn new(split: Split, queueing: Queueing) -> Dispatcher {
        Dispatcher { split, receiving: Queueing::Dfcfs, queueing }
    }

    /// The same with network workers that receive packets by this model.
    ///
    /// # Errors
    /// [`SchedulerError::OneReceiver`] if there is one network worker, and the model is not dFCFS.
    pub fn receiving_by(self, receiving: Queueing) -> Result<Dispatcher, SchedulerError> {
        let Split { dispatchers, members } = self.split;
        if dispatchers == 1 && receiving != Queueing::Dfcfs {
            let queueing = self.queueing;
            return Err(SchedulerError::OneReceiver { members, queueing, receiving });
        }
        Ok(Dispatcher { receiving, ..self })
    }

    /// The numbers of its workers.
    pub fn split(self) -> Split {
        self.split
    }

    /// How network workers share received packets.
    pub fn receiving(self) -> Queueing {
        self.receiving
    }

    /// How the application workers of a network worker share its requests.
    pub fn queueing(self) -> Queueing {
        self.queueing
    }
}

impl fmt::Display for Dispatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Split { dispatchers, members } = self.split;
        f.write_str(&dispatcher_name((dispatchers, members), self.queueing, self.receiving))
    }
}

/// The name of a dispatcher with these numbers of workers, whether there is one or not.
pub(super) fn dispatcher_name(
    (dispatchers, members): (u16, u16),
    queueing: Queueing,
    receiving: Queueing,
) -> String {
    let mut name = format!("{}{dispatchers}:{members}", Dispatcher::PREFIX);
    if queueing != Queueing::Cfcfs {
        name += "-";
        name += queueing.name();
    }
    if receiving != Queueing::Dfcfs {
        name += RECEIVE;
        name += receiving.name();
    }
    name
}

/// What stands in a dispatcher's name before the model by which network workers receive.
const RECEIVE: &str = "+receive-";

/// A scheduler's name: `inline-cfcfs`, `inline-dfcfs`, `inline-ws`, or `dispatcher-D:A` with `-cfcfs` (the default), `-dfcfs` or `-ws`
/// for the application workers, and behind that `+receive-cfcfs`, `+receive-dfcfs` (the default) or `+receive-ws` for the network
/// workers.
///
/// [`FromStr`] parses it, [`fmt::Display`] prints it. The defaults of a dispatcher are not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchedulerName {
    /// Each worker does all stages.
    Inline(Queueing),
    /// Network workers, and application workers that receive requests from them.
    Dispatcher(Dispatcher),
}

impl SchedulerName {
    /// All schedulers that use `cores` cores and whose network workers have a receive queue each: the inline ones, then each split
    /// with each queueing model.
    pub fn all(cores: u16) -> Vec<SchedulerName> {
        let inline = Queueing::ALL.into_iter().map(SchedulerName::Inline);
        let of = |split| Queueing::ALL.into_iter().map(move |model| Dispatcher::new(split, model));
        let dispatchers = Split::all(cores).flat_map(of).map(SchedulerName::Dispatcher);
        inline.chain(dispatchers).collect()
    }

    /// How the application stage's workers share what waits before it.
    pub fn queueing(self) -> Queueing {
        match self {
            SchedulerName::Inline(queueing) => queueing,
            SchedulerName::Dispatcher(dispatcher) => dispatcher.queueing,
        }
    }

    /// How the workers that receive packets share them.
    pub fn receiving(self) -> Queueing {
        match self {
            SchedulerName::Inline(queueing) => queueing,
            SchedulerName::Dispatcher(dispatcher) => dispatcher.receiving,
        }
    }

    /// The scheduler of the same kind whose workers receive by dFCFS, so that each has connections of its own.
    pub fn with_own_queues(self) -> SchedulerName {
        match self {
            SchedulerName::Inline(_) => SchedulerName::Inline(Queueing::Dfcfs),
            SchedulerName::Dispatcher(dispatcher) => {
                let own = Dispatcher { receiving: Queueing::Dfcfs, ..dispatcher };
                SchedulerName::Dispatcher(own)
            }
        }
    }
}

/// Each worker does all stages for connections of its own.
impl Default for SchedulerName {
    fn default() -> SchedulerName {
        SchedulerName::Inline(Queueing::Dfcfs)
    }
}

impl fmt::Display for SchedulerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SchedulerName::Inline(queueing) => f.pad(&format!("inline-{}", queueing.name())),
            SchedulerName::Dispatcher(dispatcher) => f.pad(&dispatcher.to_string()),
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
        match text.parse() {
            Ok(dispatcher) => Ok(SchedulerName::Dispatcher(dispatcher)),
            Err(SchedulerError::NotDispatcher(_)) => Err(unknown()),
            Err(error) => Err(error),
        }
    }
}

impl FromStr for Dispatcher {
    type Err = SchedulerError;

    fn from_str(text: &str) -> Result<Dispatcher, SchedulerError> {
        let unknown = || SchedulerError::NotDispatcher(text.to_owned());
        let rest = text.strip_prefix(Dispatcher::PREFIX).ok_or_else(unknown)?;
        let (rest, receiving) = match rest.split_once(RECEIVE) {
            None => (rest, Queueing::Dfcfs),
            Some((rest, receiving)) => (rest, Queueing::parse(receiving).ok_or_else(unknown)?),
        };
        let (split, queueing) = match rest.split_once('-') {
            None => (rest, Queueing::Cfcfs),
            Some((split, queueing)) => (split, Queueing::parse(queueing).ok_or_else(unknown)?),
        };
        let (dispatchers, members) = split.split_once(':').ok_or_else(unknown)?;
        let number = |text: &str| {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse::<u16>().ok()).flatten().ok_or_else(unknown)
        };
        let split = Split::new(number(dispatchers)?, number(members)?)?;
        Dispatcher::new(split, queueing).receiving_by(receiving)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs() -> impl Iterator<Item = (Queueing, Queueing)> {
        let with = |queueing| Queueing::ALL.into_iter().map(move |receiving| (queueing, receiving));
        Queueing::ALL.into_iter().flat_map(with)
    }

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
    fn the_two_models_of_a_dispatcher_are_independent() {
        let name: SchedulerName = "dispatcher-2:4-ws+receive-cfcfs".parse().unwrap();
        assert_eq!((name.queueing(), name.receiving()), (Queueing::Ws, Queueing::Cfcfs));
        assert_eq!(name.with_own_queues().to_string(), "dispatcher-2:4-ws");
        let long: SchedulerName = "dispatcher-2:4-cfcfs+receive-dfcfs".parse().unwrap();
        assert_eq!(
            (long.to_string().as_str(), long.receiving()),
            ("dispatcher-2:4", Queueing::Dfcfs)
        );
        for (queueing, receiving) in pairs() {
            let text = format!("dispatcher-2:4-{}+receive-{}", queueing.name(), receiving.name());
            let name: SchedulerName = text.parse().unwrap();
            assert_eq!((name.queueing(), name.receiving()), (queueing, receiving));
            assert_eq!(name.to_string().parse(), Ok(name));
        }
    }

    #[test]
    fn one_network_worker_shares_its_queue_with_none() {
        for (queueing, receiving) in pairs() {
            let text = format!("dispatcher-1:7-{}+receive-{}", queueing.name(), receiving.name());
            let parsed = text.parse::<SchedulerName>();
            if receiving == Queueing::Dfcfs {
                assert!(parsed.is_ok());
                continue;
            }
            let error = SchedulerError::OneReceiver { members: 7, queueing, receiving };
            assert_eq!(parsed, Err(error.clone()));
            let text = error.to_string();
            let fixes = text.split(' ').filter(|word| word.starts_with("dispatcher-"));
            let fixes: Vec<_> = fixes.map(|word| word.trim_end_matches(',')).skip(1).collect();
            assert_eq!(fixes.len(), 2, "{text}");
            for fix in fixes {
                assert_eq!(fix.parse().map(SchedulerName::queueing), Ok(queueing), "{text}");
            }
        }
        let error = "dispatcher-1:7-ws+receive-cfcfs".parse::<SchedulerName>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "dispatcher-1:7-ws+receive-cfcfs has one network worker, which has no other to share received packets with: use \
             dispatcher-1:7-ws, or at least two network workers, as in dispatcher-2:6-ws+receive-cfcfs"
        );
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
            "inline-dfcfs+receive-ws",
            "dispatcher-2:4+receive",
            "dispatcher-2:4+receive-",
            "dispatcher-2:4+receive-fifo",
            "dispatcher-2:4+receive-ws-ws",
            "dispatcher-2:4+receive-ws+receive-ws",
            "dispatcher-2:4-+receive-ws",
            "dispatcher-+receive-ws",
            "+receive-ws",
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
            for queueing in ["", "-cfcfs", "-dfcfs", "-ws", "+receive-ws", "-ws+receive-cfcfs"] {
                if let Err(error) = format!("dispatcher-{dispatchers}:{members}{queueing}").parse::<SchedulerName>() {
                    prop_assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
