//! `rheo test`: runs cases, which send packets and state what comes of each.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rheostat_cases::{Case, CaseError, Subject, files};
use rheostat_control::{AnyMachine, Config, LoadError, Overrides};
use serde::Serialize;
use thiserror::Error;

use crate::against::{self, AgainstArgs};
use crate::app::App;
use crate::out;

/// Why no case was run.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Config(#[from] LoadError),
    #[error("{0}")]
    Files(#[from] CaseError),
    #[error("{0}")]
    Against(#[from] against::Error),
    #[error(
        "{} is neither a case (`.case`), nor a folder of cases, nor a configuration in front of them (`.toml`)", .0.display()
    )]
    NoCase(PathBuf),
    #[error("name the cases to run against {}", .0.display())]
    OnlyConfig(PathBuf),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo test nat.case
  rheo test tests/nf
  rheo test configs/firewall.toml replies.case reset.case
  rheo test replies.case --json
  rheo test new.toml --capture x.pcap --against /run/rheo/nat.sock
  rheo test new.toml --capture lan=lan.pcap --capture wan=wan.pcap \\
    --against old.toml

A case is a text: packets in, packets expected. This one is about a firewall and passes:

  chain firewall
  at 0s lan 10.0.0.1:1000 > 198.51.100.1:53 udp len 30
    wan same
  at 1s wan 198.51.100.1:53 > 10.0.0.1:1000 udp len 60
    lan same
  at 2s wan 198.51.100.9:53 > 10.0.0.1:1000 udp len 60
    drop denied

Each case is run on one, two and four lanes, with and without the fast path, in virtual time; a failure names file,
line, the expected and the actual outcome. docs/cases.md is the reference of the language. With a configuration, cases
are run against its chain, and have no lines of their own about chain, settings and state.

The exit status is 0 when all cases pass, 1 when some fail, 2 when one cannot be read. With --json the last line has
`cases`, `passed`, `failed` (numbers) and `failures`, each with `file`, `line`, `expected`, `got` and `on`, or with
`problem` where the case cannot be read.

With --against, packets of a capture are put before the chain of a configuration and before that of a running instance, or
of another file, and packets about which these decide differently are listed by the rules that decided. Both chains begin
without flows, on one lane, in the time of the capture; the running instance is asked for its configuration alone. The exit
status is 0 when all decisions are the same, 1 when some differ, 2 when nothing was compared.")]
pub(crate) struct Args {
    /// Cases, or folders of them. A configuration (.toml) in front of them has the chain for all; with --against, the
    /// configuration alone.
    #[arg(required = true, value_name = "[CONFIG] CASE")]
    files: Vec<PathBuf>,
    /// Print the outcome as one line of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    against: AgainstArgs,
}

/// The outcome of a case that does not pass.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Failure<'a> {
    Failed { file: &'a str, line: Option<usize>, expected: &'a str, got: &'a str, on: &'a str },
    Unreadable { file: &'a str, line: Option<usize>, problem: &'a str },
}

impl<'a> Failure<'a> {
    fn of(error: &'a CaseError) -> Failure<'a> {
        match error {
            CaseError::Failed { file, line, expected, got, way } => {
                Failure::Failed { file, line: *line, expected, got, on: way }
            }
            CaseError::Unreadable { file, line, problem } => {
                Failure::Unreadable { file, line: *line, problem }
            }
        }
    }
}

/// Runs the cases and prints those that do not pass.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, Error> {
    if args.against.is_given() {
        return Ok(against::run(app, &args.files, &args.against, args.json)?);
    }
    let ends_in =
        |path: &Path, end: &str| path.extension().is_some_and(|extension| extension == end);
    let (config, named) = match &args.files[..] {
        [config] if ends_in(config, "toml") => return Err(Error::OnlyConfig(config.clone())),
        [config, cases @ ..] if ends_in(config, "toml") => {
            let overrides = Overrides::default();
            let loaded = Config::load_for(config, &overrides, &AnyMachine, &app.registry)?;
            let (config, warnings) = loaded;
            if !warnings.is_empty() {
                out::report(&warnings);
            }
            (Some(config), cases)
        }
        cases => (None, cases),
    };
    let mut paths = Vec::new();
    for path in named {
        if !path.is_dir() && !ends_in(path, "case") {
            return Err(Error::NoCase(path.clone()));
        }
        paths.extend(files(path)?);
    }
    let subject = match &config {
        Some(config) => Subject::Configured(&app.registry, config),
        None => Subject::Named(&app.registry),
    };
    let outcomes = paths.iter().map(|path| Case::load(path)?.run(&subject));
    let failures: Vec<_> = outcomes.filter_map(Result::err).collect();
    let (cases, failed) = (paths.len(), failures.len());
    let passed = cases - failed;
    if args.json {
        let failures: Vec<_> = failures.iter().map(Failure::of).collect();
        out!(
            "{}",
            serde_json::json!({
                "cases": cases, "passed": passed, "failed": failed, "failures": failures
            })
        );
    } else {
        failures.iter().for_each(|failure| err!("{failure}"));
        out!("{cases} cases: {passed} passed, {failed} failed");
    }
    let is_unreadable = |error: &CaseError| matches!(error, CaseError::Unreadable { .. });
    Ok(match failures.iter().any(is_unreadable) {
        true => ExitCode::from(2),
        false if failed > 0 => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}
