//! Windows that another process requests: what the lanes of one process and as many processes are compared by.

use std::io::{self, BufRead, Write};
use std::thread;

use serde::{Deserialize, Serialize};

use super::NfBench;
use super::measurement::{MeasurementWindow, Sample, sample_after};

/// What a process says once its flows are open.
pub(super) const READY: &str = "ready";

/// A window, as a line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Requested {
    /// Packets per second, in millions.
    pub(super) mpps: f64,
    /// The window's length.
    pub(super) seconds: f64,
    /// The processor's speed as a share of the fastest that the process has seen.
    pub(super) speed: f64,
    /// Involuntary switches of all lanes.
    pub(super) switches: u64,
    /// Calls of the allocator by the whole process.
    pub(super) allocations: u64,
    pub(super) packets: u64,
}

/// Measures a window of a run under way for each line of standard input, until there is none any more, and says on standard
/// output what each came to.
pub(super) fn answer(
    bench: &NfBench,
    mut sample: impl FnMut() -> Sample,
) -> Vec<MeasurementWindow> {
    let mut windows = Vec::new();
    // A process that requests no more, or has ended, closes its ends of both.
    let mut requests = io::stdin().lock().lines();
    let say = |line: &str| writeln!(io::stdout(), "{line}").is_ok();
    let mut is_heard = say(READY);
    while is_heard && requests.next().is_some_and(|line| line.is_ok()) {
        let earlier = sample();
        let before = (bench.allocations)();
        thread::sleep(bench.effort.window);
        let allocations = (bench.allocations)() - before;
        let later = sample_after(&earlier, bench.effort.window, &mut sample);
        let packets = later.packets - earlier.packets;
        let window = MeasurementWindow::between(&earlier, &later);
        let MeasurementWindow { mpps, seconds, speed, switches } = window;
        let requested = Requested { mpps, seconds, speed, switches, allocations, packets };
        is_heard = say(&serde_json::to_string(&requested).expect("a window is plain data"));
        windows.push(window);
    }
    windows
}
