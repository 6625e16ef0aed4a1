//! The processor time of workers, by their threads' own clocks.

use std::fs;
use std::time::Duration;

use rheostat_io::thread_cpu_time;

/// What the names of workers' threads begin with.
const WORKER: &str = "rheo-worker-";

/// Processor time of all workers of this process up to now. Threads that end meanwhile count as nothing.
pub(crate) fn workers_cpu() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let workers = tasks.filter(|task| {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.starts_with(WORKER)
    });
    let thread = |task: fs::DirEntry| task.file_name().to_str()?.parse().ok();
    workers.filter_map(thread).filter_map(thread_cpu_time).sum()
}

#[cfg(test)]
mod tests {
    //! Timed: threads, clock.

    use std::thread;

    use super::*;

    #[test]
    fn threads_count_if_they_are_named_as_workers() {
        let work = || {
            let start = workers_cpu();
            // Its own time counts, or nothing ever does.
            (0..u64::MAX).map(std::hint::black_box).find(|_| workers_cpu() > start).is_some()
        };
        let worker = thread::Builder::new().name(format!("{WORKER}7")).spawn(work).unwrap();
        assert!(worker.join().unwrap());
    }
}
