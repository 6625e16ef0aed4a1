//! Taking a figure from a run under way.

use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Controlled, NfBench, Stages, requests};
use crate::calibration::{FAST, TimingSum};
use crate::error::MeasureError;
use crate::memory::Opening;

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

/// How undisturbed the windows of a figure are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The processor was about as fast as it can be, and the lanes kept their cores.
    Fast,
    /// The lanes kept their cores, and the processor was slower than it can be.
    Slow,
    /// The kernel ran something else on the lanes' cores.
    Preempted,
    /// Not measured.
    #[default]
    Unknown,
}

/// What a row came to.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// Packets per second through all lanes, in millions: the median window.
    pub mpps: f64,
    /// The same by the speed of the processor in each window: an estimate for a core that nothing shares.
    pub(super) mpps_at_full_speed: f64,
    /// The slowest and the fastest window.
    pub(super) range: (f64, f64),
    pub(super) mode: Mode,
    /// The processor's speed in the median window, as a share of the fastest seen.
    pub(super) speed: f64,
    /// Involuntary switches of all lanes in a window, on average.
    pub(super) switches: f64,
    pub(super) allocations_per_packet: f64,
    /// Packets that passed from the start to the end of the run.
    pub(super) passed: u64,
    /// By callgrind, source and sink included.
    pub(super) instructions_per_packet: Option<f64>,
    pub(super) stages: Option<Stages>,
    /// What the controller did from the start to the end of the run, if there was one.
    pub controlled: Controlled,
}

/// A run under way at some moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) packets: u64,
    pub(super) seconds: f64,
    pub(super) timings: TimingSum,
}

/// A window: as it was observed, and what disturbed it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasurementWindow {
    /// Packets per second, in millions.
    pub(super) mpps: f64,
    pub(super) seconds: f64,
    /// The processor's speed as a share of the fastest seen.
    pub(super) speed: f64,
    /// How often the kernel took the core from a lane, all lanes together.
    pub(super) switches: u64,
}

/// Of a run whose rate means nothing.
const UNTIMED: MeasurementWindow =
    MeasurementWindow { mpps: 1.0, seconds: 1.0, speed: 1.0, switches: 0 };

/// Involuntary switches a second from which on a window counts as preempted. Threads of the kernel take a core some times a second,
/// for microseconds; a process that competes for it takes it at least once in each of its time slices, which are milliseconds.
const PREEMPTED: f64 = 20.0;

impl MeasurementWindow {
    /// What happened between two samples.
    pub(super) fn between(earlier: &Sample, later: &Sample) -> MeasurementWindow {
        let (packets, seconds) = (later.packets - earlier.packets, later.seconds - earlier.seconds);
        let timings = later.timings.since(earlier.timings);
        MeasurementWindow {
            mpps: packets as f64 / seconds / 1e6,
            seconds,
            speed: timings.speed().unwrap_or(1.0),
            switches: timings.switches,
        }
    }

    fn keeps_cores(&self) -> bool {
        // One switch in a short window may be the kernel's.
        self.switches <= 1 || (self.switches as f64) < PREEMPTED * self.seconds
    }

    fn is_undisturbed(&self) -> bool {
        self.speed >= FAST && self.keeps_cores()
    }
}

/// How long no flow may be opened before the chain is taken to refuse them.
const TIMEOUT: Duration = Duration::from_secs(15);

/// How long a window may be drawn out until a packet has passed.
const STALLED: Duration = Duration::from_secs(60);

/// Waits until all flows are open, and the lanes have drawn up what they send next.
pub(super) fn await_opening(opening: &Opening, flows: u64) -> Result<(), MeasureError> {
    let (mut last, mut since) = (0, Instant::now());
    while !opening.is_complete() {
        thread::sleep(Duration::from_millis(2));
        let opened = opening.opened();
        if opened != last {
            (last, since) = (opened, Instant::now());
        } else if since.elapsed() > if opened < flows { TIMEOUT } else { STALLED } {
            return Err(MeasureError::Opening { opened, flows, reasons: String::new() });
        }
    }
    Ok(())
}

/// Windows that are taken for each that is wanted, as long as they are disturbed.
const ATTEMPTS: usize = 4;

/// Measures a run under way, of which `sample` states how far it is, after `warm_up`. Windows in which the processor is slower
/// than it was seen to be, or a lane loses its core, are taken again.
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
    let (mut own, mut undisturbed) = (0, 0);
    while undisturbed < wanted && windows.len() < ATTEMPTS * wanted {
        thread::sleep(bench.effort.window);
        // What taking a sample allocates is not the lanes' doing.
        let asked = (bench.allocations)();
        let later = sample_after(&earlier, bench.effort.window, &mut sample);
        own += (bench.allocations)() - asked;
        let window = MeasurementWindow::between(&earlier, &later);
        undisturbed += usize::from(window.is_undisturbed());
        windows.push(window);
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

/// The figure of at least one window, as observed: of the undisturbed ones alone, if they are half as many as were `wanted`; else of
/// those in which lanes kept their cores, if these are; else of all.
pub(super) fn of_windows(mut windows: Vec<MeasurementWindow>, wanted: usize) -> Figure {
    let are_enough = |counts: fn(&MeasurementWindow) -> bool| {
        2 * windows.iter().filter(|window| counts(window)).count() >= wanted
    };
    let mode = if are_enough(MeasurementWindow::is_undisturbed) {
        windows.retain(MeasurementWindow::is_undisturbed);
        Mode::Fast
    } else if are_enough(MeasurementWindow::keeps_cores) {
        windows.retain(MeasurementWindow::keeps_cores);
        Mode::Slow
    } else {
        Mode::Preempted
    };
    let count = windows.len() as f64;
    windows.sort_by(|a, b| (a.mpps / a.speed).total_cmp(&(b.mpps / b.speed)));
    let median = windows[windows.len() / 2];
    let mpps_at_full_speed = median.mpps / median.speed;
    windows.sort_by(|a, b| a.mpps.total_cmp(&b.mpps));
    let median = windows[windows.len() / 2];
    Figure {
        mpps: median.mpps,
        mpps_at_full_speed,
        range: (windows[0].mpps, windows[windows.len() - 1].mpps),
        mode,
        speed: median.speed,
        switches: windows.iter().map(|window| window.switches as f64).sum::<f64>() / count,
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

    /// Of windows of 200 ms of which three were wanted.
    fn figure(windows: &[(f64, f64, u64)]) -> Figure {
        let window =
            |&(mpps, speed, switches)| MeasurementWindow { mpps, seconds: 0.2, speed, switches };
        of_windows(windows.iter().map(window).collect(), 3)
    }

    #[test]
    fn disturbed_windows_do_not_count_where_there_are_others() {
        let Figure { mpps, range, mode, speed, switches, .. } = figure(&[
            (5.0, 0.5, 0),
            (10.0, 0.9, 3),
            (4.9, 0.5, 0),
            (11.0, 1.0, 0),
            (5.2, 1.0, 30),
            (9.0, 0.95, 0),
            (5.1, 0.5, 60),
        ]);
        assert_eq!((mpps, range, mode, speed), (10.0, (9.0, 11.0), Mode::Fast, 0.9));
        assert_eq!(switches, 1.0);
    }

    #[test]
    fn a_figure_of_slow_windows_is_as_observed_and_has_an_estimate_beside_it() {
        let windows = [(5.0, 0.5, 0), (6.0, 0.5, 0), (4.0, 0.5, 0), (8.0, 1.0, 0), (1.0, 1.0, 40)];
        let figure = figure(&windows);
        assert_eq!((figure.mpps, figure.range), (6.0, (4.0, 8.0)));
        assert_eq!((figure.mode, figure.speed, figure.mpps_at_full_speed), (Mode::Slow, 0.5, 10.0));
    }

    #[test]
    fn a_figure_of_preempted_windows_is_not_fast() {
        let figure = figure(&[(5.0, 1.0, 30), (6.0, 1.0, 31), (4.0, 1.0, 32), (10.0, 1.0, 0)]);
        assert_eq!((figure.mpps, figure.mode), (6.0, Mode::Preempted));
        assert_eq!((figure.switches, figure.mpps_at_full_speed), (23.25, 6.0));
    }

    #[test]
    fn a_window_is_what_happened_between_two_samples() {
        let sample = |packets, seconds| Sample { packets, seconds, timings: TimingSum::default() };
        let window = MeasurementWindow::between(&sample(1_000_000, 2.0), &sample(3_000_000, 2.5));
        assert_eq!((window.mpps, window.seconds), (4.0, 0.5));
        assert_eq!((window.speed, window.switches), (1.0, 0));
    }
}
