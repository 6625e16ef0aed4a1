//! Waiting until every processor has passed a point (membarrier(2)).
#![allow(unsafe_code)]

use std::io;

/// Returns once every processor has been outside of the kernel's read-side critical sections: packets
/// that were being placed when this was called have been placed. Takes some milliseconds.
///
/// # Errors
/// The kernel's: `ENOSYS` where it does not have the call, `EINVAL` where `nohz_full` is in use.
pub(crate) fn wait_for_all_processors() -> io::Result<()> {
    // SAFETY: the call takes two numbers and touches no memory.
    let outcome = unsafe { libc::syscall(libc::SYS_membarrier, libc::MEMBARRIER_CMD_GLOBAL, 0, 0) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
