//! Taking a figure from a run under way.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::memory::Opening;

use super::{Controlled, NfBench};

/// How long rows run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Windows per row; the figure is that of the median window.
    pub windows: usize,
    /// The length of a window; a multiple of it where no packet passed meanwhile.
    pub window: Duration,
    /// How long a connection that was not completed, or has ended, is remembered. So short that within a row as many flows
    /// end as begin, and too short for the packets of one to pass on a machine that is busy otherwise.
    pub remembered: Duration,
}

impl Default for Effort {
    fn default() -> Effort {
        let (window, remembered) = (Duration::from_millis(200), Duration::from_millis(100));
        Effort { windows: 5, window, remembered }
    }
}

/// What a row came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// Packets per second through all lanes, in millions: the median window.
    pub(crate) mpps: f64,
    /// The slowest and the fastest window.
    pub(super) range: (f64, f64),
    pub(super) allocations_per_packet: f64,
    /// What the controller did from the start to the end of the run, if there was one.
    pub(crate) controlled: Controlled,
}

/// How long no flow may be opened before the chain is taken to refuse them.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a window may be drawn out until a packet has passed.
const STALLED: Duration = Duration::from_secs(60);

/// Waits until all flows are open.
pub(super) fn await_opening(opening: &Opening, flows: u64) -> Result<(), BenchError> {
    let (mut last, mut since) = (0, Instant::now());
    while !opening.is_complete() {
        thread::sleep(Duration::from_millis(2));
        let opened = opening.opened();
        if opened != last {
            (last, since) = (opened, Instant::now());
        } else if since.elapsed() > PATIENCE {
            return Err(BenchError::Opening { opened, flows, reasons: String::new() });
        }
    }
    Ok(())
}

/// Measures a run under way, whose packets and seconds so far `sample` tells, after `warm_up`.
pub(super) fn measure(
    bench: &NfBench,
    warm_up: Duration,
    mut sample: impl FnMut() -> (u64, f64),
) -> Figure {
    thread::sleep(warm_up);
    let mut rates = Vec::with_capacity(bench.effort.windows);
    let mut earlier = sample();
    let (first, mut latest) = (earlier.0, earlier.0);
    let before = (bench.allocations)();
    let mut own = 0;
    for _ in 0..bench.effort.windows {
        thread::sleep(bench.effort.window);
        // What taking a sample allocates is not the lanes' doing.
        let asked = (bench.allocations)();
        let mut later = sample();
        // A lane whose core is busy otherwise may not have run at all: a window is as long as it takes.
        let since = Instant::now();
        while later.0 == earlier.0 && since.elapsed() < STALLED {
            thread::sleep(bench.effort.window);
            later = sample();
        }
        own += (bench.allocations)() - asked;
        rates.push((later.0 - earlier.0) as f64 / (later.1 - earlier.1) / 1e6);
        latest = later.0;
        earlier = later;
    }
    let allocations = (bench.allocations)() - before - own;
    rates.sort_by(f64::total_cmp);
    Figure {
        mpps: rates[rates.len() / 2],
        range: (rates[0], rates[rates.len() - 1]),
        allocations_per_packet: allocations as f64 / (latest - first).max(1) as f64,
        controlled: Controlled::default(),
    }
}
