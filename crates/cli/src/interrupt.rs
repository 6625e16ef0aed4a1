//! What Ctrl-C does to a command that goes on until it is told to end.

use std::io;
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Calls `end` at the first interrupt; the second ends the process at once.
///
/// # Errors
/// When signals cannot be watched.
pub(crate) fn then(end: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().name("rheo-signals".into()).spawn(move || {
        for (number, _) in signals.forever().enumerate() {
            if number > 0 {
                std::process::exit(130);
            }
            end();
        }
    })?;
    Ok(())
}
