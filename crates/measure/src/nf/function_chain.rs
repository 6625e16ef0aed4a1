//! Chains of functions that a program registers, beside the kinds that come along.

use std::fmt;
use std::path::PathBuf;

use rheostat_nf::AnyChain;
use rheostat_nf::registry::{BuildError, FunctionFacts};

use crate::memory::Servers;

/// Makes a chain for so many lanes.
pub type MakeChain = dyn Fn(usize) -> Result<AnyChain, BuildError> + Send + Sync;

/// A chain of registered functions. It lives as long as the program, as the command line names it once.
pub struct FunctionChain {
    /// Its name in rows, by which the same program measures it in another process.
    pub name: String,
    /// The configuration that its functions are of, if they are not as by default.
    pub config: Option<PathBuf>,
    /// The properties of its functions.
    pub facts: Vec<FunctionFacts>,
    /// Makes it.
    pub make: Box<MakeChain>,
}

impl FunctionChain {
    /// Whether it keeps flows in shards, which lanes can own together.
    pub(super) fn owns_flows(&self) -> bool {
        self.facts.iter().any(FunctionFacts::owns_flows)
    }

    /// Whether servers see other endpoints than those of the clients.
    pub(super) fn translates(&self) -> bool {
        self.facts.iter().any(|facts| facts.translated.is_some())
    }

    /// The servers that the flows of its rows go to.
    pub(super) fn servers(&self) -> Servers {
        let is_service =
            |facts: &FunctionFacts| facts.translated.is_none() && !facts.served.is_empty();
        if self.facts.iter().any(|facts| facts.bridges) {
            Servers::Stations
        } else if self.facts.iter().any(is_service) {
            Servers::One
        } else {
            Servers::Many
        }
    }
}

impl PartialEq for FunctionChain {
    fn eq(&self, other: &FunctionChain) -> bool {
        (&self.name, &self.config) == (&other.name, &other.config)
    }
}

impl Eq for FunctionChain {}

impl fmt::Debug for FunctionChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FunctionChain { name, config, .. } = self;
        f.debug_struct("FunctionChain")
            .field("name", name)
            .field("config", config)
            .finish_non_exhaustive()
    }
}
