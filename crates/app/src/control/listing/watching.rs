//! `--watch`: a listing again and again.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::cursor::MoveTo;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, size};
use rheostat_observe::control::{ListedRow, Request, TextTable};

use super::pages::{PageEnd, receive_page};
use super::{ListingArgs, report_rest};
use crate::control::ClientError;
use crate::interrupt;

/// How often a pause looks for a signal.
const GLANCE: Duration = Duration::from_millis(50);

/// Prints the listing until a signal comes or the instance has ended. Each time is a connection of its own, so that watchers do not
/// keep others from asking.
pub(super) fn follow<R: ListedRow>(
    args: &ListingArgs,
    request: &Request,
    pause: Duration,
) -> Result<ExitCode, ClientError> {
    let interrupted = Arc::new(AtomicBool::new(false));
    interrupt::set(&interrupted).map_err(ClientError::Broken)?;
    let is_over = || interrupted.load(Ordering::Relaxed);
    let mut is_first = true;
    while !is_over() {
        let start = Instant::now();
        let mut rows = Vec::new();
        let end = match receive_page(&args.target, request, |row: R| rows.push(row)) {
            Ok(end) => end,
            Err(ClientError::Refused(message)) => return Err(ClientError::Refused(message)),
            Err(error) if is_first => return Err(error),
            Err(_) => {
                err!("the instance has ended");
                return Ok(ExitCode::SUCCESS);
            }
        };
        show(args, &rows, &end, is_first);
        is_first = false;
        while !is_over() && start.elapsed() < pause {
            thread::sleep(GLANCE.min(pause.saturating_sub(start.elapsed())));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show<R: ListedRow>(args: &ListingArgs, rows: &[R], end: &PageEnd, is_first: bool) {
    match (args.count, args.json) {
        (true, true) => return out!("{{\"count\":{}}}", end.matched),
        (true, false) => return out!("{}", end.matched),
        (false, true) => {
            return out!("{}", serde_json::to_string(rows).expect("rows are always JSON"));
        }
        (false, false) => {}
    }
    let text = TextTable(rows).to_string();
    let mut terminal = io::stdout();
    if !terminal.is_terminal() {
        if !is_first {
            out!("");
        }
        out!("{text}");
        return report_rest(end, rows.len() as u64);
    }
    // A terminal that takes no commands shows the tables below each other.
    let _ = execute!(terminal, Clear(ClearType::All), MoveTo(0, 0));
    let height = size().map_or(usize::MAX, |(_, height)| usize::from(height));
    let lines: Vec<_> = text.lines().collect();
    // The last line is left for the cursor, the one before for the note about the rest.
    let fitting = lines.len().min(height.saturating_sub(2));
    out!("{}", lines[..fitting].join("\n"));
    if fitting < lines.len() {
        out!("… {} more lines; --limit and --sort choose the first ones", lines.len() - fitting);
    }
}
