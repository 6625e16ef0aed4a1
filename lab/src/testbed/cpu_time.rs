//! Processor time: of the whole machine, and of the tasks that carry packets.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::error::TestbedError;

/// Clock ticks per second in `/proc/stat`: the kernel's interface has fixed them at a hundred.
const TICKS_PER_SECOND: f64 = 100.0;

/// What the processors have done up to an instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTime {
    at: Instant,
    processors: f64,
    /// Seconds in which processors had nothing to do, or the hypervisor did something else.
    idle: f64,
    stolen: f64,
    /// Seconds of the tasks that carry packets.
    tasks: f64,
}

/// What the processors did in a span.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuUse {
    /// Seconds, of all processors together, in which they did something.
    pub(crate) busy: f64,
    /// Seconds that the hypervisor took.
    pub(crate) stolen: f64,
    /// Seconds of the tasks that carry packets, as the scheduler counts them.
    pub(crate) tasks: f64,
    /// How long it was, in seconds.
    pub(crate) elapsed: f64,
}

impl CpuTime {
    /// Reads the counts; `tasks` are processes other than this one that carry packets.
    ///
    /// Idle time is used, and not the sum of the others: it is kept to the microsecond when the clock
    /// ticks only on processors that have something to do, while the others are sampled.
    pub(crate) fn now(tasks: &[u32]) -> Result<CpuTime, TestbedError> {
        let text = read("/proc/stat")?;
        let mut lines = text.lines();
        let total = lines.next().unwrap_or_default();
        let columns: Vec<f64> =
            total.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
        let column = |at: usize| columns.get(at).copied().unwrap_or(0.0) / TICKS_PER_SECOND;
        let processors = lines.take_while(|line| line.starts_with("cpu")).count();
        let mut seconds = own_seconds();
        for &process in tasks.iter().chain(&softirq_threads()?) {
            seconds += task_seconds(process);
        }
        Ok(CpuTime {
            at: Instant::now(),
            processors: processors as f64,
            idle: column(3) + column(4),
            stolen: column(7),
            tasks: seconds,
        })
    }

    /// What was done since `earlier`.
    pub(crate) fn since(&self, earlier: &CpuTime) -> CpuUse {
        let elapsed = (self.at - earlier.at).as_secs_f64();
        let stolen = self.stolen - earlier.stolen;
        CpuUse {
            busy: elapsed * self.processors - (self.idle - earlier.idle) - stolen,
            stolen,
            tasks: self.tasks - earlier.tasks,
            elapsed,
        }
    }
}

/// The kernel's threads that take over softirqs when there are too many.
fn softirq_threads() -> Result<Vec<u32>, TestbedError> {
    let folder = fs::read_dir("/proc").map_err(|error| TestbedError::file("/proc", error))?;
    let processes =
        folder.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_softirq = |process: &u32| {
        fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.starts_with("ksoftirqd/"))
    };
    Ok(processes.filter(is_softirq).collect())
}

/// Seconds that this process has run, threads included that have ended.
fn own_seconds() -> f64 {
    let run = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    run.tv_sec as f64 + run.tv_nsec as f64 / 1e9
}

/// Seconds that a process has run, all its threads that are still there; none where it is gone.
pub(crate) fn task_seconds(process: u32) -> f64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return 0.0 };
    threads.flatten().map(|thread| run_seconds(&thread.path())).sum()
}

/// Seconds that a thread of a process has run; none where it is gone.
pub(crate) fn thread_seconds(process: &str, thread: u32) -> f64 {
    run_seconds(Path::new(&format!("/proc/{process}/task/{thread}")))
}

fn run_seconds(task: &Path) -> f64 {
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let nanoseconds = text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

fn read(path: &str) -> Result<String, TestbedError> {
    fs::read_to_string(path).map_err(|error| TestbedError::file(path, error))
}
