//! From the text of a configuration, and the flags of a command line, to a checked configuration.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use rheostat_settings::diagnostic::Report;
use rheostat_settings::document;
use rheostat_settings::findings::Findings;
use rheostat_settings::given::GivenValue;
use rheostat_settings::reader::Table;
use thiserror::Error;

use crate::check;
use crate::config::Sections;
use crate::machine::{AnyMachine, Machine};
use crate::overrides::Overrides;
use crate::registry::Registry;

/// Why a file gave no configuration.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read `{path}`: {source}")]
    Read {
        /// The file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file holds mistakes, or the flags do not fit it.
    #[error(transparent)]
    Wrong(#[from] Box<Report>),
}

/// A checked configuration: every value of its [`Sections`] lies in its range, and no two contradict each other. Flags have their
/// place in it already, and it is never changed: a run keeps beside it what it derives from it, such as the cores of its workers.
///
/// ```
/// fn seed(config: &rheostat_control::Config) -> Option<u64> {
///     config.run.seed
/// }
/// ```
///
/// ```compile_fail,E0594
/// fn reseed(config: &mut rheostat_control::Config) {
///     config.run.seed = Some(1);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    sections: Sections,
    /// What the file has.
    given: GivenValue,
    /// Keys and sections of the file that flags have replaced.
    hidden: Vec<String>,
    source: Arc<str>,
}

/// Two are equal if the same is to be run, however their files are written.
impl PartialEq for Config {
    fn eq(&self, other: &Config) -> bool {
        self.sections == other.sections
    }
}

impl Deref for Config {
    type Target = Sections;

    fn deref(&self) -> &Sections {
        &self.sections
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.described_with(&self.workers).fmt(f)
    }
}

impl Config {
    /// Reads the configuration `text`, which may name what is in `registry`; `name` is the file's, for messages. Beside the configuration
    /// comes a report of warnings, mostly empty. Otherwise the report has every mistake found.
    pub fn parse(
        text: &str,
        name: &str,
        registry: &Registry,
    ) -> Result<(Config, Report), Box<Report>> {
        Config::parse_with(text, name, &Overrides::default(), registry)
    }

    /// As [`Config::parse`], with the command line's flags in place of the file's settings. What is
    /// checked is the result; a mistake that a flag brings in names the flag.
    pub fn parse_with(
        text: &str,
        name: &str,
        overrides: &Overrides,
        registry: &Registry,
    ) -> Result<(Config, Report), Box<Report>> {
        Config::parse_for(text, name, None, overrides, &AnyMachine, registry)
    }

    /// The values that the file has, those that flags have replaced included.
    pub fn given(&self) -> &GivenValue {
        &self.given
    }

    /// The keys of the file whose values flags have replaced, such as `device[0].interface`; a section stands for all its keys.
    pub fn hidden(&self) -> &[String] {
        &self.hidden
    }

    /// The text that it was read from. Flags stand in no text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// As [`Config::parse_with`]; `file` is the configuration's own, which nothing may overwrite, and `machine` the
    /// one that is to run it.
    pub fn parse_for(
        text: &str,
        name: &str,
        file: Option<&Path>,
        overrides: &Overrides,
        machine: &dyn Machine,
        registry: &Registry,
    ) -> Result<(Config, Report), Box<Report>> {
        let document = match document::parse(text) {
            Ok(document) => document,
            Err(findings) => return Err(Box::new(Report::new(name, text, findings))),
        };
        let mut findings = Findings::default();
        let mut sections = Table::read_root(&document, &mut findings, |root, findings| {
            Sections::read(root, registry, findings)
        });
        overrides.apply(&mut sections, registry, &mut findings);
        check::across_tables(&sections, file, machine, registry, &mut findings);
        let refused = findings.refuses();
        let hidden = findings.hidden().map(str::to_owned).collect();
        let given = GivenValue::of_table(&document);
        let report = Report::new(name, text, findings.into_list());
        if refused {
            return Err(Box::new(report));
        }
        Ok((Config { sections, given, hidden, source: text.into() }, report))
    }

    /// Reads the file at `path` as [`Config::parse_with`] does its text.
    ///
    /// # Errors
    /// [`LoadError`] when the file cannot be read, or holds mistakes.
    pub fn load(
        path: &Path,
        overrides: &Overrides,
        registry: &Registry,
    ) -> Result<(Config, Report), LoadError> {
        Config::load_for(path, overrides, &AnyMachine, registry)
    }

    /// As [`Config::load`], for `machine`: what it has not is a mistake, and files are compared by what they are.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn load_for(
        path: &Path,
        overrides: &Overrides,
        machine: &dyn Machine,
        registry: &Registry,
    ) -> Result<(Config, Report), LoadError> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => {
                Ok(Config::parse_for(&text, &name, Some(path), overrides, machine, registry)?)
            }
            Err(source) => Err(LoadError::Read { path: name, source }),
        }
    }
}
