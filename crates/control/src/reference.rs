//! The reference of configurations: every section with its keys, from their declarations.

mod markdown;

use rheostat_settings::declared::{DeclaredSettings, Form, Setting};
use rheostat_settings::suggestion::ranked;

use crate::config::{self, ObserveConfig, PoolConfig, RunConfig, ServeConfig, SteeringConfig};
use crate::registry::Registry;

/// Every section of a configuration with its keys, as they are declared.
#[derive(Clone, Debug)]
pub struct Reference {
    sections: Vec<Setting>,
    /// The functions that have no settings, and no table.
    bare: Vec<Setting>,
}

/// A setting or a section, with its full name.
#[derive(Clone, Debug)]
pub struct Entry<'r> {
    /// Its key with its tables, such as `function.nat.quota`.
    pub name: String,
    /// The setting; a section has keys of its own.
    pub setting: &'r Setting,
}

impl Reference {
    /// The reference of configurations that can name what is in `registry`.
    pub fn of(registry: &Registry) -> Reference {
        let functions: Vec<_> = registry.functions.iter().map(|function| function.name).collect();
        let chain = Setting {
            form: Form::List,
            kind: "name of a function".to_owned(),
            bounds: Some(functions.join(", ")),
            example: "[\"firewall\"]".to_owned(),
            ..Setting::table(
                "functions",
                "The functions that packets pass, from inside in this order; none forwards everything.",
                Vec::new(),
            )
            .required()
        };
        let function = registry
            .functions
            .iter()
            .filter(|function| function.read.is_some())
            .map(|function| Setting::table(function.name, function.summary, (function.keys)()));
        let bare = registry.functions.iter().filter(|function| function.read.is_none());
        let bare = bare.map(|function| Setting {
            form: Form::Name,
            kind: "function without settings".to_owned(),
            ..Setting::table(function.name, function.summary, Vec::new())
        });
        let [route, neighbour, network] = config::network::sections();
        let table = Setting::table;
        let sections = vec![
            table(
                "run",
                "How long a run lasts, and what its random numbers start from.",
                RunConfig::declarations(),
            ),
            table(
                "workers",
                "The cores that work, and the lanes they run.",
                config::WorkersConfig::declarations(),
            ),
            table("pool", "The buffers that hold packets.", PoolConfig::declarations()),
            Setting::tables(
                "device",
                "Where packets come from and go to.",
                config::device::settings(&registry.devices),
            )
            .required(),
            route,
            neighbour,
            network,
            table("serve", "A service over TCP in place of a chain.", ServeConfig::keys(registry)),
            table("chain", "The functions that packets pass.", vec![chain]).required(),
            table("function", "The settings of functions of the chain.", function.collect()),
            table("state", "How much the run remembers.", config::StateConfig::keys()),
            table("steering", "How packets are hashed and placed.", SteeringConfig::declarations()),
            table(
                "balance",
                "Which policy moves shards between lanes, how often it plans, and how many lanes it may use.",
                config::BalanceConfig::keys(&registry.policies),
            ),
            Setting::tables(
                "class",
                "Traffic that is measured apart, and served first where it is of the priority class.",
                config::class::keys(),
            ),
            table(
                "slo",
                "The latencies that packets of each class should not exceed.",
                config::slo::keys(),
            ),
            table(
                "polling",
                "What a worker does when it has no packets.",
                config::polling_keys(&registry.polling),
            ),
            table(
                "observe",
                "What is reported while a run goes on.",
                ObserveConfig::declarations(),
            ),
        ];
        Reference { sections, bare: bare.collect() }
    }

    /// The sections, in the order in which they are read.
    pub fn sections(&self) -> &[Setting] {
        &self.sections
    }

    /// Every section and every setting, each section before its keys.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        fn add<'r>(prefix: &str, settings: &'r [Setting], entries: &mut Vec<Entry<'r>>) {
            for setting in settings {
                let name = format!("{prefix}{}", setting.key);
                entries.push(Entry { name: name.clone(), setting });
                add(&format!("{name}."), &setting.keys, entries);
            }
        }
        let mut entries = Vec::new();
        add("", &self.sections, &mut entries);
        entries
    }

    /// The entries that `key` names: by its full name, or by the end of it, such as `lanes` for `workers.lanes`. Functions without
    /// settings are among them.
    ///
    /// # Errors
    /// The names nearest to `key`, if it names none.
    pub fn find(&self, key: &str) -> Result<Vec<Entry<'_>>, Vec<String>> {
        let wanted = plain(key);
        let mut entries = self.entries();
        entries.extend(self.bare.iter().map(|function| Entry {
            name: format!("function.{}", function.key),
            setting: function,
        }));
        let is_named = |entry: &&Entry<'_>| entry.name == wanted;
        let ends_so = |entry: &&Entry<'_>| {
            entry.name.strip_suffix(&wanted).is_some_and(|rest| rest.ends_with('.'))
        };
        let mut named: Vec<_> = entries.iter().filter(is_named).cloned().collect();
        if named.is_empty() {
            named = entries.iter().filter(ends_so).cloned().collect();
        }
        if !wanted.is_empty() && !named.is_empty() {
            return Ok(named);
        }
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        names.dedup();
        Err(ranked(&wanted, &names).into_iter().map(str::to_owned).collect())
    }
}

/// A key without the brackets of a header and the places in lists.
fn plain(key: &str) -> String {
    let parts = key.trim().trim_start_matches('[').trim_end_matches(']').split('.');
    let parts: Vec<_> = parts.map(|part| part.split('[').next().unwrap_or(part).trim()).collect();
    parts.join(".").replace('-', "_")
}
