//! The name of a program in its help and version.

use std::path::Path;

use clap::Command;

use crate::VERSION;

/// The name that commands and examples are written with.
const RHEO: &str = "rheo";

/// The name and the version of a program, as `--help` and `--version` print them.
#[derive(Clone, Debug, Default)]
pub(crate) struct AppProgram {
    given: Option<(&'static str, &'static str)>,
}

impl AppProgram {
    pub(super) fn named(name: &'static str, version: &'static str) -> AppProgram {
        AppProgram { given: Some((name, version)) }
    }

    /// The command line `command` with the name and the version of the program, which was called as `first`.
    pub(crate) fn name(&self, command: Command, first: Option<&Path>) -> Command {
        let file = first.and_then(Path::file_stem).and_then(|file| file.to_str());
        let (name, version) = match (self.given, file) {
            (Some((name, version)), _) => {
                (name.to_owned(), format!("{version} (rheostat {VERSION})"))
            }
            (None, Some(file)) if !file.is_empty() && file != RHEO => {
                (file.to_owned(), format!("(rheostat {VERSION})"))
            }
            (None, _) => return command,
        };
        // Once in the life of the process.
        let (name, version): (&'static str, &'static str) = (name.leak(), version.leak());
        rename(command, name).name(name).bin_name(name).version(version)
    }
}

/// The command with another name of the program in its examples, and in those of its subcommands.
fn rename(command: Command, name: &str) -> Command {
    let renamed = |help: &clap::builder::StyledStr| {
        let text = help.to_string();
        let words = text.split(' ').map(|word| if word == RHEO { name } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    let help = command.get_after_help().map(renamed);
    let command = match help {
        Some(help) => command.after_help(help),
        None => command,
    };
    command.mut_subcommands(|inner| rename(inner, name))
}
