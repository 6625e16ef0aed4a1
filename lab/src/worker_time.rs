//! The processor time of workers, by their threads' own clocks.

use std::fs;
use std::time::Duration;

use rheostat_kernel::thread_cpu_time;

/// What the names of workers' threads begin with.
const WORKER: &str = "rheo-worker-";

/// Processor time of each worker of this process up to a moment.
pub(crate) struct WorkersCpu(Vec<(i32, Duration)>);

impl WorkersCpu {
    /// Up to now. Threads that end meanwhile are left out.
    pub(crate) fn now() -> WorkersCpu {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let workers = tasks.filter(|task| {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            name.starts_with(WORKER)
        });
        let thread = |task: fs::DirEntry| task.file_name().to_str()?.parse().ok();
        let time = |thread| Some((thread, thread_cpu_time(thread)?));
        WorkersCpu(workers.filter_map(thread).filter_map(time).collect())
    }

    /// What they took since `first`, all together. One that has ended since took nothing, whatever others did.
    pub(crate) fn since(&self, first: &WorkersCpu) -> Duration {
        let before = |thread: i32| first.0.iter().find(|(earlier, _)| *earlier == thread);
        let since = |(thread, time): &(i32, Duration)| {
            time.saturating_sub(before(*thread).map_or(Duration::ZERO, |(_, before)| *before))
        };
        self.0.iter().map(since).sum()
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads, clock.

    use std::thread;

    use super::*;

    #[test]
    fn threads_count_if_they_are_named_as_workers() {
        let work = || {
            let start = WorkersCpu::now();
            // Its own time counts, or nothing ever does.
            let counts = |_: &u64| WorkersCpu::now().since(&start) > Duration::ZERO;
            (0..u64::MAX).map(std::hint::black_box).find(counts).is_some()
        };
        let worker = thread::Builder::new().name(format!("{WORKER}7")).spawn(work).unwrap();
        assert!(worker.join().unwrap());
    }

    #[test]
    fn a_worker_that_ends_takes_nothing_from_what_others_did() {
        let of = |times: &[(i32, u64)]| {
            WorkersCpu(times.iter().map(|(t, ms)| (*t, Duration::from_millis(*ms))).collect())
        };
        let (first, last) = (of(&[(1, 500), (2, 10)]), of(&[(2, 30), (3, 7)]));
        assert_eq!(last.since(&first), Duration::from_millis(27));
    }
}
