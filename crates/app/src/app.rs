//! A program that runs functions and services: what is registered in it, which its commands take by reference.

use rheostat_control::Registry;
use rheostat_nf::registry::Registration;
use rheostat_run::poll::{PollPolicy, PollingRegistration};
use rheostat_serve::registry::{ApplicationRegistration, MakeApplication};
use rheostat_steer::policy::{Policy, PolicyRegistration, Settings};

/// A program that runs functions and services.
#[derive(Clone, Debug)]
pub struct App {
    /// What configurations and flags can name.
    pub(crate) registry: Registry,
}

impl App {
    /// The program with everything that comes with rheostat.
    pub fn new() -> App {
        let registry = Registry::new().with_chains(rheostat_functions::shipped::CHAINS);
        App { registry }
            .functions(rheostat_functions::ALL)
            .applications(crate::serve::applications())
    }

    /// Registers functions, which configurations can name from then on.
    #[must_use]
    pub fn functions(mut self, functions: &[Registration]) -> App {
        self.registry = self.registry.with_functions(functions);
        self
    }

    /// Registers a policy that moves shards between lanes, which configurations, `--policy` and `rheo explain` can name from then
    /// on. `make` is called with the settings that `[balance]` and `[slo]` have for all policies.
    #[must_use]
    pub fn policy<P, M>(self, name: &'static str, make: M) -> App
    where
        P: Policy + 'static,
        M: Fn(&Settings) -> P + Send + Sync + 'static,
    {
        self.registered_policy(PolicyRegistration::new(name, make))
    }

    /// Registers a policy with its summary and its facts.
    #[must_use]
    pub fn registered_policy(mut self, policy: PolicyRegistration) -> App {
        self.registry = self.registry.with_policy(policy);
        self
    }

    /// Registers a polling policy, which `[polling]` and `--polling` can name from then on. `make` is called once per worker with
    /// the number of its lanes.
    #[must_use]
    pub fn polling<P, M>(self, name: &'static str, make: M) -> App
    where
        P: PollPolicy + 'static,
        M: Fn(usize) -> P + Send + Sync + 'static,
    {
        self.registered_polling(PollingRegistration::new(name, make))
    }

    /// Registers a polling policy with its summary and its keys of `[polling]`.
    #[must_use]
    pub fn registered_polling(mut self, polling: PollingRegistration) -> App {
        self.registry = self.registry.with_polling(polling);
        self
    }

    /// Registers applications, which `rheo serve` and configurations can name from then on.
    #[must_use]
    pub fn applications(
        mut self,
        applications: impl IntoIterator<Item = ApplicationRegistration>,
    ) -> App {
        self.registry = self.registry.with_applications(applications);
        self
    }

    /// Registers the application that `make` makes, for `rheo serve NAME` and `service = "NAME"`: of nothing, or of settings that
    /// `rheostat::settings!` declares, which are keys of `[serve]` and flags. Each run makes one, which all lanes share.
    #[must_use]
    pub fn application<Arguments>(
        self,
        name: &'static str,
        make: impl MakeApplication<Arguments>,
    ) -> App {
        self.applications([make.registration(name)])
    }
}

impl Default for App {
    fn default() -> App {
        App::new()
    }
}
