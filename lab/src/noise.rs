//! What the machine itself does to latencies: moments in which a pinned thread does not run.

use std::sync::Barrier;
use std::time::Duration;

use rheostat_base::{Clock, ClockSource, CoreId};
use rheostat_kernel::core_set::{CoreError, pin_current_thread};
use serde::{Deserialize, Serialize};

use crate::testbed::Cores;

/// Shorter pauses between two looks at the clock are the loop itself, or too short to matter.
const LEAST_GAP: u64 = 500;

/// The share of the time in gaps from which on something else ran on the core.
const DISTURBED: f64 = 0.05;

/// The gaps that a spinning thread saw, on the core that saw most.
///
/// A packet that arrives in a gap waits for its end, whatever the policy does. So the share of all moments
/// from which the end of a gap is further away than x bounds from below the share of packets that wait
/// longer than x: [`Noise::floor_us`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Seconds looked at.
    pub seconds: f64,
    /// The core.
    pub core: u16,
    /// Pairs of a length in microseconds and the number of gaps up to it and above the one before. Each
    /// length is twice the one before.
    pub gaps: Vec<(f64, u64)>,
    /// The longest gap in microseconds.
    pub longest_us: f64,
    /// The share of the time that gaps took.
    pub share: f64,
    /// Pairs of a share of moments and the microseconds within which so many of them find no gap, or its
    /// end.
    pub floors_us: Vec<(f64, f64)>,
}

/// The shares of moments for which floors are kept.
const SHARES: [f64; 6] = [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999];

impl Noise {
    /// Spins on all cores of the process at once, as lanes do, and keeps what the worst of them saw. One after the
    /// other, what else runs would find a core that is free, and no gap would be seen.
    ///
    /// # Errors
    /// [`CoreError`] when a core cannot be used.
    pub fn measure(each: Duration) -> Result<Noise, CoreError> {
        let cores = Cores::available()?;
        let ready = Barrier::new(cores.count());
        // On threads of their own: the caller's keeps its cores.
        let seen: Vec<_> = std::thread::scope(|scope| {
            let spin = |core| {
                let ready = &ready;
                scope.spawn(move || spin(core, each, ready))
            };
            let threads: Vec<_> = cores.as_slice().iter().copied().map(spin).collect();
            threads.into_iter().map(|t| t.join().expect("spinning does not panic")).collect()
        });
        let mut worst: Option<Noise> = None;
        for noise in seen {
            let noise = noise?;
            if worst.as_ref().is_none_or(|worst| noise.share > worst.share) {
                worst = Some(noise);
            }
        }
        Ok(worst.expect("a process has a core"))
    }

    /// What gaps of these nanoseconds, seen within `elapsed` nanoseconds on `core`, come to.
    pub fn of_gaps(gaps: &[u64], elapsed: u64, core: u16) -> Noise {
        let longest = gaps.iter().copied().max().unwrap_or(0);
        let mut bins = Vec::new();
        let mut upper = 2 * LEAST_GAP;
        let mut lower = 0;
        while lower < longest {
            let count = gaps.iter().filter(|gap| (lower + 1..=upper).contains(gap)).count();
            bins.push((upper as f64 / 1e3, count as u64));
            (lower, upper) = (upper, 2 * upper);
        }
        Noise {
            seconds: elapsed as f64 / 1e9,
            core,
            gaps: bins,
            longest_us: longest as f64 / 1e3,
            share: gaps.iter().sum::<u64>() as f64 / elapsed.max(1) as f64,
            floors_us: SHARES
                .iter()
                .map(|&share| (share, floor(gaps, elapsed, share) / 1e3))
                .collect(),
        }
    }

    /// Whether other programs ran on a core meanwhile: a machine by itself takes a smaller share of the time.
    pub fn is_of_other_programs(&self) -> bool {
        self.share > DISTURBED
    }

    /// The microseconds that a share of all moments needs to find the machine running. For shares between
    /// those kept, that of the next lower one.
    pub fn floor_us(&self, share: f64) -> f64 {
        let kept = self.floors_us.iter().take_while(|(kept, _)| *kept <= share);
        kept.last().map_or(0.0, |(_, us)| *us)
    }
}

/// The least x so that at most 1 − `share` of all moments lie more than x before the end of a gap.
fn floor(gaps: &[u64], elapsed: u64, share: f64) -> f64 {
    let beyond = |x: f64| gaps.iter().map(|&gap| (gap as f64 - x).max(0.0)).sum::<f64>();
    let allowed = (1.0 - share) * elapsed as f64;
    let (mut low, mut high) = (0.0, gaps.iter().copied().max().unwrap_or(0) as f64);
    if beyond(0.0) <= allowed {
        return 0.0;
    }
    // To a nanosecond, of gaps of at most some seconds.
    while high - low > 0.5 {
        let middle = (low + high) / 2.0;
        if beyond(middle) > allowed { low = middle } else { high = middle }
    }
    high
}

fn spin(core: CoreId, each: Duration, ready: &Barrier) -> Result<Noise, CoreError> {
    let pinned = pin_current_thread(core);
    // Also where it was not: the others wait.
    ready.wait();
    pinned?;
    let clock = Clock::new();
    let mut gaps = Vec::with_capacity(1 << 16);
    let start = clock.now();
    let end = start + each;
    let mut last = start;
    while last < end {
        let now = clock.now();
        let gap = now.since(last).as_nanos() as u64;
        if gap > LEAST_GAP {
            gaps.push(gap);
        }
        last = now;
    }
    Ok(Noise::of_gaps(&gaps, last.since(start).as_nanos() as u64, core.0))
}

impl std::fmt::Display for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Noise { seconds, core, longest_us, share, .. } = self;
        let count: u64 = self.gaps.iter().map(|(_, count)| count).sum();
        write!(
            f,
            "the machine alone: {:.2} % of {seconds:.1} s on core {core} lost in {count} gaps, the longest {longest_us:.0} us; \
             floor p95 {:.1} us, p99 {:.1} us, p99.9 {:.1} us",
            100.0 * share,
            self.floor_us(0.95),
            self.floor_us(0.99),
            self.floor_us(0.999),
        )?;
        let mut lower = 0.0;
        for (upper, count) in &self.gaps {
            if *count > 0 {
                write!(f, "\n{lower:>12.0} to {upper:>6.0} us {count:>8}")?;
            }
            lower = *upper;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Timed: threads, clock.

    use super::*;

    #[test]
    fn a_moment_waits_for_the_end_of_its_gap() {
        // A tenth of the time in gaps of 1 ms: 5 % of all moments lie in the first half of one.
        let noise = Noise::of_gaps(&[1_000_000; 10], 100_000_000, 3);
        assert!((noise.share - 0.1).abs() < 1e-9);
        assert_eq!(noise.floor_us(0.5), 0.0);
        assert!(noise.floor_us(0.9) < 0.001, "a tenth of the time, to the moment");
        assert!((noise.floor_us(0.95) - 500.0).abs() < 0.1, "{}", noise.floor_us(0.95));
        assert!((noise.floor_us(0.99) - 900.0).abs() < 0.1);
        assert_eq!(noise.longest_us, 1_000.0);
        assert_eq!(noise.gaps.iter().map(|(_, count)| count).sum::<u64>(), 10);
        assert_eq!(noise.gaps.last(), Some(&(1_024.0, 10)));
    }

    #[test]
    fn a_silent_machine_has_no_floor() {
        let noise = Noise::of_gaps(&[], 1_000_000, 0);
        assert_eq!((noise.share, noise.floor_us(0.9999), noise.gaps.len()), (0.0, 0.0, 0));
    }

    #[test]
    fn this_machine_has_some_that_adds_up() {
        let noise = Noise::measure(Duration::from_millis(20)).unwrap();
        assert!(noise.seconds >= 0.02 && (0.0..=1.0).contains(&noise.share), "{noise}");
        let floors: Vec<_> = noise.floors_us.iter().map(|(_, us)| *us).collect();
        assert!(floors.is_sorted(), "{floors:?}");
    }
}
