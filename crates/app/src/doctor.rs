//! `rheo doctor`: checks of kernel, interfaces and privileges, with fixes.

mod machine;
mod probe;

use std::io;
use std::process::ExitCode;

use rheostat_observe::doctor::{Finding, examine, lossy_offloads};

use machine::ThisMachine;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rheo doctor
  rheo doctor eth1 eth2
  rheo doctor --probe veth1
  rheo doctor --json | jq '.findings[] | select(.level != \"ok\")'
  rheo doctor --json | jq '.sleep[] | {priority, shortest_us, targets}'

Each line is ok, a warning (something works less well than it could) or an ERROR (something does not work), with
what it means for rheostat and the command that fixes it. Without arguments, all interfaces but the loopback are
checked. Sleeps of microseconds, which polling by `metronome` needs, are measured for a second: what they take and
cost, with the priority that the process has and, where it is allowed, under SCHED_FIFO. Nothing is changed, unless
--probe is given: then a program that lets every packet pass is attached to each interface for a moment, upon which
some drivers reset the link. The exit status is 1 if there is an ERROR, else 0.")]
pub(crate) struct Args {
    /// Interfaces to look at.
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,
    /// Find out whether XDP is native by attaching a program that lets all packets pass.
    #[arg(long)]
    probe: bool,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Examines the machine, and prints what was found.
pub(crate) fn run(args: &Args) -> io::Result<ExitCode> {
    let diagnosis = examine(&ThisMachine::new(args.probe), &args.interfaces);
    if args.json {
        out!("{}", serde_json::to_string(&diagnosis).expect("findings are always JSON"));
    } else {
        out!("{diagnosis}");
    }
    Ok(if diagnosis.has_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The offloads of an interface, or of the other end of its veth pair, by which packets of TCP are lost.
pub(crate) fn offloads(interface: &str) -> Vec<Finding> {
    lossy_offloads(&ThisMachine::new(false), interface)
}
