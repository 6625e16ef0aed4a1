//! `rheo man`: the manual pages, from the command line and from the declarations of settings.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use rheostat_control::Reference;
use rheostat_settings::declared::{Form, Setting};
use rheostat_settings::suggestion::nearest;
use thiserror::Error;

use crate::app::App;
use crate::command_line;

/// The page of configurations.
const CONFIGURATION: &str = "rheo.toml";

/// Why a manual page cannot be written.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// No command has this name.
    #[error("there is no page `{page}`{hint}")]
    Page {
        /// The words that were given.
        page: String,
        /// The name nearest to it, or how to write a page.
        hint: String,
    },
    /// A file cannot be written.
    #[error("cannot write `{}`: {source}", path.display())]
    Write {
        /// The file, or the directory.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo man check > rheo-check.1
  rheo man serve http > rheo-serve-http.1
  rheo man rheo.toml > rheo.toml.5
  rheo man --output man

Show a page with `man -l FILE`.")]
pub(crate) struct Args {
    /// The page: a command, such as check or serve http, or rheo.toml for the configuration; that of the program without.
    page: Vec<String>,
    /// Write all pages into this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "page")]
    output: Option<PathBuf>,
}

/// Prints a page, or writes all.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    let line = app.program.name(command_line(app), None);
    match &args.output {
        Some(folder) => write_all(app, line, folder)?,
        None if args.page == [CONFIGURATION] => out!("{}", configuration(app).trim_end()),
        None => out!("{}", command(line, &args.page)?.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of the command that these words call.
fn command(line: Command, words: &[String]) -> Result<String, Error> {
    let (mut command, mut name) = (line.clone(), line.get_name().to_owned());
    for word in words {
        let inner = command.find_subcommand(word).cloned();
        command = inner.ok_or_else(|| {
            let names = command.get_subcommands().map(Command::get_name);
            let hint = nearest(word, names.chain([CONFIGURATION]))
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Error::Page { page: words.join(" "), hint }
        })?;
        name = format!("{name}-{word}");
    }
    Ok(page(command, &name))
}

fn page(command: Command, name: &str) -> String {
    let (name, bin): (&'static str, &'static str) =
        (name.to_owned().leak(), name.replace('-', " ").leak());
    let mut text = Vec::new();
    let page = Man::new(command.name(name).bin_name(bin).disable_help_subcommand(true));
    // Writing to memory does not fail.
    let _ = page.render(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn write_all(app: &App, line: Command, folder: &Path) -> Result<(), Error> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Write { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let root = line.get_name().to_owned();
    let mut pages = vec![(format!("{CONFIGURATION}.5"), configuration(app))];
    let mut waiting = vec![(root, line)];
    while let Some((name, command)) = waiting.pop() {
        let visible = command.get_subcommands().filter(|inner| !inner.is_hide_set());
        waiting
            .extend(visible.map(|inner| (format!("{name}-{}", inner.get_name()), inner.clone())));
        pages.push((format!("{name}.1"), page(command, &name)));
    }
    pages.sort();
    for (name, text) in pages {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(failed(&path))?;
        out!("{}", path.display());
    }
    Ok(())
}

/// The page of configurations.
fn configuration(app: &App) -> String {
    let mut page = Roff::new();
    page.control("TH", [CONFIGURATION, "5"]);
    page.control("SH", ["NAME"]);
    page.text([roman("rheo.toml - the configuration of rheo(1)")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(
        "A configuration is a file of TOML, which rheo run, rheo check and other commands read. Its sections and their keys follow. \
         A key without a default may be left out, unless it is required.",
    )]);
    for section in Reference::of(&app.registry).sections() {
        write_table(&mut page, section.key, section);
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([roman("rheo(1), rheo-check(1)")]);
    page.render()
}

fn write_table(page: &mut Roff, name: &str, table: &Setting) {
    let header = match table.form {
        Form::Tables => format!("[[{name}]]"),
        _ => format!("[{name}]"),
    };
    page.control("SH", [header.as_str()]);
    page.text([roman(table.help)]);
    let (tables, keys): (Vec<_>, Vec<_>) = table.keys.iter().partition(|key| key.is_table());
    for key in keys {
        page.control("TP", []);
        let mut words = vec![bold(key.key), roman(" = "), italic(key.kind.as_str())];
        if let Some(bounds) = &key.bounds {
            words.push(roman(format!(" ({bounds})")));
        }
        page.text(words);
        let mut text = key.help.to_owned();
        if let Some(only) = key.conditions() {
            text += &format!(" Only with {only}.");
        }
        match key.shown_default() {
            _ if key.is_required => text += " It is required.",
            Some(default) => text += &format!(" The default is {default}."),
            None => {}
        }
        page.text([roman(text)]);
    }
    for inner in tables {
        write_table(page, &format!("{name}.{}", inner.key), inner);
    }
}

#[cfg(test)]
mod tests;
