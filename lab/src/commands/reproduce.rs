//! `rheo reproduce`: published claims, and their figures on this machine.

use std::io;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use rheostat_measure::record::TableRow;
use serde::Serialize;
use thiserror::Error;

use crate::claims::{Claim, ClaimProgram, Reproduced};
use crate::commands::{BUILD, Failed, rheo};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo reproduce --list
  rheo reproduce one-queue-for-all
  rheo reproduce chain-cost --json

A claim has a page, a command, and figures from rows in results/. Its command runs here, and each figure stands beside the
published one. Published figures are of the machine that the folder in results/ is named after: expect ratios to hold on
others rather than times. The exit status is 1 when the command printed no row for a figure.")]
pub(crate) struct Args {
    /// A claim. Without one, all are listed.
    #[arg(value_name = "NAME", conflicts_with = "list")]
    name: Option<String>,
    /// List the claims, with the time that each takes and the machine that it needs.
    #[arg(long)]
    list: bool,
    /// Print JSON: a line per claim, or the claim with its figures.
    #[arg(long)]
    json: bool,
}

/// Why a claim was not measured.
#[derive(Debug, Error)]
enum ReproduceError {
    #[error("there is no claim `{0}`: `rheo reproduce --list` has the names")]
    Unknown(String),
    #[error("`{command}` failed ({status}), so there is nothing to compare")]
    Command { command: String, status: ExitStatus },
    #[error("`{command}`: {source}")]
    NotRun { command: String, source: io::Error },
}

/// A claim, and its figures as published and here.
#[derive(Serialize)]
struct ClaimOutcome<'a> {
    name: &'a str,
    claim: &'a str,
    page: &'a str,
    rows: &'a str,
    command: &'a str,
    figures: Vec<Reproduced>,
}

/// Lists claims, or measures one.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let claims = Claim::all();
    let Some(name) = &args.name else {
        list(&claims, args.json);
        return Ok(ExitCode::SUCCESS);
    };
    let claim = claims.iter().find(|claim| claim.name == *name);
    let claim = claim.ok_or_else(|| ReproduceError::Unknown(name.clone()))?;
    let command = format!("{} {}", claim.program.name(), claim.command);
    if !args.json {
        let Claim { claim, page, rows, needs, time, .. } = claim;
        out!("{claim}");
        out!("published in {page}, from {rows}");
        out!("runs `{command}`: about {time}, needs {needs}");
    }
    if BUILD.profile == "debug" {
        err!(
            "built without optimisation: times are longer, and rates lower, than the published ones"
        );
    }
    let figures = claim.compare(&output(claim, &command)?);
    let is_complete = figures.iter().all(|figure| figure.here.is_some());
    if args.json {
        let Claim { name, claim, page, rows, .. } = claim;
        let outcome = ClaimOutcome { name, claim, page, rows, command: &command, figures };
        out!("{}", serde_json::to_string(&outcome).expect("an outcome is plain data"));
    } else {
        out!("{}", Reproduced::heading());
        figures.iter().for_each(|figure| out!("{}", figure.line()));
    }
    Ok(if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(claims: &[Claim], json: bool) {
    if !json {
        out!("{}", Claim::heading());
    }
    for claim in claims {
        match json {
            true => out!("{}", serde_json::to_string(claim).expect("a claim is plain data")),
            false => out!("{}", claim.line()),
        }
    }
}

/// The JSON that the claim's command prints; its progress goes to standard error meanwhile.
fn output(claim: &Claim, command: &str) -> Result<String, Failed> {
    let program = match claim.program {
        ClaimProgram::RheoLab => std::env::current_exe()?,
        ClaimProgram::Rheo => rheo()?,
    };
    let mut process = Command::new(program);
    process.args(claim.command.split_whitespace()).arg("--json").stderr(Stdio::inherit());
    let not_run = |source| ReproduceError::NotRun { command: command.to_owned(), source };
    let output = process.output().map_err(not_run)?;
    if !output.status.success() {
        let (command, status) = (command.to_owned(), output.status);
        return Err(ReproduceError::Command { command, status }.into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn commands_of_claims_are_accepted() {
        for claim in Claim::all() {
            if claim.program == ClaimProgram::RheoLab {
                let words = ["rheo-lab"].into_iter().chain(claim.command.split_whitespace());
                let parsed = Cli::try_parse_from(words.chain(["--json"]));
                assert!(parsed.is_ok(), "{}: {}", claim.name, parsed.unwrap_err());
            }
        }
    }
}
