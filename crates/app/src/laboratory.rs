//! Commands of the laboratory, a program of its own, which is run in place of this one.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use rustix::fs::{Access, access};
use thiserror::Error;

const PROGRAM: &str = "rheo-lab";

/// Why a command of the laboratory did not run.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error(
        "`rheo {command}` is a command of {PROGRAM}, which is neither beside this program nor in PATH: build it with \
         `cargo build --release -p rheostat-lab`"
    )]
    NotThere { command: String },
    #[error("{}: {source}", program.display())]
    NotRun { program: PathBuf, source: io::Error },
}

/// What a command of the laboratory is called with.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// What rheo-lab takes.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    _arguments: Vec<OsString>,
}

/// Runs the laboratory with the arguments of this process, in its place. Returns only if that fails.
///
/// # Errors
/// [`Error`] when there is no laboratory, or it cannot be run.
pub(crate) fn run() -> Result<ExitCode, Error> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let own = std::env::current_exe().ok();
    let program = find(own.as_deref(), std::env::var_os("PATH").as_deref());
    let Some(program) = program else {
        // The word that names the command, and for benchmarks the next.
        let named = if arguments.first().is_some_and(|first| first == "bench") { 2 } else { 1 };
        let words = arguments.iter().take(named).map(|word| word.to_string_lossy());
        return Err(Error::NotThere { command: words.collect::<Vec<_>>().join(" ") });
    };
    let source = Command::new(&program).args(arguments).exec();
    Err(Error::NotRun { program, source })
}

/// The laboratory's program: beside `own`, or in the folders of `path`.
fn find(own: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    let beside = own.and_then(Path::parent).map(Path::to_owned);
    let folders = beside.into_iter().chain(path.into_iter().flat_map(std::env::split_paths));
    folders.map(|folder| folder.join(PROGRAM)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_program_beside_this_one_comes_before_those_in_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let [beside, first, second] =
            ["beside", "first", "second"].map(|name| folder.path().join(name));
        let own = beside.join("rheo");
        let path = std::env::join_paths([&first, &second]).unwrap();
        let found = || find(Some(&own), Some(&path));
        for folder in [&beside, &first, &second] {
            fs::create_dir(folder).unwrap();
        }
        assert_eq!(found(), None);
        let put = |folder: &Path, mode| {
            let program = folder.join(PROGRAM);
            fs::write(&program, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
            Some(program)
        };
        let in_second = put(&second, 0o755);
        assert_eq!(found(), in_second);
        fs::create_dir(first.join(PROGRAM)).unwrap();
        assert_eq!(found(), in_second, "a folder is no program");
        let program_beside = put(&beside, 0o755);
        assert_eq!(found(), program_beside);
        assert_eq!(find(None, Some(&path)), in_second);
    }
}
