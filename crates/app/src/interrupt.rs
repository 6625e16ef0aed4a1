//! The signals that end a command which runs until it is interrupted.
//!
//! SIGINT, SIGTERM and SIGQUIT end it in good order; a second of them ends the process at once. SIGHUP, which
//! a closed terminal sends, ends it in good order, too, however often it comes: a shell and the kernel send
//! one each. A process that was started with SIGHUP ignored, as by nohup, goes on. One without a controlling terminal gets no such
//! SIGHUP: there it may stand for a reload ([`Hangups`]).

mod hangups;

use std::io::{self, IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub(crate) use self::hangups::{HangupThread, Hangups};

use rheostat_kernel::{ProcFields, has_controlling_terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

/// The signals of which a second one ends the process at once.
const URGENT: [i32; 3] = [SIGINT, SIGTERM, SIGQUIT];
/// What the process exits with then.
const ENDED_AT_ONCE: i32 = 130;

/// Calls `end` at the first signal.
///
/// # Errors
/// When signals cannot be watched.
pub(crate) fn then(end: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new(URGENT.into_iter().chain(hangup()))?;
    thread::Builder::new().name("rheo-signals".into()).spawn(move || {
        let (mut ends, mut is_urgent) = (false, false);
        for signal in signals.forever() {
            if URGENT.contains(&signal) && std::mem::replace(&mut is_urgent, true) {
                std::process::exit(ENDED_AT_ONCE);
            }
            if !std::mem::replace(&mut ends, true) {
                end();
            }
        }
    })?;
    Ok(())
}

/// Sets `interrupted` at the first signal, without a thread.
///
/// # Errors
/// When signals cannot be watched.
pub fn set(interrupted: &Arc<AtomicBool>) -> io::Result<()> {
    set_urgent(interrupted)?;
    if let Some(signal) = hangup() {
        flag::register(signal, interrupted.clone())?;
    }
    Ok(())
}

/// As [`set`], for a run that can be configured anew: without a controlling terminal, SIGHUP does not set `interrupted`, and what is
/// returned takes it.
///
/// # Errors
/// As [`set`].
pub(crate) fn set_but_hangups(interrupted: &Arc<AtomicBool>) -> io::Result<Option<Hangups>> {
    if has_controlling_terminal() {
        set(interrupted)?;
        return Ok(None);
    }
    set_urgent(interrupted)?;
    hangup().map(Hangups::watch).transpose()
}

fn set_urgent(interrupted: &Arc<AtomicBool>) -> io::Result<()> {
    let is_urgent = Arc::new(AtomicBool::new(false));
    for signal in URGENT {
        flag::register_conditional_shutdown(signal, ENDED_AT_ONCE, is_urgent.clone())?;
        flag::register(signal, is_urgent.clone())?;
        flag::register(signal, interrupted.clone())?;
    }
    Ok(())
}

/// How often a wait for standard input looks for a signal.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Waits until standard input has something to read, or has ended. A terminal is not waited for: it is no capture.
///
/// # Errors
/// When `interrupted` is set before, or standard input cannot be waited for.
pub(crate) fn await_input(interrupted: &AtomicBool) -> io::Result<()> {
    let input = io::stdin();
    if input.is_terminal() {
        return Ok(());
    }
    while !interrupted.load(Ordering::Relaxed) {
        let mut polled = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut polled, Some(&GLANCE)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::Interrupted,
        "interrupted before standard input had a packet",
    ))
}

/// Standard input, which has ended when a signal has come.
pub(crate) struct StandardInput {
    interrupted: Arc<AtomicBool>,
}

impl StandardInput {
    /// Watches for signals from now on.
    ///
    /// # Errors
    /// When it is a terminal, or signals cannot be watched.
    pub(crate) fn open() -> io::Result<StandardInput> {
        if io::stdin().is_terminal() {
            let refused = "it is a terminal; pipe a capture into it, as from `tcpdump -w -`";
            return Err(io::Error::other(refused));
        }
        let interrupted = Arc::new(AtomicBool::new(false));
        set(&interrupted)?;
        Ok(StandardInput { interrupted })
    }
}

impl Read for StandardInput {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match await_input(&self.interrupted) {
            // Around the buffer of `Stdin`, at which `poll` does not look.
            Ok(()) => Ok(rustix::io::read(io::stdin(), bytes)?),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// SIGHUP, unless the process was started with it ignored.
fn hangup() -> Option<i32> {
    (!ProcFields::of_this_process().ignores(SIGHUP as u32)).then_some(SIGHUP)
}
