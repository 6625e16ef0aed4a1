//! How fast the processor is at the moment. A virtual processor may run at one of several speeds, up to twice apart and for
//! seconds at a time, which no counter shows: mostly because another machine's processor shares its core. So a lane that is
//! measured times the same arithmetic every few milliseconds, on its own core, and a figure states at which speed it was taken.
//!
//! What is fast is known before the processor was ever seen to be. A single chain of multiplications takes as long whether or
//! not the core is shared, since it leaves most of it unused; two chains of cheaper operations at once take a known share of
//! that time on a core of their own (measured 0.83, on a Xeon of the Cascade Lake generation; their latencies say 0.75), and
//! 1.5 times as much on a shared one. The code of a lane suffers more (a loop that parses, hashes and updates a table: 1.7
//! times), so what is scaled by these timings is scaled by too little rather than too much.

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use rheostat_base::{Clock, Counter};

/// Rounds of arithmetic that are timed: about a third of a microsecond.
const ROUNDS: u64 = 256;
/// Polls from one timing to the next: some milliseconds.
const POLLS: u32 = 1 << 12;
/// How often the arithmetic is done in a row: the least time counts, since interrupts come in between.
const ATTEMPTS: usize = 3;
/// The time of the arithmetic on a core of its own, as a share of that of the chain of multiplications, and a little more.
const SHARE: f64 = 0.85;
/// A speed that counts as that of the fast mode, as a share of the fastest seen.
pub(crate) const FAST: f64 = 0.87;

/// The least time that the arithmetic took in this process, in picoseconds; 0 before it was looked for.
static LEAST: AtomicU64 = AtomicU64::new(0);

/// Times the arithmetic now and then, on the thread that asks.
pub(crate) struct Calibrator {
    clock: Clock,
    polls: u32,
    timings: Arc<Timings>,
}

/// What a calibrator has found so far. Its thread alone writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Timings {
    nanos: Counter,
    count: Counter,
    /// The thread's id to the kernel; 0 before its first timing.
    thread: AtomicI32,
}

/// [`Timings`] at a moment, or what was added to them between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TimingSum {
    nanos: u64,
    count: u64,
    /// How often the kernel took the core from the threads (`ru_nivcsw` of getrusage(2)).
    pub(crate) switches: u64,
}

impl Calibrator {
    pub(crate) fn new() -> Calibrator {
        Calibrator { clock: Clock::new(), polls: 0, timings: Arc::default() }
    }

    pub(crate) fn timings(&self) -> Arc<Timings> {
        self.timings.clone()
    }

    /// To be called once per poll.
    #[inline]
    pub(crate) fn poll(&mut self) {
        self.polls += 1;
        if self.polls == POLLS {
            self.polls = 0;
            self.time();
        }
    }

    #[cold]
    fn time(&mut self) {
        // Relaxed: the number stands for itself.
        if self.timings.thread.load(Ordering::Relaxed) == 0 {
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            self.timings.thread.store(thread, Ordering::Relaxed);
        }
        self.timings.nanos.add(least(&self.clock));
        self.timings.count.increment();
    }
}

impl Timings {
    pub(crate) fn sum(&self) -> TimingSum {
        let thread = self.thread.load(Ordering::Relaxed);
        TimingSum {
            nanos: self.nanos.get(),
            count: self.count.get(),
            switches: if thread == 0 { 0 } else { involuntary_switches(thread) },
        }
    }
}

impl TimingSum {
    /// What was added since `earlier`.
    pub(crate) fn since(self, earlier: TimingSum) -> TimingSum {
        TimingSum {
            nanos: self.nanos - earlier.nanos,
            count: self.count - earlier.count,
            switches: self.switches.saturating_sub(earlier.switches),
        }
    }

    pub(crate) fn plus(self, other: TimingSum) -> TimingSum {
        TimingSum {
            nanos: self.nanos + other.nanos,
            count: self.count + other.count,
            switches: self.switches + other.switches,
        }
    }

    /// The speed of the processor as a share of the fastest seen by this process, 1 at most; `None` when nothing was timed.
    pub(crate) fn speed(self) -> Option<f64> {
        let mean = (self.nanos * 1_000).checked_div(self.count).filter(|mean| *mean > 0)?;
        // Relaxed: the number stands for itself.
        Some(share(LEAST.fetch_min(mean, Ordering::Relaxed), mean))
    }
}

/// How often the kernel took the core from a thread of this process; 0 if the thread has ended. Read by the thread that samples,
/// so it counts a switch after which the other thread does not run yet, and costs the lane nothing.
fn involuntary_switches(thread: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/self/task/{thread}/status"));
    status.map_or(0, |status| switches_of(&status))
}

/// The count in the `status` of a thread (proc_pid_status(5)).
fn switches_of(status: &str) -> u64 {
    let count = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// The speed at which the arithmetic takes `mean`, where the fastest took `least`, or none is known.
fn share(least: u64, mean: u64) -> f64 {
    if least == 0 { 1.0 } else { least.min(mean) as f64 / mean as f64 }
}

/// Finds out what the fastest speed of the processor is, or nearly, once per process and in a fifth of a second.
pub(crate) fn prepare() {
    if LEAST.load(Ordering::Relaxed) != 0 {
        return;
    }
    let clock = Clock::new();
    let mut times: Vec<u64> = (0..100)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(2));
            // The first of them wakes the processor up.
            (0..8).map(|_| least(&clock)).min().unwrap_or(0)
        })
        .collect();
    times.sort_unstable();
    let seen = times[times.len() / 10] * 1_000;
    LEAST.store(seen.min(expected(&clock)).max(1), Ordering::Relaxed);
}

/// The time of the arithmetic on a core of its own, in picoseconds.
fn expected(clock: &Clock) -> u64 {
    let chain = (0..100).map(|_| least_of(clock, multiplications)).min().unwrap_or(0);
    (chain as f64 * 1e3 * SHARE) as u64
}

/// The least time of a few attempts of the arithmetic, in nanoseconds.
fn least(clock: &Clock) -> u64 {
    least_of(clock, arithmetic)
}

/// The least time of a few attempts, in nanoseconds.
fn least_of(clock: &Clock, work: impl Fn(u64) -> u64) -> u64 {
    let attempt = |_| {
        let start = clock.cycles();
        black_box(work(black_box(1)));
        clock.nanos_between(start, clock.cycles())
    };
    (0..ATTEMPTS).map(attempt).min().unwrap_or(0)
}

/// One chain of operations, each of which waits for the one before.
fn multiplications(seed: u64) -> u64 {
    (0..ROUNDS).fold(seed, |product, _| product.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1)
}

/// Two chains of operations that need nothing but registers, so that both a lower clock and another thread on the same core
/// make them slower.
fn arithmetic(seed: u64) -> u64 {
    let mut chains = [seed, seed ^ 0x9e37];
    for round in 0..ROUNDS {
        for chain in &mut chains {
            *chain = (chain.rotate_left(7) ^ round).wrapping_add(*chain << 3);
        }
    }
    chains.iter().fold(0, |all, chain| all ^ chain)
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn a_speed_is_a_share_of_the_fastest() {
        assert_eq!(TimingSum::default().speed(), None);
        assert_eq!([share(0, 700), share(350, 700), share(900, 700)], [1.0, 0.5, 1.0]);
        let at = |nanos| TimingSum { nanos, count: 2, switches: nanos / 1_000 };
        let difference = TimingSum { nanos: 2_000, count: 0, switches: 2 };
        assert_eq!(at(3_000).since(at(1_000)), difference);
        let sum = TimingSum { nanos: 4_000, count: 4, switches: 4 };
        assert_eq!(at(3_000).plus(at(1_000)), sum);
        prepare();
        assert!(LEAST.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn involuntary_switches_are_those_of_the_kernel() {
        let status = "Threads:\t3\nvoluntary_ctxt_switches:\t71\nnonvoluntary_ctxt_switches:\t42\n";
        assert_eq!((switches_of(status), switches_of("Threads:\t3\n")), (42, 0));
        let own = format!("/proc/self/task/{}/status", rustix::thread::gettid().as_raw_nonzero());
        assert!(fs::read_to_string(own).unwrap().contains("\nnonvoluntary_ctxt_switches:"));
        assert_eq!(involuntary_switches(-1), 0, "a thread that has ended");
    }

    #[test]
    fn a_calibrator_times_every_so_many_polls() {
        let mut calibrator = Calibrator::new();
        let timings = calibrator.timings();
        (0..2 * POLLS).for_each(|_| calibrator.poll());
        let sum = timings.sum();
        assert_eq!(sum.count, 2);
        assert!(sum.nanos > 0);
    }
}
