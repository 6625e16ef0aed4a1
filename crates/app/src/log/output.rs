//! Lines on standard error, without waiting for a reader that does not read.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long a line waits for its reader.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// Standard error as a log uses it. Lines of several threads do not mix.
#[derive(Debug, Default)]
pub(super) struct LogOutput {
    /// Lines that were not written since the last one that was.
    lost: Mutex<u64>,
}

impl LogOutput {
    /// Writes the line that `line` makes of the number of lines lost before it. It is lost where the reader takes nothing for
    /// [`PATIENCE`], or has gone.
    pub(super) fn write(&self, line: impl FnOnce(u64) -> String) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        // After the first lost line, none waits until the reader reads again.
        let patience = if *lost == 0 { PATIENCE } else { Duration::ZERO };
        match takes_line(patience) && io::stderr().write_all(line(*lost).as_bytes()).is_ok() {
            true => *lost = 0,
            false => *lost += 1,
        }
    }

    /// Writes a line that is not missed.
    pub(super) fn show(&self, line: &str) {
        let _turn = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if takes_line(Duration::ZERO) {
            crate::terminal::line(&mut io::stderr(), format_args!("{line}"));
        }
    }
}

/// Whether standard error takes a line now, or within `patience`. A pipe that can be written to takes 4 KiB (pipe(7)).
fn takes_line(patience: Duration) -> bool {
    let stderr = io::stderr();
    let mut polled = [PollFd::new(&stderr, PollFlags::OUT)];
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(patience.subsec_nanos()) };
    // Where it cannot be polled, the write finds out.
    poll(&mut polled, Some(&timeout)).map_or(true, |ready| ready > 0)
}
