//! What configurations can name.

use rheostat_io::DeviceRegistration;
use rheostat_nf::registry::{Registration, StaticChain};
use rheostat_run::poll::{self, PollingRegistration};
use rheostat_serve::registry::ApplicationRegistration;
use rheostat_serve::scheduler::{self, SchedulerRegistration};
use rheostat_steer::policy::{self, PolicyRegistration};

/// The kinds of things that a configuration can name. A name stands for the first of its kind that was registered.
#[derive(Clone, Debug)]
pub struct Registry {
    /// The functions that a chain can have.
    pub functions: Vec<Registration>,
    /// The chains that are compiled as a whole; all others are put together at run time.
    pub chains: Vec<StaticChain>,
    /// The policies that move shards between lanes, the default first.
    pub policies: Vec<PolicyRegistration>,
    /// What workers without packets may do, the default first.
    pub polling: Vec<PollingRegistration>,
    /// The applications that a service can have.
    pub applications: Vec<ApplicationRegistration>,
    /// The schedulers that a service can have, the default first.
    pub schedulers: Vec<SchedulerRegistration>,
    /// Kinds of devices beside those that come along.
    pub devices: Vec<DeviceRegistration>,
}

impl Registry {
    /// The policies that come along, of balancing and of polling, and the schedulers; no function, and no application.
    pub fn new() -> Registry {
        Registry {
            functions: Vec::new(),
            chains: Vec::new(),
            policies: policy::ALL.to_vec(),
            polling: poll::ALL.to_vec(),
            applications: Vec::new(),
            schedulers: scheduler::ALL.to_vec(),
            devices: Vec::new(),
        }
    }

    /// Adds functions.
    #[must_use]
    pub fn with_functions(mut self, functions: &[Registration]) -> Registry {
        self.functions.extend_from_slice(functions);
        self
    }

    /// Adds chains that are compiled as a whole.
    #[must_use]
    pub fn with_chains(mut self, chains: &[StaticChain]) -> Registry {
        self.chains.extend_from_slice(chains);
        self
    }

    /// Adds a policy.
    #[must_use]
    pub fn with_policy(mut self, policy: PolicyRegistration) -> Registry {
        self.policies.push(policy);
        self
    }

    /// Adds a polling policy.
    #[must_use]
    pub fn with_polling(mut self, polling: PollingRegistration) -> Registry {
        self.polling.push(polling);
        self
    }

    /// Adds applications.
    #[must_use]
    pub fn with_applications(
        mut self,
        applications: impl IntoIterator<Item = ApplicationRegistration>,
    ) -> Registry {
        self.applications.extend(applications);
        self
    }

    /// Adds a scheduler.
    #[must_use]
    pub fn with_scheduler(mut self, scheduler: SchedulerRegistration) -> Registry {
        self.schedulers.push(scheduler);
        self
    }

    /// Adds a kind of device.
    #[must_use]
    pub fn with_device(mut self, kind: DeviceRegistration) -> Registry {
        self.devices.push(kind);
        self
    }
}

impl Default for Registry {
    fn default() -> Registry {
        Registry::new()
    }
}
