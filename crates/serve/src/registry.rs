//! Applications by name: what `rheo serve NAME` and `service = "NAME"` of a configuration run. An application states its settings, its
//! facts and how it is made in one [`ApplicationKind`], and registers once; flags, help, reading, checks and descriptions follow.

mod facts;
mod make;
mod program;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rheostat_settings::declared::{DeclaredSettings, Setting};
use rheostat_settings::{Findings, Table};

pub use self::facts::{ApplicationFacts, ApplicationMemory, Opening};
pub use self::make::{Events, IntoProgram, MakeApplication};
pub use self::program::{ApplicationError, ApplicationReport, MadeApplication, Making, Program};
use crate::{echo, http, relay, resp, work};

/// The applications that come with this crate. That of synthetic work calibrates whenever it is made.
pub fn applications() -> Vec<ApplicationRegistration> {
    vec![
        http::registration(),
        resp::registration(),
        echo::registration(),
        relay::registration(),
        work::application(work::calibrated).register(),
    ]
}

/// An application that can be named.
#[derive(Clone)]
pub struct ApplicationRegistration {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Its settings, keys of `[serve]` and flags of `rheo serve NAME`.
    pub settings: Vec<Setting>,
    /// What a flag has done with the settings in place of serving.
    pub action: Option<Action>,
    read: Read,
}

/// A flag of `rheo serve NAME` that does something else than serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The flag, without dashes.
    pub flag: &'static str,
    /// What it does, in one sentence.
    pub help: &'static str,
}

type Read =
    Arc<dyn Fn(&mut Table<'_>, &mut Findings) -> Option<ConfiguredApplication> + Send + Sync>;

impl ApplicationRegistration {
    /// Reads its settings from `[serve]`; `None` when one that is required is missing or wrong.
    pub fn read(
        &self,
        table: &mut Table<'_>,
        findings: &mut Findings,
    ) -> Option<ConfiguredApplication> {
        (self.read)(table, findings)
    }

    /// The same with another summary.
    #[must_use]
    pub fn summarised(self, summary: &'static str) -> ApplicationRegistration {
        ApplicationRegistration { summary, ..self }
    }

    /// Refuses its settings, where another application is served.
    pub fn refuse(&self, table: &mut Table<'_>, findings: &mut Findings) {
        let condition = format!("service = \"{}\"", self.name);
        table.refuse(&self.keys(), &condition, findings);
    }

    /// Lets its settings stand unread, where the application is not known.
    pub fn ignore(&self, table: &mut Table<'_>) {
        table.ignore(&self.keys());
    }

    fn keys(&self) -> Vec<&'static str> {
        self.settings.iter().map(|setting| setting.key).collect()
    }
}

impl fmt::Debug for ApplicationRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplicationRegistration").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for ApplicationRegistration {
    /// By name: a name stands for one application.
    fn eq(&self, other: &ApplicationRegistration) -> bool {
        self.name == other.name
    }
}

/// An application with settings of type `S`, before it is registered.
pub struct ApplicationKind<S> {
    name: &'static str,
    summary: &'static str,
    describe: fn(&S) -> String,
    facts: fn(&S) -> ApplicationFacts,
    check: fn(&S) -> Result<(), ApplicationError>,
    make: Make<S>,
    action: Option<(Action, Act<S>)>,
}

/// Acts on settings; the flag states whether the outcome is to be JSON.
type Act<S> = fn(&S, bool) -> Result<(), ApplicationError>;

type Make<S> = Box<dyn Fn(&S, &Making) -> Result<MadeApplication, ApplicationError> + Send + Sync>;

impl<S: DeclaredSettings> ApplicationKind<S> {
    /// An application that `make` makes of its settings. Its description is what differs from the defaults.
    pub fn new(
        name: &'static str,
        summary: &'static str,
        make: impl Fn(&S, &Making) -> Result<MadeApplication, ApplicationError> + Send + Sync + 'static,
    ) -> ApplicationKind<S> {
        ApplicationKind {
            name,
            summary,
            describe: |settings| settings.differences().iter().map(|d| format!(", {d}")).collect(),
            facts: |_| ApplicationFacts::default(),
            check: |_| Ok(()),
            make: Box::new(make),
            action: None,
        }
    }

    /// Describes its settings for `rheo check`, in words that follow its name: `, files of /srv/www`.
    #[must_use]
    pub fn describing(mut self, describe: fn(&S) -> String) -> ApplicationKind<S> {
        self.describe = describe;
        self
    }

    /// States what checks, memory plans and devices need to know.
    #[must_use]
    pub fn with_facts(mut self, facts: fn(&S) -> ApplicationFacts) -> ApplicationKind<S> {
        self.facts = facts;
        self
    }

    /// Looks at this machine before anything is opened, without a change.
    #[must_use]
    pub fn checking(mut self, check: fn(&S) -> Result<(), ApplicationError>) -> ApplicationKind<S> {
        self.check = check;
        self
    }

    /// Has a flag act on its settings in place of serving; the second argument is whether the outcome is to be JSON.
    #[must_use]
    pub fn acting(mut self, action: Action, act: Act<S>) -> ApplicationKind<S> {
        self.action = Some((action, act));
        self
    }

    /// The registration.
    pub fn register(self) -> ApplicationRegistration {
        let (name, summary) = (self.name, self.summary);
        let action = self.action.map(|(action, _)| action);
        let kind = Arc::new(self);
        let read = move |table: &mut Table<'_>, findings: &mut Findings| {
            let settings = S::read(table, findings)?;
            Some(ConfiguredApplication(Arc::new(Typed { kind: kind.clone(), settings })))
        };
        let (settings, read) = (S::declarations(), Arc::new(read));
        ApplicationRegistration { name, summary, settings, action, read }
    }
}

/// An application with its settings.
#[derive(Clone)]
pub struct ConfiguredApplication(Arc<dyn Configured>);

impl Deref for ConfiguredApplication {
    type Target = dyn Configured;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// The methods of a [`ConfiguredApplication`].
pub trait Configured: Send + Sync {
    /// The name under which the application is registered.
    fn name(&self) -> &'static str;

    /// The settings as they are printed for debugging: two that are equal have the same text.
    fn settings(&self) -> String;

    /// The settings in words that follow the name.
    fn describe(&self) -> String;

    /// What checks, memory plans and devices need to know.
    fn facts(&self) -> ApplicationFacts;

    /// Looks at this machine without a change.
    ///
    /// # Errors
    /// [`ApplicationError`] when the application could not be made here.
    fn check(&self) -> Result<(), ApplicationError>;

    /// Makes the application.
    ///
    /// # Errors
    /// [`ApplicationError`] when that is not possible here.
    fn make(&self, making: &Making) -> Result<MadeApplication, ApplicationError>;

    /// Does what the registration's [`Action`] states; nothing without one.
    ///
    /// # Errors
    /// [`ApplicationError`] when that is not possible here.
    fn act(&self, is_json: bool) -> Result<(), ApplicationError>;
}

/// Its name and its settings in words.
impl fmt::Display for ConfiguredApplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.name(), self.describe())
    }
}

impl fmt::Debug for ConfiguredApplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.settings())
    }
}

impl PartialEq for ConfiguredApplication {
    /// The same application with the same settings.
    fn eq(&self, other: &ConfiguredApplication) -> bool {
        self.name() == other.name() && self.settings() == other.settings()
    }
}

struct Typed<S> {
    kind: Arc<ApplicationKind<S>>,
    settings: S,
}

impl<S: DeclaredSettings> Configured for Typed<S> {
    fn name(&self) -> &'static str {
        self.kind.name
    }

    fn settings(&self) -> String {
        format!("{:?}", self.settings)
    }

    fn describe(&self) -> String {
        (self.kind.describe)(&self.settings)
    }

    fn facts(&self) -> ApplicationFacts {
        (self.kind.facts)(&self.settings)
    }

    fn check(&self) -> Result<(), ApplicationError> {
        (self.kind.check)(&self.settings)
    }

    fn make(&self, making: &Making) -> Result<MadeApplication, ApplicationError> {
        (self.kind.make)(&self.settings, making)
    }

    fn act(&self, is_json: bool) -> Result<(), ApplicationError> {
        self.kind.action.as_ref().map_or(Ok(()), |(_, act)| act(&self.settings, is_json))
    }
}

#[cfg(test)]
mod tests;
