//! Why programs cannot be brought into the kernel.

use std::error::Error;
use std::io;

use aya::programs::ProgramError;
use rheostat_kernel::capability::{Capability, Refusal};
use thiserror::Error;

use rheostat_capture::filter::FilterError;

/// Why a program cannot be loaded, or not attached.
#[derive(Debug, Error)]
pub enum BpfError {
    /// The process may not do this.
    #[error("{0}")]
    Permission(Refusal),
    /// The kernel refuses a program or a map.
    #[error("the kernel does not accept {what} (Linux 5.18 or newer is needed): {reason}")]
    Load {
        /// What it does not accept.
        what: &'static str,
        /// Its error, in one line.
        reason: String,
        /// The whole output of its verifier about the program; empty where there is none.
        verifier_log: String,
    },
    /// A map cannot be mapped into this process.
    #[error("cannot map {map} into memory: {source}")]
    Map {
        /// Which map.
        map: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// The filter cannot be applied.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// There is no such interface.
    #[error("there is no interface number {0} (any more)")]
    NoInterface(u32),
    /// Something else has the place where the program belongs.
    #[error(
        "interface number {interface} has another XDP program: if it is not needed, remove it with \
         `ip link set dev IFACE xdp off`"
    )]
    Occupied {
        /// The interface.
        interface: u32,
    },
    /// The interface does not take the program.
    #[error("interface number {interface} does not take the program in {mode} mode: {reason}")]
    Attach {
        /// The interface.
        interface: u32,
        /// How it was to be attached.
        mode: &'static str,
        /// What the kernel said.
        reason: String,
    },
    /// There is no such place for a socket.
    #[error("lane {lane} of hardware queue {hardware_queue} cannot have a socket: {reason}")]
    Register {
        /// The queue of the interface.
        hardware_queue: u32,
        /// The lane.
        lane: u16,
        /// What is wrong.
        reason: String,
    },
}

impl BpfError {
    /// The error of loading `what`.
    ///
    /// The verifier refuses a program that it finds wrong and one that needs a capability with the same
    /// number. Which it is shows the effective set of the thread.
    pub(super) fn load(what: &'static str, error: &(dyn Error + 'static)) -> BpfError {
        if let Some(libc::EPERM | libc::EACCES) = os_error(error) {
            let refusal = Refusal::new("load programs into the kernel", &Capability::LOAD);
            let is_verdict = verdict(error).is_some();
            if !refusal.missing().is_empty() || !is_verdict {
                return BpfError::Permission(refusal);
            }
        }
        let (reason, verifier_log) = match verdict(error) {
            Some((source, log)) => (format!("{}: {source}", last_complaint(&log)), log),
            None => (whole(error), String::new()),
        };
        BpfError::Load { what, reason, verifier_log }
    }

    /// Why the kernel does not attach a program to an interface in a mode.
    pub(super) fn attach(
        error: &(dyn Error + 'static),
        interface: u32,
        mode: &'static str,
    ) -> BpfError {
        match os_error(error) {
            Some(libc::EPERM | libc::EACCES) => {
                let needed = [Capability::NetAdmin, Capability::Bpf];
                BpfError::Permission(Refusal::new("attach programs to interfaces", &needed))
            }
            Some(libc::ENODEV) => BpfError::NoInterface(interface),
            _ => BpfError::Attach { interface, mode, reason: whole(error) },
        }
    }

    /// All that the kernel's verifier said about the program that it refuses, in as many lines.
    pub fn verifier_log(&self) -> Option<&str> {
        match self {
            BpfError::Load { verifier_log, .. } if !verifier_log.is_empty() => Some(verifier_log),
            _ => None,
        }
    }
}

/// The number of the system's error that lies behind `error`.
pub(super) fn os_error(error: &(dyn Error + 'static)) -> Option<i32> {
    chain(error).find_map(|cause| cause.downcast_ref::<io::Error>()?.raw_os_error())
}

/// What the operating system and its verifier said, if the verifier has said anything.
fn verdict<'a>(error: &'a (dyn Error + 'static)) -> Option<(&'a io::Error, String)> {
    chain(error).find_map(|cause| match cause.downcast_ref::<ProgramError>()? {
        ProgramError::LoadError { io_error, verifier_log } => {
            let log = verifier_log.to_string();
            (!log.trim().is_empty()).then_some((io_error, log))
        }
        _ => None,
    })
}

/// The line in which the verifier states what is wrong: the last but for its statistics.
fn last_complaint(log: &str) -> &str {
    let mut lines = log.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_statistic =
        |line: &&str| line.starts_with("processed ") || line.starts_with("verification time");
    lines.rfind(|line| !is_statistic(line)).unwrap_or("no reason given")
}

/// An error with all its causes.
pub(super) fn whole(error: &(dyn Error + 'static)) -> String {
    let causes: Vec<_> = chain(error).map(ToString::to_string).collect();
    causes.join(": ")
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_verifier_is_quoted_in_one_line() {
        let log = "0: R1=ctx() R10=fp0\n; int f(struct xdp_md *ctx) @ f.c:1\nR2 pointer comparison \
                   prohibited\nprocessed 9 insns (limit 1000000) max_states_per_insn 0\n";
        assert_eq!(last_complaint(log), "R2 pointer comparison prohibited");
        assert_eq!(last_complaint("\nprocessed 0 insns\n"), "no reason given");
    }
}
