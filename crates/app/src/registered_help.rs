//! `--help` lists the kinds that are registered, policies behind `--policy` and `--polling`, and explains flags that override settings by
//! the declarations of these.

use clap::{Arg, Command};
use rheostat_control::{DeviceOverride, Reference, Registry};

/// The command line with the names of registered kinds behind the help of the flags that take them.
pub(crate) fn with_names(command: Command, registry: &Registry) -> Command {
    with_names_of(command, registry, false)
}

/// The help of a flag that overrides a setting, such as `workers.lanes`, from its declaration.
///
/// # Panics
/// If no section has the setting.
pub(crate) fn help_of(name: &str) -> String {
    let reference = Reference::of(&Registry::new());
    match reference.find(name).as_deref() {
        Ok([entry]) => entry.setting.to_string(),
        _ => panic!("{name} is declared"),
    }
}

fn with_names_of(command: Command, registry: &Registry, is_service: bool) -> Command {
    let is_service = is_service || command.get_name() == "serve";
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "policy" => {
            let fit = registry.policies.iter().filter(|policy| !is_service || policy.facts.serves);
            list(arg, fit.map(|policy| (policy.name, policy.summary)), "")
        }
        "polling" => {
            list(arg, registry.polling.iter().map(|polling| (polling.name, polling.summary)), "")
        }
        "device" | "devices" if !registry.devices.is_empty() && takes_kind(&arg) => {
            let kinds = registry.devices.clone();
            let own = registry.devices.iter().map(|kind| (kind.name, kind.summary));
            let arg = list(arg, own, "Kinds of this program:");
            arg.value_parser(move |text: &str| DeviceOverride::parse(text, &kinds))
        }
        _ => arg,
    });
    command.mut_subcommands(|inner| with_names_of(inner, registry, is_service))
}

/// Whether the flag is `--device NAME=KIND:ARG`, and not the name of a device.
fn takes_kind(arg: &Arg) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.contains("=KIND:")))
}

/// `name (summary), name (summary)` behind the help that the flag has, and these words if there are any.
fn list<'a>(arg: Arg, kinds: impl Iterator<Item = (&'a str, &'a str)>, words: &str) -> Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let help = match words {
        "" => help,
        words => format!("{}. {words}", help.trim_end_matches('.')),
    };
    let names = kinds.map(|(name, summary)| match summary {
        "" => name.to_owned(),
        _ => format!("{name} ({summary})"),
    });
    arg.help(format!("{help} {}", names.collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::serve::with_applications;
    use crate::{App, Cli};

    /// The help of `flag` of the command that these words call.
    fn help(registry: &Registry, words: &[&str], flag: &str) -> String {
        let root = with_names(with_applications(Cli::command(), registry), registry);
        let command = words.iter().fold(&root, |command, word| {
            command.find_subcommand(word).unwrap_or_else(|| panic!("no command {word}"))
        });
        let arg = command.get_arguments().find(|arg| arg.get_id() == flag);
        arg.and_then(|arg| arg.get_help()).expect("the flag has a help").to_string()
    }

    #[test]
    fn help_of_runs_lists_what_is_registered_and_that_of_serve_what_services_can_have() {
        let registry = App::new().registry;
        let run = help(&registry, &["run"], "policy");
        let serve = help(&registry, &["serve", "echo"], "policy");
        for policy in &registry.policies {
            let entry = format!("{} ({})", policy.name, policy.summary);
            assert!(run.contains(&entry), "{entry} in {run}");
            assert_eq!(serve.contains(&entry), policy.facts.serves, "{entry} in {serve}");
        }
        for polling in &registry.polling {
            for command in [&["run"][..], &["serve", "echo"]] {
                let help = help(&registry, command, "polling");
                assert!(
                    help.contains(&format!("{} ({})", polling.name, polling.summary)),
                    "{help}"
                );
            }
        }
        assert!(
            run.starts_with("Move shards between lanes by this policy: rss (not at all), "),
            "{run}"
        );
    }
}
