//! What the machine took from the process while it ran.

use std::fs;
use std::time::Duration;

use rheostat_kernel::sleep::run_delay;

/// Ticks of `/proc/stat` a second, whatever the kernel's own are (proc(5), `USER_HZ`).
const TICKS: u64 = 100;

/// Sums since the start of the process and the machine; the difference of two is what happened between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Disturbance {
    /// How long the threads of this process were ready and had no core, threads that have ended left out.
    pub(crate) run_delay: Duration,
    /// How long the hypervisor ran something else while a core of this machine was to run, all cores together.
    pub(crate) steal: Duration,
}

impl Disturbance {
    /// Reads `/proc`. What cannot be read counts as nothing.
    pub(crate) fn read() -> Disturbance {
        let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let delay = |task: fs::DirEntry| {
            run_delay(&fs::read_to_string(task.path().join("schedstat")).unwrap_or_default())
        };
        Disturbance {
            run_delay: tasks.map(delay).sum(),
            steal: steal(&fs::read_to_string("/proc/stat").unwrap_or_default()),
        }
    }

    /// What was added since.
    pub(crate) fn since(self, earlier: Disturbance) -> Disturbance {
        Disturbance {
            run_delay: self.run_delay.saturating_sub(earlier.run_delay),
            steal: self.steal.saturating_sub(earlier.steal),
        }
    }
}

/// The eighth figure of the first line of `/proc/stat`: ticks of involuntary wait in a virtual machine.
fn steal(stat: &str) -> Duration {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks = line.and_then(|line| line.split_whitespace().nth(7)?.parse().ok());
    Duration::from_millis(ticks.unwrap_or(0) * (1_000 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_kernel() {
        let stat = "cpu  1 2 3 4 5 6 7 89 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(steal(stat), Duration::from_millis(890));
        assert_eq!(steal("nothing"), Duration::ZERO);
    }

    #[test]
    fn sums_only_grow() {
        let first = Disturbance::read();
        let now = Disturbance { run_delay: first.run_delay + Duration::from_micros(3), ..first };
        assert_eq!(now.since(first).run_delay, Duration::from_micros(3));
        assert_eq!(first.since(now), Disturbance::default());
    }
}
