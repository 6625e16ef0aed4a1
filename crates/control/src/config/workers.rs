//! `[workers]`: the cores that work, and the lanes they run.

use std::fmt;
use std::str::FromStr;

use rheostat_base::CoreId;
use rheostat_kernel::priority::Priority;
use thiserror::Error;

use rheostat_settings::declared::DeclaredSettings;
use rheostat_settings::declared::kind::{boolean, count, integer, optional, parsed};
use rheostat_settings::diagnostic::Finding;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

/// The most lanes a run may have.
pub const MAX_LANES: u16 = 64;
/// The most workers a run may have.
pub const MAX_WORKERS: u16 = 128;

rheostat_settings::settings! {
    /// Which cores work, and on how many lanes.
    #[derive(Eq)]
    pub struct WorkersConfig: Default {
        /// The cores, one worker pinned to each; without it, every core the process may use.
        cores: Option<CoreList> = optional(parsed("core numbers such as \"0-3,6\"").noun("numbers of cores"));
        /// How many workers; without it, one per core. More than cores share these in turn.
        count: Option<u16> = optional(integer(1..=u64::from(MAX_WORKERS))), value("N"), flag("workers");
        /// How many lanes; without it, one per worker.
        lanes: Option<u16> = optional(integer(1..=u64::from(MAX_LANES))), value("N");
        /// How many lanes receive from one queue of each device: 1, or at least 2, which then claim its packets as they come. A divisor
        /// of the number of lanes; where that is not given, it is rounded up.
        queue_sharing: u16 = integer(1..=u64::from(MAX_LANES)), default(1);
        /// Whether packets leave in the order in which the lanes of a queue have claimed them.
        ordered: bool = boolean(), default(false), with("queue_sharing = 2");
        /// How many lanes are offloading lanes, as `0-4` or `2`: no fewer than the first number, no more than the second.
        offloading: OffloadingLanes = parsed("numbers of lanes such as \"0-4\"").noun("number of lanes, or range"), default(OffloadingLanes::default());
        /// Packets that the ring from one lane to another holds; rounded up to a power of two.
        handoff: usize = count(64..=65_536), default(1_024);
        /// The priority of the workers' threads, as fifo:PRIORITY (SCHED_FIFO) or nice:VALUE; that of the process without it.
        priority: Option<Priority> =
            optional(parsed("\"fifo:10\" (SCHED_FIFO, 1 to 99) or \"nice:-20\" (-20 to 19)"));
    }
}

impl WorkersConfig {
    /// Reads the table, and refuses settings that contradict each other.
    pub(crate) fn checked(table: &mut Table<'_>, findings: &mut Findings) -> WorkersConfig {
        let workers = WorkersConfig::read(table, findings).unwrap_or_default();
        if workers.ordered && workers.queue_sharing <= 1 && findings.clean("workers") {
            let message = "packets of lanes that have a queue each are in order anyway";
            let finding = Finding::mistake("workers.ordered", message)
                .at(findings.place("workers.ordered"), "no lanes share a queue")
                .help("add `queue_sharing = 2`, or remove `ordered`");
            findings.push(finding);
        }
        workers
    }
}

/// How many lanes work on single flows of others, as `0-4` or `2`: no fewer than the first number, no more than the second. Where
/// no policy decides, there are as many as may be, up to half of all lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OffloadingLanes {
    /// No fewer.
    pub least: u16,
    /// No more.
    pub most: u16,
}

/// Why a number of offloading lanes could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OffloadingLanesError {
    /// Neither a number nor a range.
    #[error("`{0}` is neither a number of lanes nor a range of them")]
    Item(String),
    /// A range whose end comes before its start.
    #[error("`{0}` ends before it starts")]
    Reversed(String),
    /// More than half of the most lanes that a run may have.
    #[error("{0} lanes are more than half of {MAX_LANES}, the most that a run may have")]
    TooMany(u16),
}

impl OffloadingLanes {
    /// How many of `lanes` lanes.
    pub fn of(self, lanes: usize) -> usize {
        usize::from(self.most).min(lanes / 2)
    }
}

impl FromStr for OffloadingLanes {
    type Err = OffloadingLanesError;

    fn from_str(text: &str) -> Result<OffloadingLanes, OffloadingLanesError> {
        let number = |text: &str| text.trim().parse::<u16>();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (Ok(least), Ok(most)) = (number(first), number(last)) else {
            return Err(OffloadingLanesError::Item(text.to_owned()));
        };
        if most < least {
            return Err(OffloadingLanesError::Reversed(text.to_owned()));
        }
        if most > MAX_LANES / 2 {
            return Err(OffloadingLanesError::TooMany(most));
        }
        Ok(OffloadingLanes { least, most })
    }
}

impl fmt::Display for OffloadingLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OffloadingLanes { least, most } = self;
        if least == most { write!(f, "{most}") } else { write!(f, "{least}-{most}") }
    }
}

/// Distinct cores, ascending, written `0-3,6`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreList(Vec<CoreId>);

/// Why a list of cores could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CoreListError {
    /// No core is named.
    #[error("no core is named")]
    Empty,
    /// Neither a number nor a range.
    #[error("`{0}` is neither a core number nor a range of them")]
    Item(String),
    /// A range whose end comes before its start.
    #[error("`{0}` ends before it starts")]
    Reversed(String),
    /// The same core twice.
    #[error("core {0} is named twice")]
    Repeated(u16),
    /// Beyond what any kernel numbers.
    #[error("core {0} is beyond {MAX_CORE}, the last that Linux can number")]
    Beyond(u16),
}

/// `CONFIG_NR_CPUS` of Linux is at most 8,192; the affinity mask this project uses ends at 1,024.
const MAX_CORE: u16 = 1_023;

impl CoreList {
    /// The cores, ascending.
    pub fn cores(&self) -> &[CoreId] {
        &self.0
    }
}

impl FromStr for CoreList {
    type Err = CoreListError;

    fn from_str(text: &str) -> Result<CoreList, CoreListError> {
        let mut cores = Vec::new();
        for item in text.split(',').map(str::trim) {
            let number = |text: &str| text.trim().parse::<u16>();
            let bounds = match item.split_once('-') {
                Some((first, last)) => number(first).and_then(|first| Ok((first, number(last)?))),
                None => number(item).map(|core| (core, core)),
            };
            let (first, last) = match bounds {
                Ok(bounds) => bounds,
                Err(_) if text.trim().is_empty() => return Err(CoreListError::Empty),
                Err(_) => return Err(CoreListError::Item(item.to_owned())),
            };
            if last > MAX_CORE || first > MAX_CORE {
                return Err(CoreListError::Beyond(first.max(last)));
            }
            if last < first {
                return Err(CoreListError::Reversed(item.to_owned()));
            }
            cores.extend((first..=last).map(CoreId));
        }
        cores.sort_unstable();
        match cores.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(CoreListError::Repeated(pair[0].0)),
            None => Ok(CoreList(cores)),
        }
    }
}

impl fmt::Display for CoreList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a.0 + 1 == b.0);
        for (index, run) in runs.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match run {
                [only] => write!(f, "{comma}{}", only.0)?,
                [first, .., last] => write!(f, "{comma}{}-{}", first.0, last.0)?,
                [] => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_lists_read_and_write() {
        let list: CoreList = " 6, 0-3 ".parse().unwrap();
        assert_eq!(list.cores(), [0, 1, 2, 3, 6].map(CoreId));
        assert_eq!(list.to_string(), "0-3,6");
        assert_eq!("7".parse::<CoreList>().unwrap().to_string(), "7");
    }

    #[test]
    fn numbers_of_offloading_lanes_read_and_write() {
        let read = |text: &str| text.parse::<OffloadingLanes>();
        assert_eq!(read(" 0 - 4 "), Ok(OffloadingLanes { least: 0, most: 4 }));
        assert_eq!(read("2").unwrap().to_string(), "2");
        assert_eq!(read("0-4").unwrap().to_string(), "0-4");
        assert_eq!(read("0-x"), Err(OffloadingLanesError::Item("0-x".into())));
        assert_eq!(read("4-0"), Err(OffloadingLanesError::Reversed("4-0".into())));
        assert_eq!(read("0-33"), Err(OffloadingLanesError::TooMany(33)));
        let lanes = OffloadingLanes { least: 0, most: 4 };
        assert_eq!([1, 2, 5, 16].map(|count| lanes.of(count)), [0, 1, 2, 4]);
    }

    #[test]
    fn core_lists_say_what_is_wrong() {
        let error = |text: &str| text.parse::<CoreList>().unwrap_err();
        assert_eq!(error(""), CoreListError::Empty);
        assert_eq!(error("0,,1"), CoreListError::Item(String::new()));
        assert_eq!(error("0-x"), CoreListError::Item("0-x".into()));
        assert_eq!(error("3-1"), CoreListError::Reversed("3-1".into()));
        assert_eq!(error("0-3,2"), CoreListError::Repeated(2));
        assert_eq!(error("0-65535"), CoreListError::Beyond(65_535));
    }
}
