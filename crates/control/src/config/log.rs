//! What a running instance logs: levels, by target, and the form of lines.

use std::fmt;
use std::str::FromStr;

use rheostat_settings::suggestion::nearest;
use thiserror::Error;

/// The parts of a running instance that log, each with its summary.
pub const LOG_TARGETS: [(&str, &str); 10] = [
    (
        "control",
        "requests at the control socket: those that change something at info, others at debug",
    ),
    ("files", "files that the run writes and that are incomplete"),
    ("links", "interfaces: carrier, address, MTU, loss and return"),
    ("network", "routes and neighbours of the kernel that are followed, health checks of backends"),
    ("observe", "where metrics are served"),
    ("ports", "external ports of a NAT that run short"),
    ("progress", "a line of metrics per `interval`, at debug"),
    ("reload", "configurations that were put in force or refused"),
    ("run", "start and end of the run"),
    ("serve", "services over TCP: placement and measured work"),
];

/// The most directives of a text: one for each target, with room for those of authors.
const DIRECTIVES: usize = 64;

/// How important a line is. A target logs lines of its level and of more important ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// Something failed, and the run ends or a file is incomplete.
    Error,
    /// Something is wrong, and the run goes on.
    Warn,
    /// Something has changed.
    #[default]
    Info,
    /// What happens regularly, such as metrics and requests.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// All of them with their words.
    const WORDS: [(&str, LogLevel); 7] = [
        ("off", LogLevel::Off),
        ("error", LogLevel::Error),
        ("warn", LogLevel::Warn),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
        ("trace", LogLevel::Trace),
        ("warning", LogLevel::Warn),
    ];

    fn named(word: &str) -> Option<LogLevel> {
        let is_it = |(name, _): &&(&str, LogLevel)| name.eq_ignore_ascii_case(word);
        LogLevel::WORDS.iter().find(is_it).map(|(_, level)| *level)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = LogLevel::WORDS.iter().find(|(_, level)| level == self);
        f.write_str(word.map_or("off", |(word, _)| word))
    }
}

/// The level of each target: `info`, or with exceptions, `info,links=debug,control=off`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTargets {
    level: LogLevel,
    /// In the order of their names.
    exceptions: Vec<(String, LogLevel)>,
}

/// A text that states no levels.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LogTargetsError {
    /// An unknown level.
    #[error("`{0}` is no level: write off, error, warn, info, debug or trace")]
    Level(String),
    /// A directive without a target, such as `=debug`.
    #[error("`{0}` names no target: write, for example, links=debug")]
    NoTarget(String),
    /// An unknown target.
    #[error("`{name}` is no target{hint}: {known} have levels of their own")]
    Target {
        /// The text.
        name: String,
        /// The target that was probably meant.
        hint: String,
        /// All targets.
        known: String,
    },
    /// Two levels for one target, or for all.
    #[error("`{0}` has two levels")]
    Twice(String),
    /// More directives than there can be targets.
    #[error("more than {DIRECTIVES} directives")]
    TooMany,
}

impl LogTargets {
    /// The level of a target.
    pub fn level(&self, target: &str) -> LogLevel {
        let exception = self.exceptions.iter().find(|(name, _)| name == target);
        exception.map_or(self.level, |(_, level)| *level)
    }

    /// The least important level that any target logs.
    pub fn most(&self) -> LogLevel {
        self.exceptions.iter().fold(self.level, |most, (_, level)| most.max(*level))
    }
}

impl FromStr for LogTargets {
    type Err = LogTargetsError;

    fn from_str(text: &str) -> Result<LogTargets, LogTargetsError> {
        let level = |word: &str| {
            LogLevel::named(word).ok_or_else(|| LogTargetsError::Level(word.to_owned()))
        };
        let (mut general, mut exceptions) = (None, Vec::<(String, LogLevel)>::new());
        for (number, directive) in text.split(',').map(str::trim).enumerate() {
            if number >= DIRECTIVES {
                return Err(LogTargetsError::TooMany);
            }
            match directive.split_once('=') {
                None => {
                    if general.replace(level(directive)?).is_some() {
                        return Err(LogTargetsError::Twice("the whole".to_owned()));
                    }
                }
                Some((name, word)) => {
                    let name = name.trim();
                    if name.is_empty() {
                        return Err(LogTargetsError::NoTarget(directive.to_owned()));
                    }
                    let names = || LOG_TARGETS.iter().map(|(name, _)| *name);
                    if !names().any(|known| known == name) {
                        let hint = nearest(name, names());
                        let hint = hint.map_or_else(String::new, |known| {
                            format!(" (did you mean `{known}`?)")
                        });
                        let known = names().collect::<Vec<_>>().join(", ");
                        return Err(LogTargetsError::Target { name: name.to_owned(), hint, known });
                    }
                    if exceptions.iter().any(|(known, _)| known == name) {
                        return Err(LogTargetsError::Twice(name.to_owned()));
                    }
                    exceptions.push((name.to_owned(), level(word.trim())?));
                }
            }
        }
        exceptions.sort();
        Ok(LogTargets { level: general.unwrap_or_default(), exceptions })
    }
}

impl fmt::Display for LogTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.level)?;
        self.exceptions.iter().try_for_each(|(name, level)| write!(f, ",{name}={level}"))
    }
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// [`LogFormat::Journald`] where the journal of systemd reads standard error, [`LogFormat::Text`] otherwise.
    #[default]
    Auto,
    /// A line for people; with its time, unless standard error is a terminal.
    Text,
    /// A JSON object per line.
    Json,
    /// The priority in front, as sd-daemon(3) has it, and no time, which the journal adds.
    Journald,
}

impl LogFormat {
    /// All of them with their words.
    pub const WORDS: [(&str, LogFormat); 4] = [
        ("auto", LogFormat::Auto),
        ("text", LogFormat::Text),
        ("json", LogFormat::Json),
        ("journald", LogFormat::Journald),
    ];
}

/// A word that is no form of log lines.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no format of logs: write auto, text, json or journald")]
pub struct UnknownLogFormat(String);

impl FromStr for LogFormat {
    type Err = UnknownLogFormat;

    fn from_str(word: &str) -> Result<LogFormat, UnknownLogFormat> {
        let format = LogFormat::WORDS.iter().find(|(name, _)| *name == word);
        format.map(|(_, format)| *format).ok_or_else(|| UnknownLogFormat(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(text: &str) -> LogTargets {
        text.parse().unwrap()
    }

    #[test]
    fn a_level_holds_for_all_targets_but_the_exceptions() {
        let targets = targets("warn, links=debug,control=off");
        assert_eq!(targets.level("files"), LogLevel::Warn);
        assert_eq!(targets.level("links"), LogLevel::Debug);
        assert_eq!(targets.level("control"), LogLevel::Off);
        assert_eq!(targets.most(), LogLevel::Debug);
        assert_eq!(targets.to_string(), "warn,control=off,links=debug");
        assert_eq!(self::targets(&targets.to_string()), targets);
        assert_eq!(self::targets("links=trace").level("run"), LogLevel::Info);
        assert_eq!(self::targets("WARNING"), self::targets("warn"));
    }

    #[test]
    fn a_text_that_states_no_levels_is_refused_with_the_way_to_write_it() {
        let many = vec!["info"; DIRECTIVES + 1].join(",");
        for (text, expected) in [
            ("", "`` is no level"),
            ("loud", "write off, error, warn, info, debug or trace"),
            ("links=loud", "`loud` is no level"),
            ("=debug", "names no target"),
            ("link=debug", "did you mean `links`?"),
            ("links=info,links=debug", "`links` has two levels"),
            ("info,debug", "the whole` has two levels"),
            (&*many, "two levels"),
        ] {
            let error = text.parse::<LogTargets>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
