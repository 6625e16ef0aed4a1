//! `rheo trace`: follows packets through a running instance.

use std::io;
use std::process::ExitCode;

use rheostat_capture::Expression;
use rheostat_observe::control::{Reply, Request, TraceRequest};
use thiserror::Error;

use crate::control::{ClientError, Target};
use crate::interrupt;

/// Why no packets were traced, or no more.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Client(#[from] ClientError),
    /// Signals cannot be watched.
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo trace
  rheo trace --filter 'tcp and dst port 443' --count 3
  rheo trace --filter 'host 10.0.0.7' --json

Each packet is one block: where and how long it was, its flow and shard, whether it changed lanes, whether its
flow was known, what each function decided and rewrote, and what became of it, with the microseconds since a
lane took it from its queue. The filter is that of `rheo capture` and looks at packets as they are received.

Of a service over TCP, a block has the segment, what its connection or listener decided, what the program did,
and the segments sent because of it, each with its reason. A segment that no traced packet caused, such as a
retransmission by a timer, is a block of its own; the filter looks at it as it is sent.

One trace runs at a time. Ctrl-C ends it; packets still under way are shown as far as they have come.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// Only packets that this matches when they are received.
    #[arg(long, value_name = "EXPR")]
    filter: Option<Expression>,
    /// How many packets.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..))]
    count: u8,
    /// Print one line of JSON for each packet.
    #[arg(long)]
    json: bool,
}

/// Asks, and prints what comes.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Error> {
    let mut client = args.target.connect()?;
    let filter = args.filter.as_ref().map(ToString::to_string);
    client.send(&Request::Trace(TraceRequest { filter, count: Some(args.count) }))?;
    interrupt::then(client.enough()?)?;
    loop {
        match client.receive()? {
            Some(Reply::Path(path)) if args.json => {
                out!("{}", serde_json::to_string(&path).expect("a path is always JSON"));
            }
            Some(Reply::Path(path)) => out!("{path}\n"),
            Some(Reply::End { packets, lost }) => {
                match lost {
                    0 => err!("{packets} packets traced"),
                    _ => {
                        err!("{packets} packets traced, {lost} notes lost: too many at once")
                    }
                }
                return Ok(ExitCode::SUCCESS);
            }
            Some(_) => {}
            None => return Err(ClientError::Ended.into()),
        }
    }
}
