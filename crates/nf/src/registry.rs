//! Functions by name: what a program knows of each before a configuration names it, and the function that a configuration
//! has made of it.

mod build;
mod facts;
mod from_settings;
mod rules;
mod static_chain;

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rheostat_settings::declared::Setting;
use rheostat_settings::device::Device;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

pub use build::{BuildCx, BuildError, Built, Handed, Lines, PortShare, PortShares};
pub use facts::{FlowPlace, FunctionFacts};
pub use from_settings::FromSettings;
pub use rules::{Rule, RuleCount, RuleCounters, RuleList, RuleUse, Tally};
pub use static_chain::{StaticChain, alone, chain_of, next_chain_of, pair};

/// A function that configurations can name.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// Its name in `[chain]`, and that of its settings in `[function]`.
    pub name: &'static str,
    /// Its purpose, in one sentence without subject and full stop.
    pub summary: &'static str,
    /// The keys of its settings, as `rheo check --explain` and the reference show them.
    pub keys: fn() -> Vec<Setting>,
    /// Reads its settings, if it has any.
    pub read: Option<Read>,
    /// Its settings in a chain whose file has no table for them.
    pub default: DefaultSettings,
}

/// Reads `[function.NAME]`, which may refer to devices. Notes all mistakes, and returns `None` when they leave no settings.
pub type Read = fn(&mut Table<'_>, &[Device], &mut Findings) -> Option<Arc<dyn FunctionSettings>>;

/// The settings of a function whose table the file does not have.
///
/// # Errors
/// [`Missing`] when the function cannot do without settings.
pub type DefaultSettings = fn(&[Device]) -> Result<Arc<dyn FunctionSettings>, Missing>;

/// Settings that a function cannot do without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The function as a noun without article, such as `NAT`.
    pub noun: &'static str,
    /// The mistake, such as "the NAT has no external address".
    pub message: &'static str,
    /// The lines to add.
    pub help: String,
}

/// What a function is configured to do. Every value lies in its range, and no two contradict each other.
pub trait FunctionSettings: Any + SameSettings + fmt::Debug + Send + Sync {
    /// Properties of the function that other parts of a configuration depend on.
    fn facts(&self) -> FunctionFacts;

    /// Builds the function.
    ///
    /// # Errors
    /// [`BuildError`] when it cannot be built as configured.
    fn build(&self, cx: &BuildCx<'_>) -> Result<Built, BuildError>;

    /// These settings in a chain with `others`, if they have to be different there.
    fn among(&self, _others: &[&FunctionFacts]) -> Option<Arc<dyn FunctionSettings>> {
        None
    }

    /// Writes the settings in words, as whole lines; the first follows the function's name.
    ///
    /// # Errors
    /// Those of `f`.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The file that the function logs to, if it logs.
    fn log(&self) -> Option<&Path> {
        None
    }

    /// The keys of these settings that are different in `next`, settings of the same function, and that cannot change while the
    /// function runs. Without it, all can.
    fn fixed(&self, _next: &dyn FunctionSettings) -> Vec<FixedKey> {
        Vec::new()
    }

    /// Notes warnings about the settings, once the file was read as a whole.
    fn check(&self, _findings: &mut Findings) {}
}

/// A key of a function's settings that cannot change while the function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedKey {
    /// The key in the function's table, such as `external`.
    pub key: &'static str,
    /// Why it cannot, as a clause without subject and full stop, such as "mappings would lose their ports".
    pub reason: &'static str,
}

/// A function of a chain with its settings.
#[derive(Clone)]
pub struct ConfiguredFunction {
    name: &'static str,
    settings: Arc<dyn FunctionSettings>,
}

impl ConfiguredFunction {
    /// The function that was registered under `name`, with these settings.
    pub fn new(name: &'static str, settings: Arc<dyn FunctionSettings>) -> ConfiguredFunction {
        ConfiguredFunction { name, settings }
    }

    /// Its name in the chain.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its settings.
    pub fn settings(&self) -> &dyn FunctionSettings {
        &*self.settings
    }

    /// Its settings, if they are of this type.
    pub fn get<T: FunctionSettings>(&self) -> Option<&T> {
        let settings: &dyn Any = &*self.settings;
        settings.downcast_ref()
    }

    /// The file that the function logs to, if it logs.
    pub fn log(&self) -> Option<&Path> {
        self.settings.log()
    }

    /// The keys of its settings that are different in `next`, the same function, and that cannot change while it runs.
    pub fn fixed(&self, next: &ConfiguredFunction) -> Vec<FixedKey> {
        self.settings.fixed(&*next.settings)
    }

    /// Properties that other parts of a configuration depend on.
    pub fn facts(&self) -> FunctionFacts {
        self.settings.facts()
    }
}

impl PartialEq for ConfiguredFunction {
    fn eq(&self, other: &ConfiguredFunction) -> bool {
        self.name == other.name && self.settings.is_same(&*other.settings)
    }
}

impl fmt::Debug for ConfiguredFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.name).field(&self.settings).finish()
    }
}

/// Comparison of settings without their types, which all settings have that can be compared.
pub trait SameSettings {
    /// Whether `other` are the same settings of the same function.
    fn is_same(&self, other: &dyn FunctionSettings) -> bool;
}

impl<T: FunctionSettings + PartialEq> SameSettings for T {
    fn is_same(&self, other: &dyn FunctionSettings) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }
}
