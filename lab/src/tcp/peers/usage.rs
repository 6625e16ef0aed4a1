//! Processor time of the machine, of the client and of the server.

use std::fs;

use rustix::time::{ClockId, clock_gettime};

use crate::testbed::TestbedError;
use crate::testbed::cpu_time::{CpuTime, CpuUse, task_seconds, thread_seconds};

/// Where a server runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tasks {
    /// A thread of this process.
    Thread(u32),
    /// A process.
    Process(u32),
}

/// What had been used at some moment.
pub(super) struct Usage {
    whole: CpuTime,
    client: f64,
    server: f64,
    /// The server's samples outside of the kernel and in it.
    samples: [f64; 2],
}

/// What was used in a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsageWindow {
    pub(super) replies: u64,
    pub(super) cpu: CpuUse,
    /// Seconds of the client's thread.
    pub(super) client: f64,
    /// Seconds of the server.
    pub(super) server: f64,
    /// Of the server, how often the timer found it outside of the kernel, and in it.
    pub(super) samples: [f64; 2],
}

impl Usage {
    /// Is called by the client's thread.
    pub(super) fn now(tasks: &Tasks) -> Result<Usage, TestbedError> {
        let run = clock_gettime(ClockId::ThreadCPUTime);
        let (server, stat) = match tasks {
            Tasks::Thread(thread) => {
                (thread_seconds("self", *thread), format!("/proc/self/task/{thread}/stat"))
            }
            Tasks::Process(process) => (task_seconds(*process), format!("/proc/{process}/stat")),
        };
        let text = fs::read_to_string(&stat).map_err(|error| TestbedError::file(&stat, error))?;
        Ok(Usage {
            whole: CpuTime::now(&[])?,
            client: run.tv_sec as f64 + run.tv_nsec as f64 / 1e9,
            server,
            samples: samples(&text),
        })
    }

    /// What was used since `earlier`.
    pub(super) fn since(&self, earlier: &Usage, replies: u64) -> UsageWindow {
        let [outside, inside] = self.samples;
        UsageWindow {
            replies,
            cpu: self.whole.since(&earlier.whole),
            client: self.client - earlier.client,
            server: self.server - earlier.server,
            samples: [outside - earlier.samples[0], inside - earlier.samples[1]],
        }
    }
}

/// `utime` and `stime` of a task's `stat` (proc(5)): the fields 14 and 15, of which the second, a name, may have blanks.
fn samples(stat: &str) -> [f64; 2] {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut fields = behind_name.split_whitespace().skip(11);
    [(); 2].map(|()| fields.next().and_then(|field| field.parse().ok()).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_stand_behind_a_name_with_blanks_and_brackets() {
        let stat = "41 (a b) c) S 1 2 3 4 5 6 7 8 9 10 141 151 16 17 20 0 3 0 99";
        assert_eq!(samples(stat), [141.0, 151.0]);
        assert_eq!(samples("nothing"), [0.0; 2]);
    }
}
