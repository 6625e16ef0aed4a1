//! `rheo top`: a running instance in a terminal, as htop(1) shows processes.

mod interval;
mod screen;
mod view;

use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{self, Event};
use rheostat_base::unit::parse_duration;
use rheostat_observe::control::{Reply, Request, Status};
use thiserror::Error;

use self::interval::Interval;
use self::view::{Action, View};
use crate::control::{ClientError, ControlClient, Target};

/// The bounds of the time between two screens.
const SHORTEST: Duration = Duration::from_millis(100);
/// The screen of `--once`, in characters.
const ONCE: (u16, u16) = (100, 40);

/// Why there is no screen.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Client(#[from] ClientError),
    #[error("the terminal cannot be used: {0}; --once prints one screen without one")]
    Terminal(#[from] io::Error),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo top
  rheo top --control /run/rheo/nat.sock --interval 2s
  rheo top --once

Rates are those of the last interval. Keys: F1 or h help, F4 or \\ shows names with a text alone, F6 or s sorts lanes by
number or load, space stops and goes on, arrows and page keys scroll the lanes, F10 or q ends.

With --once, one screen is printed after one interval, without colours, for scripts and reports.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// The time between two screens, 100ms at least.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// Print one screen and end.
    #[arg(long)]
    once: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    (interval >= SHORTEST)
        .then_some(interval)
        .ok_or_else(|| format!("`{text}` is shorter than 100ms, the shortest interval"))
}

/// Asks the instance at intervals and shows what has happened in between.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Error> {
    let mut client = args.target.connect()?;
    let first = status(&mut client)?.ok_or(ClientError::Ended)?;
    if args.once {
        std::thread::sleep(args.interval);
        let second = status(&mut client)?.ok_or(ClientError::Ended)?;
        out!("{}", print(&View::default(), &Interval::between(&first, &second))?);
        return Ok(ExitCode::SUCCESS);
    }
    let mut terminal = ratatui::try_init()?;
    let outcome = follow(&mut client, first, args.interval, &mut terminal);
    ratatui::restore();
    if let Shown::InstanceEnded = outcome? {
        err!("the instance has ended");
    }
    Ok(ExitCode::SUCCESS)
}

/// Why the screen was left.
enum Shown {
    Quit,
    InstanceEnded,
}

fn follow(
    client: &mut ControlClient,
    first: Status,
    pause: Duration,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<Shown, Error> {
    let mut view = View::default();
    let mut last = first;
    let mut shown = Interval::between(&last, &last);
    let mut next = Instant::now() + pause;
    loop {
        terminal.draw(|frame| screen::draw(frame, &mut view, &shown))?;
        let left = next.saturating_duration_since(Instant::now());
        if event::poll(left)? {
            if let Event::Key(key) = event::read()?
                && view.press(key) == Action::Quit
            {
                return Ok(Shown::Quit);
            }
            continue;
        }
        next = Instant::now() + pause;
        let Some(now) = status(client)? else { return Ok(Shown::InstanceEnded) };
        if !view.is_stopped {
            shown = Interval::between(&last, &now);
            view.note(&shown);
        }
        last = now;
    }
}

/// The status; `None` when the instance has ended.
fn status(client: &mut ControlClient) -> Result<Option<Status>, ClientError> {
    let reply = client.send(&Request::Status).and_then(|()| client.receive());
    match reply {
        Ok(Some(Reply::Status(status))) => Ok(Some(*status)),
        Ok(_) | Err(ClientError::Broken(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// One screen as text.
fn print(view: &View, interval: &Interval) -> io::Result<String> {
    let (width, height) = ONCE;
    let Ok(mut terminal) = Terminal::new(TestBackend::new(width, height));
    let mut view = View { is_printed: true, ..view.clone() };
    let Ok(screen) = terminal.draw(|frame| screen::draw(frame, &mut view, interval));
    let rows = screen.buffer.content.chunks(usize::from(width));
    let lines = rows.map(|row| {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests;
