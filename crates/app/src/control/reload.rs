//! `rheo reload`: puts a changed configuration in force in a running instance, and the instance's answer.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use rheostat_observe::control::{LONGEST_CONFIGURATION, ReloadRequest, Reply, Request, SentFile};
use thiserror::Error;

use super::instance::Instance;
use super::peer::Peer;
use super::{ClientError, Target};
use crate::reload::{self, ReloadError, SentConfig};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo reload
  rheo reload --control /run/rheo/nat.sock
  rheo reload new.toml --dry-run
  kill -HUP PID

The configuration is checked as by `rheo check`, with the flags that the instance was started with, and takes the
place of the one in force as a whole, or not at all: connections go on. What cannot change in a running instance
(devices, lanes, shards, memory, the list of functions) is named, and refuses it. The command returns once all
lanes go by it, and prints what has changed. Without FILE, the instance reads the file that it was started from,
as the user that it has become; relative paths in a configuration are those of the instance in any case.
SIGHUP does the same for an instance without a controlling terminal. Logs are opened anew, so that a reload
follows logrotate.

The exit status is 0 when the configuration is in force, or nothing in it has changed; 2 when it was refused, or
a lane has not gone by it within 5 s, which the message names.")]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
    /// The configuration, which is read as you and sent to the instance; without it, the one that it was started from.
    file: Option<PathBuf>,
    /// Check the configuration and print what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Why nothing was reloaded.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{}` is longer than the {} MiB that a configuration may have", .0.display(), LONGEST_CONFIGURATION >> 20)]
    TooLong(PathBuf),
    #[error("{0}")]
    Client(#[from] ClientError),
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Error> {
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|source| Error::Read { path: path.clone(), source })
    };
    let text = args.file.as_ref().map(read).transpose()?;
    let sent = match (&args.file, &text) {
        (Some(path), Some(text)) => {
            let bytes = text.len() as u64;
            if bytes > LONGEST_CONFIGURATION {
                return Err(Error::TooLong(path.clone()));
            }
            let whole = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            Some(SentFile { name: whole.display().to_string(), bytes })
        }
        _ => None,
    };
    let request = Request::Reload(ReloadRequest { sent, dry_run: args.dry_run });
    let mut client = args.target.connect()?;
    client.send(&request)?;
    if let Some(text) = &text {
        client.send_bytes(text)?;
    }
    if let Reply::Reloaded(reloaded) = client.receive()?.ok_or(ClientError::Ended)? {
        if !reloaded.warnings.is_empty() {
            err!("{}", reloaded.warnings.trim_end());
        }
        match args.json {
            true => out!("{}", serde_json::to_string(&reloaded).expect("names and numbers")),
            false => out!("{reloaded}"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Instance {
    /// Reloads, and answers when the configuration is in force.
    pub(super) fn reload(&self, request: ReloadRequest, peer: &mut Peer) -> io::Result<()> {
        let ReloadRequest { sent, dry_run } = request;
        let sent = match sent {
            Some(SentFile { bytes, .. }) if bytes > LONGEST_CONFIGURATION => {
                let most = LONGEST_CONFIGURATION;
                let message = format!("a configuration has {most} bytes at most");
                peer.send(&Reply::Error { message })?;
                // What follows the line is no request.
                return Err(io::ErrorKind::InvalidData.into());
            }
            Some(SentFile { name, bytes }) => match peer.next_bytes(bytes)? {
                Some(bytes) => match String::from_utf8(bytes) {
                    Ok(text) => Some(SentConfig { name, text }),
                    Err(_) => {
                        let message = format!("{name} is no text in UTF-8");
                        return peer.send(&Reply::Error { message });
                    }
                },
                None => return Ok(()),
            },
            None => None,
        };
        let Some(reloader) = &self.reloader else {
            let message = "this instance was not started from a configuration file, so there is none to reload; `rheo run FILE` \
                           starts one from a file"
                .to_owned();
            return peer.send(&Reply::Error { message });
        };
        let is_over = || peer.run_is_over();
        let reply = match reloader.reload(sent, dry_run, &is_over) {
            Ok(reloaded) => {
                if !dry_run {
                    reload::report(&reloaded);
                }
                Reply::Reloaded(Box::new(reloaded))
            }
            Err(error) => {
                if let ReloadError::Pending(_) = error {
                    tracing::warn!(target: "reload", "{error}");
                }
                Reply::Error { message: error.to_string() }
            }
        };
        peer.send(&reply)
    }
}
