//! Taking a figure from a run under way.

use std::thread;
use std::time::{Duration, Instant};

use rheostat_run::StageTimes;
use serde::{Deserialize, Serialize};

use crate::calibration::{FAST, TimingSum};
use crate::error::BenchError;
use crate::memory::Opening;

use super::{Controlled, NfBench, Stages, requests};

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
    /// Rows end after this many packets beyond their warm-up, and their rates mean nothing.
    pub packets: Option<u64>,
    /// Windows are taken as lines on standard input request them, and written to standard output, for
    /// [`Processes`](super::Processes).
    pub requested: bool,
}

impl Default for Effort {
    fn default() -> Effort {
        let (window, remembered) = (Duration::from_millis(200), Duration::from_millis(100));
        Effort { windows: 5, window, remembered, packets: None, requested: false }
    }
}

/// In which of the machine's speeds a figure was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// About the fastest that the processor can be.
    Fast,
    /// A slower one, and scaled to the fastest.
    Slow,
    /// Not measured.
    #[default]
    Unknown,
}

/// What a row came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// Packets per second through all lanes, in millions: the median window.
    pub(crate) mpps: f64,
    /// The slowest and the fastest window.
    pub(super) range: (f64, f64),
    pub(super) mode: Mode,
    /// The processor's speed in the median window, as a share of the fastest seen.
    pub(super) speed: f64,
    pub(super) allocations_per_packet: f64,
    /// Packets that passed from the start to the end of the run.
    pub(super) passed: u64,
    /// By callgrind, source and sink included.
    pub(super) instructions_per_packet: Option<f64>,
    pub(super) stages: Option<Stages>,
    /// What the controller did from the start to the end of the run, if there was one.
    pub(crate) controlled: Controlled,
}

impl Figure {
    /// What the stages took in the run of the figure, scaled as it is.
    pub(super) fn stages_of(&self, times: &StageTimes) -> Option<Stages> {
        let stages = Stages::of(times)?;
        Some(match self.mode {
            Mode::Slow => stages.scaled(self.speed),
            _ => stages,
        })
    }
}

/// A run under way at some moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) packets: u64,
    pub(super) seconds: f64,
    pub(super) timings: TimingSum,
}

/// The rate in a window, in millions of packets per second, and the processor's speed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) mpps: f64,
    pub(super) speed: f64,
}

/// Of a run whose rate means nothing.
const UNTIMED: Window = Window { mpps: 1.0, speed: 1.0 };

/// How long no flow may be opened before the chain is taken to refuse them.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How long a window may be drawn out until a packet has passed.
const STALLED: Duration = Duration::from_secs(60);

/// Waits until all flows are open, and the lanes have drawn up what they send next.
pub(super) fn await_opening(opening: &Opening, flows: u64) -> Result<(), BenchError> {
    let (mut last, mut since) = (0, Instant::now());
    while !opening.is_complete() {
        thread::sleep(Duration::from_millis(2));
        let opened = opening.opened();
        if opened != last {
            (last, since) = (opened, Instant::now());
        } else if since.elapsed() > if opened < flows { TIMEOUT } else { STALLED } {
            return Err(BenchError::Opening { opened, flows, reasons: String::new() });
        }
    }
    Ok(())
}

/// Windows that are taken for each that is wanted, as long as the processor is slow.
const ATTEMPTS: usize = 4;

/// Measures a run under way, of which `sample` states how far it is, after `warm_up`. Windows in which the processor is slower
/// than it was seen to be are taken again.
pub(super) fn measure(
    bench: &NfBench,
    warm_up: Duration,
    mut sample: impl FnMut() -> Sample,
) -> Figure {
    thread::sleep(warm_up);
    if let Some(packets) = bench.effort.packets {
        await_packets(packets, sample);
        return of_windows(vec![UNTIMED], 1);
    }
    if bench.effort.requested {
        let mut windows = requests::answer(bench, sample);
        windows.push(UNTIMED);
        return of_windows(windows, 1);
    }
    let wanted = bench.effort.windows;
    let mut windows = Vec::with_capacity(ATTEMPTS * wanted);
    let mut earlier = sample();
    let (first, mut latest) = (earlier.packets, earlier.packets);
    let before = (bench.allocations)();
    let (mut own, mut fast) = (0, 0);
    while fast < wanted && windows.len() < ATTEMPTS * wanted {
        thread::sleep(bench.effort.window);
        // What taking a sample allocates is not the lanes' doing.
        let asked = (bench.allocations)();
        let later = sample_after(&earlier, bench.effort.window, &mut sample);
        own += (bench.allocations)() - asked;
        let (packets, seconds) = (later.packets - earlier.packets, later.seconds - earlier.seconds);
        let speed = later.timings.since(earlier.timings).speed().unwrap_or(1.0);
        fast += usize::from(speed >= FAST);
        windows.push(Window { mpps: packets as f64 / seconds / 1e6, speed });
        latest = later.packets;
        earlier = later;
    }
    let allocations = (bench.allocations)() - before - own;
    let packets = (latest - first).max(1);
    Figure {
        allocations_per_packet: allocations as f64 / packets as f64,
        ..of_windows(windows, wanted)
    }
}

/// A sample at the end of a window that began with `earlier`. A lane whose core is busy otherwise may not have run at all: the
/// window grows by `step` until a packet has passed, so no rate is zero.
pub(super) fn sample_after(
    earlier: &Sample,
    step: Duration,
    mut sample: impl FnMut() -> Sample,
) -> Sample {
    let since = Instant::now();
    let mut later = sample();
    while later.packets == earlier.packets && since.elapsed() < STALLED {
        thread::sleep(step);
        later = sample();
    }
    later
}

/// Waits until `packets` have passed, or none does any more.
fn await_packets(packets: u64, mut sample: impl FnMut() -> Sample) {
    let first = sample().packets;
    let (mut last, mut since) = (first, Instant::now());
    while last - first < packets && since.elapsed() < STALLED {
        // Seldom enough not to count among the instructions of packets.
        thread::sleep(Duration::from_millis(20));
        let passed = sample().packets;
        if passed != last {
            (last, since) = (passed, Instant::now());
        }
    }
}

/// The figure of at least one window: of the fast ones alone, if they are half as many as were `wanted`; else of all, each
/// scaled to the fastest speed.
pub(super) fn of_windows(mut windows: Vec<Window>, wanted: usize) -> Figure {
    let is_fast = |window: &Window| window.speed >= FAST;
    let fast = windows.iter().filter(|window| is_fast(window)).count();
    let mode = if 2 * fast >= wanted { Mode::Fast } else { Mode::Slow };
    match mode {
        Mode::Fast => windows.retain(is_fast),
        _ => windows.iter_mut().for_each(|window| window.mpps /= window.speed),
    }
    windows.sort_by(|a, b| a.mpps.total_cmp(&b.mpps));
    let median = windows[windows.len() / 2];
    Figure {
        mpps: median.mpps,
        range: (windows[0].mpps, windows[windows.len() - 1].mpps),
        mode,
        speed: median.speed,
        allocations_per_packet: 0.0,
        passed: 0,
        instructions_per_packet: None,
        stages: None,
        controlled: Controlled::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of windows of which three were wanted.
    fn figure(windows: &[(f64, f64)]) -> Figure {
        of_windows(windows.iter().map(|&(mpps, speed)| Window { mpps, speed }).collect(), 3)
    }

    #[test]
    fn slow_windows_do_not_count_where_there_are_fast_ones() {
        let Figure { mpps, range, mode, speed, .. } = figure(&[
            (5.0, 0.5),
            (10.0, 0.9),
            (4.9, 0.5),
            (11.0, 1.0),
            (5.2, 0.5),
            (9.0, 0.95),
            (5.1, 0.5),
        ]);
        assert_eq!((mpps, range, mode, speed), (10.0, (9.0, 11.0), Mode::Fast, 0.9));
    }

    #[test]
    fn a_figure_of_slow_windows_is_scaled_and_says_so() {
        let Figure { mpps, range, mode, speed, .. } =
            figure(&[(5.0, 0.5), (6.0, 0.5), (4.0, 0.5), (8.0, 1.0)]);
        assert_eq!((mpps, range, mode, speed), (10.0, (8.0, 12.0), Mode::Slow, 0.5));
    }
}
