//! `rheo new`: writes a project with a network function or a service of its own.

mod name;
mod source;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use thiserror::Error;

use self::name::{Name, NameError};
use self::source::{Source, SourceError};
use crate::app::App;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo new function synlimit
  rheo new function synlimit --rheostat ~/rheostat
  rheo new service shout")]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: ProjectKind,
}

#[derive(Debug, clap::Subcommand)]
enum ProjectKind {
    /// A network function: code, a test, a configuration and a README.
    Function(Project),
    /// A service over TCP: code, tests, a configuration and a README.
    Service(Project),
}

#[derive(Debug, clap::Args)]
struct Project {
    /// Its name, and that of the folder: lower-case letters, digits and `-`.
    #[arg(value_name = "NAME")]
    name: String,
    /// The rheostat it depends on: a checkout, or a repository and a commit in it
    /// [default: the checkout that this program was built from].
    #[arg(long, value_name = "PATH|URL#REV")]
    rheostat: Option<String>,
}

/// Why no project was written.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Name(#[from] NameError),
    #[error("{0}")]
    Source(#[from] SourceError),
    #[error("`{0}` exists; choose another name, or remove it")]
    Exists(PathBuf),
    #[error("cannot write `{}`: {source}", file.display())]
    Write { file: PathBuf, source: io::Error },
}

/// A file of a project: its path and its text, both with placeholders.
type Template = (&'static str, &'static str);

macro_rules! templates {
    ($kind:literal: $($path:literal = $file:literal,)*) => {
        &[$(($path, include_str!(concat!("new/", $kind, "/", $file, ".in"))),)*]
    };
}

const FUNCTION: &[Template] = templates! {
    "function":
    "Cargo.toml" = "Cargo.toml",
    "README.md" = "README.md",
    "{{name}}.toml" = "config.toml",
    "src/main.rs" = "src/main.rs",
    "src/{{module}}.rs" = "src/function.rs",
    "tests/configuration.rs" = "tests/configuration.rs",
};

const SERVICE: &[Template] = templates! {
    "service":
    "Cargo.toml" = "Cargo.toml",
    "README.md" = "README.md",
    "{{name}}.toml" = "config.toml",
    "src/main.rs" = "src/main.rs",
    "src/{{module}}.rs" = "src/service.rs",
    "tests/configuration.rs" = "tests/configuration.rs",
};

/// Writes the project.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    let (project, templates, noun) = match &args.kind {
        ProjectKind::Function(project) => (project, FUNCTION, "a network function"),
        ProjectKind::Service(project) => (project, SERVICE, "a service over TCP"),
    };
    let name = Name::new(&project.name, app)?;
    let source = Source::find(project.rheostat.as_deref())?;
    let folder = PathBuf::from(&project.name);
    write(&folder, templates, &name, &source)?;
    out!("wrote {}: {noun}, its test and a configuration; next:", project.name);
    out!("  cd {} && cargo test", project.name);
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, templates: &[Template], name: &Name, source: &Source) -> Result<(), Error> {
    let written = |file: &Path, outcome: io::Result<()>| {
        outcome.map_err(|source| Error::Write { file: file.to_owned(), source })
    };
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(Error::Exists(folder.to_owned()));
        }
        outcome => written(folder, outcome)?,
    }
    let fill = |text: &str| source.fill(name.fill(text.to_owned()));
    for (path, text) in templates {
        let file = folder.join(fill(path));
        if let Some(parent) = file.parent() {
            written(parent, fs::create_dir_all(parent))?;
        }
        written(&file, fs::write(&file, fill(text)))?;
    }
    written(&folder.join(".gitignore"), fs::write(folder.join(".gitignore"), "/target\n"))?;
    // The versions that the checkout was built and tested with.
    for (file, bytes) in source.pinned() {
        let file = folder.join(file);
        written(&file, fs::write(&file, bytes))?;
    }
    Ok(())
}
