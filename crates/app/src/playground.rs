//! `rheo try`: a chain between two hosts that are network namespaces, to look at and to play with.

mod chain;
mod gateway;
mod network;

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rheostat_io::CaptureReader;
use thiserror::Error;

use crate::interrupt;

use chain::TriedChain;
use gateway::{Gateway, GatewayError};
use network::{NetworkError, TriedNetwork};

/// Why nothing could be tried.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error(
        "`rheo try {0}` makes network namespaces, which takes root: run `sudo rheo try {0}`. Without root, `rheo run \
         configs/nat-sim.toml` runs a NAT on simulated interfaces"
    )]
    NotRoot(&'static str),
    #[error("{0}")]
    Network(#[from] NetworkError),
    #[error("{0}")]
    Gateway(#[from] GatewayError),
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  sudo rheo try nat
  sudo rheo try firewall --once

Two hosts and a gateway between them are network namespaces of their own: nothing appears among the interfaces, addresses and
routes of this machine. The chain runs in the gateway. `rheo try` shows a ping over IPv4 and IPv6, the way of a packet (`rheo
trace`) and a capture, prints commands to go on with, and waits. Ctrl-C ends it; all that it made is deleted then. Several
can run at a time. It takes root and `ip` (iproute2).")]
pub(crate) struct Args {
    /// The chain.
    #[arg(value_enum)]
    chain: TriedChain,
    /// End after the demonstration.
    #[arg(long)]
    once: bool,
}

/// Where the host outside is reached.
const OUTSIDE: [&str; 2] = ["203.0.113.254", "2001:db8:113::fe"];
/// How often the end is looked for.
const GLANCE: Duration = Duration::from_millis(50);

/// Makes everything, shows it, and waits for the end.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Error> {
    let Args { chain, once } = *args;
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot(chain.name()));
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    interrupt::set(&interrupted)?;
    let network = TriedNetwork::make()?;
    let mut gateway = Gateway::start(&network, &chain.config())?;
    let tour = Tour { network: &network, gateway: &gateway, interrupted: &interrupted };
    let is_well = tour.show(chain)?;
    while !once && !interrupted.load(Ordering::Relaxed) && gateway.is_running() {
        thread::sleep(GLANCE);
    }
    gateway.stop();
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What is shown of a gateway between two hosts.
struct Tour<'a> {
    network: &'a TriedNetwork,
    gateway: &'a Gateway,
    interrupted: &'a AtomicBool,
}

impl Tour<'_> {
    /// Shows everything. Returns whether all of it worked.
    fn show(&self, chain: TriedChain) -> io::Result<bool> {
        let (inside, outside) = (self.network.inside(), self.network.outside());
        let name = chain.name();
        out!("host {inside}        192.168.77.2   fd77::2");
        out!("  |");
        out!("rheo ({name})     lan 192.168.77.1, fd77::1   wan 203.0.113.1, 2001:db8:113::1");
        out!("  |");
        out!("host {outside}       203.0.113.254  2001:db8:113::fe");
        out!("\nconfiguration: {}", self.gateway.config().display());
        let mut is_well = true;
        for address in OUTSIDE {
            is_well &= self.ping(address)?;
        }
        is_well &= self.trace()?;
        is_well &= self.capture()?;
        if !self.interrupted.load(Ordering::Relaxed) {
            self.propose();
        }
        Ok(is_well)
    }

    /// Pings the host outside from inside. Returns whether it answered.
    fn ping(&self, address: &str) -> io::Result<bool> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let mut ping = self.ping_command(address, "3");
        out!("\n$ {}", line_of(&ping));
        let output = ping.output()?;
        print(&output);
        Ok(output.status.success() || self.interrupted.load(Ordering::Relaxed))
    }

    fn ping_command(&self, address: &str, count: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.network.inside(), "ping", "-n", "-c", count]);
        command.args(["-i", "0.2", "-W", "2", address]).stdin(Stdio::null());
        command
    }

    /// Traces a packet of a ping and its reply.
    fn trace(&self) -> io::Result<bool> {
        let arguments = ["trace", "--filter", "icmp", "--count", "2"];
        self.during_ping(&arguments, print)
    }

    /// Captures a ping before and behind the chain.
    fn capture(&self) -> io::Result<bool> {
        let file = self.gateway.folder().join("ping.pcapng");
        let name = file.display().to_string();
        let arguments = ["capture", "--filter", "icmp", "--count", "4", "--output", &name];
        self.during_ping(&arguments, |output| {
            show_capture(&file);
            print(output);
        })
    }

    /// Runs a command of the instance while the host inside pings, and shows its output.
    fn during_ping(&self, arguments: &[&str], show: impl FnOnce(&Output)) -> io::Result<bool> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let mut command = self.gateway.command(arguments);
        out!("\n$ {}", line_of(&command));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        // The command has to listen before the packets come: so they go on coming.
        while child.try_wait()?.is_none() && !self.interrupted.load(Ordering::Relaxed) {
            self.ping_command(OUTSIDE[0], "1").output()?;
        }
        end(&mut child);
        let output = child.wait_with_output()?;
        show(&output);
        Ok(output.status.success() || self.interrupted.load(Ordering::Relaxed))
    }

    fn propose(&self) {
        let socket = self.gateway.socket();
        let control = socket.display();
        let (inside, outside) = (self.network.inside(), self.network.outside());
        out!("\nLook around:");
        out!("  ip netns exec {inside} bash                  # a shell on the host inside");
        out!(
            "  ip netns exec {outside} nc -l 8080           # a server outside, for `nc 203.0.113.254 8080` inside"
        );
        out!("  ip netns exec {inside} nc -v 203.0.113.254 23   # refused by the rule `no telnet`");
        for command in ["status", "top", "trace", "capture --output x.pcapng"] {
            out!("  rheo {command} --control {control}");
        }
        out!(
            "  ip netns exec {} ip link               # the gateway's interfaces",
            self.network.gateway()
        );
        out!("Ctrl-C ends it and deletes the namespaces.");
    }
}

fn print(output: &Output) {
    for text in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(text);
        if !text.trim().is_empty() {
            out!("{}", text.trim_end());
        }
    }
}

/// Prints the packets of a capture in words.
fn show_capture(file: &Path) {
    let Ok(Ok(mut reader)) = File::open(file).map(CaptureReader::new) else { return };
    while let Ok(Some(record)) = reader.next_record() {
        out!("{}", rheostat_cases::words(record.bytes));
    }
}

/// The command as one would type it.
fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let own = std::env::current_exe().ok();
    let words = words.map(|word| match own.as_ref().is_some_and(|own| own.as_os_str() == word) {
        true => "rheo".to_owned(),
        false => word.to_string_lossy().into_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Ends a child that may have ended.
fn end(child: &mut Child) {
    if let Ok(None) = child.try_wait() {
        let _ = child.kill();
    }
}

/// Deletes a folder with what is in it.
fn delete_folder(folder: &Path) {
    let _ = fs::remove_dir_all(folder);
}
