//! `rheo table`: shows and rewrites the indirection table of a device.

use std::process::ExitCode;
use std::time::Duration;

use rheostat_observe::control::{Reply, Request, Shuffle};

use super::{ClientError, Target};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo table show --device lan
  rheo table shuffle --device lan
  rheo table shuffle --device lan --times 1000 --seed 7 --pause 1ms
  rheo table set --device lan 0 1 0 1

Shards stay with their lanes: a packet that reaches another lane than before is handed to the owner of its
shard. The command returns once no packet can be placed by the old entries any more. While packets change
queues, some of a flow may overtake others; the summary counts them as reordered.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the table.
    Show(TableDevice),
    /// Put the entries into another order.
    Shuffle {
        #[command(flatten)]
        device: TableDevice,
        /// How many times, each once the one before is in force.
        #[arg(long, value_name = "N", default_value_t = 1)]
        times: u32,
        /// What the order is drawn from.
        #[arg(long, value_name = "N", default_value_t = 0)]
        seed: u64,
        /// How long to wait after each time, such as 1ms; at most 60 s, in whole milliseconds.
        #[arg(long, value_name = "TIME", value_parser = rheostat_base::unit::parse_duration)]
        pause: Option<Duration>,
    },
    /// Write all entries.
    Set {
        #[command(flatten)]
        device: TableDevice,
        /// For each bucket the number of its lane, counted from 0.
        #[arg(required = true)]
        entries: Vec<u16>,
    },
}

#[derive(Clone, Debug, clap::Args)]
struct TableDevice {
    /// The device, as the configuration names it.
    #[arg(long, value_name = "NAME")]
    device: String,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, ClientError> {
    let (device, entries, shuffle) = match &args.action {
        Action::Show(device) => (device, None, None),
        Action::Shuffle { device, times, seed, pause } => {
            let pause_ms = pause.unwrap_or_default().as_millis() as u64;
            (device, None, Some(Shuffle { seed: *seed, times: *times, pause_ms }))
        }
        Action::Set { device, entries } => (device, Some(entries.clone()), None),
    };
    let TableDevice { device, json } = device.clone();
    let reply = args.target.ask(&Request::Table { device, entries, shuffle })?;
    match &reply {
        Reply::Table { .. } if json => {
            out!("{}", serde_json::to_string(&reply).expect("a reply is always JSON"));
        }
        Reply::Table { device, entries, rewrites } => show(device, entries, *rewrites),
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Sixteen entries on a line, behind the number of the first.
fn show(device: &str, entries: &[u16], rewrites: u32) {
    match rewrites {
        0 => out!("{device}: {} entries", entries.len()),
        1 => out!("{device}: {} entries, rewritten", entries.len()),
        times => out!("{device}: {} entries, rewritten {times} times", entries.len()),
    }
    for (row, entries) in entries.chunks(16).enumerate() {
        let entries: String = entries.iter().map(|lane| format!(" {lane:>2}")).collect();
        out!("{:>5} {entries}", row * 16);
    }
}
