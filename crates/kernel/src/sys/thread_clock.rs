//! The processor time of any thread of this process.
#![allow(unsafe_code)]

use std::time::Duration;

/// What the scheduler has counted for thread `thread` of this process up to now, exact to the nanosecond also while it
/// runs: nothing of it is sampled at ticks. `None` if there is no such thread.
///
/// Bounds: one system call.
pub fn thread_cpu_time(thread: i32) -> Option<Duration> {
    // What `pthread_getcpuclockid` makes of a thread's number: it inverted, above three bits for "a thread's" and
    // "counted by the scheduler" (Linux include/linux/posix-timers_types.h).
    const OF_THREAD_BY_SCHEDULER: i32 = 0b110;
    let clock = (!thread << 3) | OF_THREAD_BY_SCHEDULER;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one `timespec`, which lives until the call returns.
    let got = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (got == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    //! Timed: threads, sleep, clock.

    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn another_thread_is_counted_for_what_it_works_and_not_for_what_it_sleeps() {
        let (tell, told) = channel();
        let (go, wait) = channel::<()>();
        let worker = std::thread::spawn(move || {
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            tell.send((own, Duration::ZERO)).unwrap();
            wait.recv().unwrap();
            let clock = rustix::time::ClockId::ThreadCPUTime;
            let worked = || {
                let time = rustix::time::clock_gettime(clock);
                Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
            };
            while worked() < Duration::from_millis(20) {}
            tell.send((own, worked())).unwrap();
            wait.recv().unwrap();
        });
        let (thread, _) = told.recv().unwrap();
        let before = thread_cpu_time(thread).unwrap();
        assert!(before < Duration::from_millis(20), "{before:?}");
        go.send(()).unwrap();
        let (_, worked) = told.recv().unwrap();
        let after = thread_cpu_time(thread).unwrap();
        assert!(after >= worked, "{after:?} after {worked:?}");
        go.send(()).unwrap();
        worker.join().unwrap();
        // The kernel lets others join a thread some moments before it has taken it off its list.
        let is_gone = || {
            std::thread::sleep(Duration::from_millis(1));
            thread_cpu_time(thread).is_none()
        };
        assert!((0..10_000).any(|_| is_gone()), "it has ended");
    }
}
