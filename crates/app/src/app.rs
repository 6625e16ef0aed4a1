//! A program that runs functions and services: what is registered in it, which its commands take by reference.

mod program;

use std::error::Error;

use rheostat_base::OwnDropReason;
use rheostat_control::Registry;
use rheostat_io::{Device, DeviceRegistration, Opening};
use rheostat_nf::registry::{FromSettings, Registration};
use rheostat_nf::{NetworkFunction, NoShardState};
use rheostat_run::poll::{PollPolicy, PollingRegistration};
use rheostat_serve::registry::{ApplicationRegistration, MakeApplication};
use rheostat_serve::scheduler::{SchedulerPlan, SchedulerRegistration};
use rheostat_steer::policy::{Policy, PolicyRegistration, Settings};

pub(crate) use program::AppProgram;

/// A program that runs functions and services: `rheo`, or one of an author's own with functions beside those of `rheo`.
///
/// ```no_run
/// # use rheostat_nf::registry::FromSettings;
/// # fn with<Quota: FromSettings>() -> std::process::ExitCode {
/// rheostat_app::App::new()
///     .named(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
///     .function::<Quota>("quota")
///     .main()
/// # }
/// ```
///
/// Such a program has every command of `rheo`: its configurations name the function in `[chain]` and have its settings in
/// `[function.quota]`.
#[derive(Clone, Debug)]
pub struct App {
    /// What configurations and flags can name.
    pub(crate) registry: Registry,
    /// Its name and its version, for `--help` and `--version`.
    pub(crate) program: AppProgram,
    /// What cannot be registered.
    pub(crate) faults: Vec<String>,
}

impl App {
    /// The program with everything that comes with rheostat.
    pub fn new() -> App {
        let registry = Registry::new().with_chains(rheostat_functions::shipped::CHAINS);
        App { registry, program: AppProgram::default(), faults: Vec::new() }
            .functions(rheostat_functions::ALL)
            .applications(crate::serve::applications())
    }

    /// Gives the program the name and the version that `--help` and `--version` print. Without them, it is named like its file.
    #[must_use]
    pub fn named(mut self, name: &'static str, version: &'static str) -> App {
        self.program = AppProgram::named(name, version);
        self
    }

    /// Registers functions, which configurations can name from then on.
    #[must_use]
    pub fn functions(mut self, functions: &[Registration]) -> App {
        for function in functions {
            self.check_name(function.name);
            self.registry = self.registry.with_functions(&[*function]);
        }
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

    /// Registers a kind of device, which `kind` of `[[device]]` and `--device` can name from then on. `open` is called with the
    /// text of the key `argument`, or of `--device NAME=KIND:ARGUMENT`.
    #[must_use]
    pub fn device<O, D, E>(self, name: &'static str, open: O) -> App
    where
        O: Fn(&str, &Opening<'_>) -> Result<D, E> + Send + Sync + 'static,
        D: Device + 'static,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.registered_device(DeviceRegistration::new(name, open))
    }

    /// Registers a kind of device with its keys of `[[device]]` and its facts.
    #[must_use]
    pub fn registered_device(mut self, kind: DeviceRegistration) -> App {
        self.registry = self.registry.with_device(kind);
        self
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

    /// Registers a scheduler, which `scheduler` of `[serve]` and `rheo serve --scheduler` can name from then on.
    #[must_use]
    pub fn scheduler(self, name: &'static str, plan: SchedulerPlan) -> App {
        self.registered_scheduler(SchedulerRegistration::new(name, plan))
    }

    /// Registers a scheduler with its summary.
    #[must_use]
    pub fn registered_scheduler(mut self, scheduler: SchedulerRegistration) -> App {
        self.registry = self.registry.with_scheduler(scheduler);
        self
    }

    /// Registers a function with state per flow and per shard, and its drop reasons.
    #[must_use]
    pub fn function<F: FromSettings>(self, name: &'static str) -> App {
        self.drop_reasons(F::DROP_REASONS).functions(&[Registration::of::<F>(name)])
    }

    /// Registers a function on shared objects, and its drop reasons.
    #[must_use]
    pub fn shared_function<F: FromSettings + NetworkFunction<Shard: NoShardState>>(
        self,
        name: &'static str,
    ) -> App
    where
        F::Flow: Clone,
    {
        self.drop_reasons(F::DROP_REASONS).functions(&[Registration::on_objects::<F>(name)])
    }

    /// Registers drop reasons, of functions that are not registered by their type.
    #[must_use]
    pub fn drop_reasons(mut self, reasons: &[&'static OwnDropReason]) -> App {
        for reason in reasons {
            self.faults.extend(reason.register().err().map(|error| error.to_string()));
        }
        self
    }

    /// Notes a name that no table of a configuration can have, or that another function has.
    fn check_name(&mut self, name: &'static str) {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || !name.chars().all(is_letter) {
            let fault =
                format!("`{name}` is no name for a function: write letters, digits, `-` and `_`");
            self.faults.push(fault);
        }
        if self.registry.functions.iter().any(|function| function.name == name) {
            self.faults.push(format!("two functions have the name `{name}`; rename one of them"));
        }
    }
}

impl Default for App {
    fn default() -> App {
        App::new()
    }
}

#[cfg(test)]
mod tests;
