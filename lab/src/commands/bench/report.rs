//! `rheo bench report`: a page about results, or two of them held against each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::record::{FileHeader, Results};
use crate::report::compare::{compare, compare_requests};
use crate::report::{self, ReportError, ResultFile};

use crate::commands::Failed;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # everything under results/, to report.html
  rheo bench report
  rheo bench report results/bench-balance-20261121T203000Z.jsonl \\
    --output balance.html
  rheo bench report --compare before.jsonl after.jsonl
  # rows of `rheo bench sched`, `rheo sim sched`, `rheo load --record`
  rheo bench report requests.jsonl
  rheo bench report --compare requests-before.jsonl requests-after.jsonl
  rheo bench report --compare before/ after/ --json \\
    | jq 'select(.verdict == \"slower\")'

Results are files that `rheo bench balance`, `rheo sim` and their like keep: a line of JSON per run; lines that
`rheo profile --json` printed; and tables: lines of JSON that any other command printed (.jsonl), or text (.txt).
The page is one file without scripts, for screens of any size and for paper. A file in a folder that cannot be
read is named, and the exit status is 1.

Ratios are B's metric as a multiple of A's, each with an interval of 95 %: over pairs of runs with the same
seed, which had the same packets, or by resampling where there are no such pairs. A difference is reported
where the interval does not hold 1; of equal metrics, up to one in twenty is reported by chance. Of folders,
--compare takes the newest results. Rows about requests are compared by workload, scheduler, workers and load,
with an interval where both rows have one (p99.9, capacity).")]
pub(super) struct Args {
    /// Files of results, or folders with such files.
    #[arg(value_name = "FILE|DIR", default_value = "results", conflicts_with = "compare")]
    places: Vec<PathBuf>,
    /// Where to write the page.
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Print the ratios of two results instead.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "output")]
    compare: Vec<PathBuf>,
    /// Print ratios as lines of JSON.
    #[arg(long, requires = "compare")]
    json: bool,
}

/// Writes the page, or prints ratios.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    if let [a, b] = args.compare.as_slice() {
        return print_ratios(a, b, args.json);
    }
    let ResultFile { results, profiles, rows, unread } = report::find(&args.places)?;
    let results: Vec<Results> = results.into_iter().map(|(_, results)| results).collect();
    let profiles: Vec<_> = profiles.into_iter().map(|(_, profile)| profile).collect();
    fs::write(&args.output, report::page(&results, &profiles, &rows))
        .map_err(|source| ReportError::Io { path: args.output.clone(), source })?;
    let runs: usize = results.iter().map(|results| results.runs.len()).sum();
    let files = if results.len() == 1 { "file" } else { "files" };
    let profiled = match profiles.len() {
        0 => String::new(),
        1 => ", 1 profile".to_owned(),
        count => format!(", {count} profiles"),
    };
    let tables = match rows.len() {
        0 => String::new(),
        1 => ", 1 file of rows".to_owned(),
        count => format!(", {count} files of rows"),
    };
    out!("{}: {runs} runs of {} {files}{profiled}{tables}", args.output.display(), results.len());
    for (path, problem) in &unread {
        err!("not on the page: {}: {problem}", path.display());
    }
    Ok(if unread.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_ratios(a: &Path, b: &Path, json: bool) -> Result<ExitCode, Failed> {
    let (requests_a, requests_b) = (report::request_rows(a)?, report::request_rows(b)?);
    if !requests_a.is_empty() && !requests_b.is_empty() {
        let comparison = compare_requests(&requests_a, &requests_b);
        if json {
            comparison.json_lines().iter().for_each(|line| out!("{line}"));
        } else {
            out!("A: {}\nB: {}\n\n{comparison}", a.display(), b.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let ((path_a, a), (path_b, b)) = (report::one(a)?, report::one(b)?);
    let comparison = compare(&a, &b);
    if json {
        comparison.json_lines().iter().for_each(|line| out!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    for (side, path, results) in [("A", path_a, &a), ("B", path_b, &b)] {
        let FileHeader { scenario, commit, profile, started, simulated, .. } = &results.file_header;
        let origin = if *simulated { "simulated" } else { "measured" };
        out!(
            "{side}: {} ({scenario}, {origin}, commit {commit}, profile {profile}, {started})",
            path.display()
        );
    }
    if a.file_header.text != b.file_header.text {
        out!("note: their scenarios are not the same");
    }
    if a.file_header.machine != b.file_header.machine {
        out!("note: their machines are not the same");
    }
    out!("\n{comparison}");
    Ok(ExitCode::SUCCESS)
}
