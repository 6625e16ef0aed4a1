//! The processor time of a run's workers, by their threads' own clocks.

use std::fs;
use std::time::Duration;

/// What the names of workers' threads begin with.
const WORKER: &str = "rheo-worker-";

/// CPU time of all threads of this process that are workers. What cannot be read counts as nothing.
pub(super) fn workers_cpu() -> Duration {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks
        .filter(|task| {
            fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with(WORKER))
        })
        .map(|task| cpu_of(&fs::read_to_string(task.path().join("schedstat")).unwrap_or_default()))
        .sum()
}

/// The first figure of a thread's `schedstat`: nanoseconds on a core. Unlike `stat`, it is not sampled by ticks.
fn cpu_of(schedstat: &str) -> Duration {
    let nanos = schedstat.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_figure_is_the_time_on_a_core() {
        assert_eq!(cpu_of("123456 7890 42\n"), Duration::from_nanos(123_456));
        assert_eq!(cpu_of(""), Duration::ZERO);
    }
}
