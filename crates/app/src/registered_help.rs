//! Flags that override settings have help and bounds from the declarations of these, and list the kinds that are registered, such as
//! policies behind `--policy` and `--polling`.

use std::sync::LazyLock;

use clap::builder::RangedI64ValueParser;
use clap::{Arg, Command};
use rheostat_control::config::device;
use rheostat_control::{DeviceOverride, Reference, Registry};
use rheostat_settings::declared::Setting;

/// The command line with the names of registered kinds behind the help of the flags that take them.
pub(crate) fn with_names(command: Command, registry: &Registry) -> Command {
    with_names_of(command, registry, false)
}

/// The help of a flag that overrides a setting, such as `workers.lanes`, from its declaration.
///
/// # Panics
/// If no section has the setting.
pub(crate) fn help_of(name: &str) -> String {
    declared(name).to_string()
}

/// Takes the numbers that a setting takes.
///
/// # Panics
/// If no section has the setting, or it is no whole number.
pub(crate) fn numbers_of(name: &str) -> RangedI64ValueParser<u16> {
    let range = declared(name).range.as_ref().unwrap_or_else(|| panic!("{name} is a whole number"));
    let bound = |bound: &u64| i64::try_from(*bound).unwrap_or(i64::MAX);
    clap::value_parser!(u16).range(bound(range.start())..=bound(range.end()))
}

/// The bounds of a setting in words, for the help of a flag that has the setting as a part.
///
/// # Panics
/// If no section has the setting.
pub(crate) fn bounds_of(name: &str) -> &'static str {
    declared(name).bounds.as_deref().unwrap_or_default()
}

/// The default of a setting.
///
/// # Panics
/// If no section has the setting.
pub(crate) fn default_of(name: &str) -> &'static str {
    declared(name).default.as_deref().unwrap_or_default()
}

fn declared(name: &str) -> &'static Setting {
    static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::of(&Registry::new()));
    match REFERENCE.find(name).as_deref() {
        Ok([entry, ..]) => entry.setting,
        _ => panic!("{name} is declared"),
    }
}

fn with_names_of(command: Command, registry: &Registry, is_service: bool) -> Command {
    let is_service = is_service || command.get_name() == "serve";
    let command = command.mut_args(|arg| match arg.get_id().as_str() {
        "policy" => {
            let fit = registry.policies.iter().filter(|policy| !is_service || policy.facts.serves);
            let arg = arg.help(format!("{}:", purpose("balance.policy")));
            list(arg, fit.map(|policy| (policy.name, policy.summary)), "")
        }
        "polling" => {
            let usual = if is_service { "; `interrupt` unless given" } else { "" };
            let arg = arg.help(format!("{}{usual}:", purpose("polling.policy")));
            list(arg, registry.polling.iter().map(|polling| (polling.name, polling.summary)), "")
        }
        "scheduler" if is_service => {
            let schedulers = registry.schedulers.iter();
            list(
                arg,
                schedulers.map(|scheduler| (scheduler.name, scheduler.summary)),
                "Schedulers:",
            )
        }
        "device" | "devices" if takes_kind(&arg) => {
            let kinds = registry.devices.clone();
            let named = device::summaries(&kinds, is_service);
            let arg = list(arg, named.into_iter(), "Kinds:");
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

/// The help of a setting without its full stop.
fn purpose(name: &str) -> &'static str {
    declared(name).help.trim_end_matches('.')
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
        let devices = help(&registry, &["run"], "devices");
        assert!(devices.contains("Kinds: pcap (a capture), sim ("), "{devices}");
        let device = help(&registry, &["serve", "echo"], "device");
        assert!(device.contains("Kinds: af_xdp (an interface, by rings"), "{device}");
        assert!(device.contains("host (the kernel's sockets"), "{device}");
        let scheduler = help(&registry, &["serve", "echo"], "scheduler");
        for known in &registry.schedulers {
            let entry = format!("{} ({})", known.name, known.summary);
            assert!(scheduler.contains(&entry), "{entry} in {scheduler}");
        }
        assert!(
            run.starts_with("Move shards between lanes by this policy: rss (not at all), "),
            "{run}"
        );
        let polling = help(&registry, &["serve", "echo"], "polling");
        let head = "What workers without packets do; `interrupt` unless given: busy";
        assert!(polling.starts_with(head), "{polling}");
    }

    #[test]
    fn help_of_devices_states_the_bounds_of_their_rings() {
        let registry = App::new().registry;
        let run = help(&registry, &["run"], "devices");
        assert!(run.contains("(rings of 64 to 32768 packets). Kinds: "), "{run}");
        let serve = help(&registry, &["serve", "echo"], "device");
        assert!(serve.contains("hold N packets, 64 to 32768; 2048 otherwise. "), "{serve}");
    }

    #[test]
    fn numbers_are_taken_within_the_bounds_of_their_settings() {
        for (words, flag, most) in [
            (&["run"][..], "--workers", 128),
            (&["run"][..], "--lanes", 64),
            (&["serve", "echo"][..], "--lanes", 64),
        ] {
            let given = |number: u16| {
                let root = with_applications(Cli::command(), &App::new().registry);
                let line = ["rheo"].into_iter().chain(words.iter().copied()).map(str::to_owned);
                let line = line.chain([flag.to_owned(), number.to_string()]);
                root.try_get_matches_from(line).map_err(|error| error.to_string())
            };
            for wrong in [0, most + 1] {
                let said = given(wrong).unwrap_err();
                assert!(said.contains(&format!("{wrong} is not in 1..={most}")), "{said}");
            }
            let others = given(most).unwrap_err();
            assert!(!others.contains("is not in"), "{others}");
        }
    }
}
