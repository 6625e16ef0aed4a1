//! Scheduling class, priority and nice value of the calling thread.
#![allow(unsafe_code)]

use std::io;

/// What the kernel schedules the calling thread by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scheduling {
    class: i32,
    priority: i32,
    nice: i32,
}

impl Scheduling {
    /// That of the calling thread.
    pub(crate) fn of_this_thread() -> io::Result<Scheduling> {
        // The system calls themselves: musl's functions of these names only fail.
        // SAFETY: requests a number; 0 is the calling thread.
        let class = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
        let mut priority = 0_i32;
        // SAFETY: the kernel writes `sched_param`, one number, which lives until the call returns.
        let got = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority) };
        if class < 0 || got < 0 {
            return Err(io::Error::last_os_error());
        }
        let nice = rustix::process::getpriority_process(None)?;
        Ok(Scheduling { class: class as i32, priority, nice })
    }

    /// SCHED_FIFO at this priority.
    pub(crate) fn fifo(priority: u8) -> Scheduling {
        Scheduling { class: libc::SCHED_FIFO, priority: priority.into(), nice: 0 }
    }

    /// SCHED_OTHER at this nice value.
    pub(crate) fn nice(nice: i8) -> Scheduling {
        Scheduling { class: libc::SCHED_OTHER, priority: 0, nice: nice.into() }
    }

    /// Schedules the calling thread so.
    ///
    /// # Errors
    /// `EPERM` where that is more than the process may have.
    pub(crate) fn set(self) -> io::Result<()> {
        // SAFETY: the kernel reads `sched_param`, one number, which lives until the call returns.
        let set = unsafe {
            libc::syscall(libc::SYS_sched_setscheduler, 0, self.class, &raw const self.priority)
        };
        if set < 0 {
            return Err(io::Error::last_os_error());
        }
        // Of no meaning in a real-time class, where it may be refused.
        if self.priority == 0 {
            rustix::process::setpriority_process(None, self.nice)?;
        }
        Ok(())
    }
}
