//! What configurations can name.

use rheostat_nf::registry::Registration;
use rheostat_steer::policy::{self, PolicyRegistration};

/// The kinds of things that a configuration can name. A name stands for the first of its kind that was registered.
#[derive(Clone, Debug)]
pub struct Registry {
    /// The functions that a chain can have.
    pub functions: Vec<Registration>,
    /// The policies that move shards between lanes, the default first.
    pub policies: Vec<PolicyRegistration>,
}

impl Registry {
    /// The policies that come along, and no function.
    pub fn new() -> Registry {
        Registry { functions: Vec::new(), policies: policy::ALL.to_vec() }
    }

    /// Adds functions.
    #[must_use]
    pub fn with_functions(mut self, functions: &[Registration]) -> Registry {
        self.functions.extend_from_slice(functions);
        self
    }

    /// Adds a policy.
    #[must_use]
    pub fn with_policy(mut self, policy: PolicyRegistration) -> Registry {
        self.policies.push(policy);
        self
    }
}

impl Default for Registry {
    fn default() -> Registry {
        Registry::new()
    }
}
