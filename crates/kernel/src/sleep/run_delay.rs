//! How long a thread waits for a core.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// How long the thread that made it has been ready to run and had no core, as the scheduler counts it (the second figure of
/// `/proc/PID/task/TID/schedstat`). Where the kernel does not count it, nothing.
#[derive(Debug)]
pub struct RunDelay {
    file: Option<File>,
    taken: Duration,
}

impl RunDelay {
    /// That of the calling thread, from now on.
    pub fn of_this_thread() -> RunDelay {
        let file = File::open("/proc/thread-self/schedstat").ok();
        let mut delay = RunDelay { file, taken: Duration::ZERO };
        delay.take();
        delay
    }

    /// What was added since the last call. Costs a system call.
    pub fn take(&mut self) -> Duration {
        let mut text = [0; 96];
        let read = self.file.as_ref().and_then(|file| file.read_at(&mut text, 0).ok());
        let total =
            std::str::from_utf8(&text[..read.unwrap_or(0)]).map_or(Duration::ZERO, run_delay);
        let added = total.saturating_sub(self.taken);
        self.taken += added;
        added
    }
}

/// The second figure of a thread's `schedstat`: nanoseconds on a run queue.
pub fn run_delay(schedstat: &str) -> Duration {
    let nanos = schedstat.split_whitespace().nth(1).and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_is_the_kernels() {
        assert_eq!(run_delay("123456 7890 42\n"), Duration::from_nanos(7_890));
        assert_eq!((run_delay(""), run_delay("1 x 2")), Default::default());
    }

    #[test]
    fn what_was_taken_is_not_counted_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("schedstat");
        let write = |nanos: u64| std::fs::write(&path, format!("5 {nanos} 1\n")).unwrap();
        write(300);
        let mut delay = RunDelay { file: File::open(&path).ok(), taken: Duration::ZERO };
        assert_eq!((delay.take(), delay.take()), (Duration::from_nanos(300), Duration::ZERO));
        write(1_000);
        assert_eq!(delay.take(), Duration::from_nanos(700));
        let mut unknown = RunDelay { file: None, taken: Duration::ZERO };
        assert_eq!(unknown.take(), Duration::ZERO);
    }
}
