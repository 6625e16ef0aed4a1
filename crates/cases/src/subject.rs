//! The chain that a case is run against.

use std::fmt;

use rheostat_control::config::StateConfig;
use rheostat_control::{Config, Registry};
use rheostat_nf::AnyChain;

use crate::chain::{self, Tested};
use crate::error::CaseError;
use crate::script::Script;

/// The chain that cases are run against.
#[derive(Clone, Copy)]
pub enum Subject<'a> {
    /// The chain and the settings that each case states, of functions with these names.
    Named(&'a Registry),
    /// The chain of a configuration. Its devices are the simulated ones of a case, which has the devices' addresses, the
    /// routes and the neighbours, too, unless it states a network.
    Configured(&'a Registry, &'a Config),
    /// A chain of the caller's own, made for each run with this number of lanes.
    Own(&'a MakeChain),
}

/// Makes a chain for this number of lanes. The error is for people.
pub type MakeChain = dyn Fn(usize) -> Result<AnyChain, String>;

impl Subject<'_> {
    /// The chain for one run of a case.
    pub(crate) fn make(&self, script: &Script, lanes: usize) -> Result<Tested, CaseError> {
        let wrong = |problem| CaseError::unreadable(&script.name, None, problem);
        match self {
            Subject::Named(registry) => {
                let config = chain::configure(script, registry).map_err(wrong)?;
                chain::build(registry, script, &config, lanes).map_err(wrong)
            }
            Subject::Configured(registry, config) => {
                self.refuse_lines(script)?;
                chain::build(registry, script, config, lanes).map_err(wrong)
            }
            Subject::Own(make) => {
                self.refuse_lines(script)?;
                Ok(Tested::new(make(lanes).map_err(wrong)?, &StateConfig::default()))
            }
        }
    }

    /// A chain that is given is not changed by a case.
    fn refuse_lines(&self, script: &Script) -> Result<(), CaseError> {
        let Some(line) = script.first_setting else { return Ok(()) };
        let problem = "the chain is given, so that a case has no line that starts with `chain`, `|`, `state` or \
                       `also shared`";
        Err(CaseError::unreadable(&script.name, Some(line), problem.to_owned()))
    }
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Subject::Named(_) => "Named",
            Subject::Configured(..) => "Configured",
            Subject::Own(_) => "Own",
        })
    }
}
