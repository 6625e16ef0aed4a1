//! How unevenly packets come.

use rheostat_base::Time;
use serde::Serialize;

/// Windows are counted on these scales, in nanoseconds.
const SCALES: [u64; 4] = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// Of fewer windows there is no figure.
const FEWEST: u64 = 10;

/// How much the number of packets differs between windows of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Burstiness {
    /// The length of a window, in seconds.
    pub window: f64,
    /// How many windows there were, empty ones included.
    pub windows: u64,
    /// The index of dispersion for counts: the variance of the number of packets in a window, divided by its
    /// mean. 1 for a Poisson process, 0 for a constant rate; if it grows with the window, bursts
    /// follow each other in bursts.
    pub dispersion: f64,
    /// Packets of the fullest window, divided by the mean.
    pub peak_to_mean: f64,
}

/// Counts in windows of all scales.
#[derive(Debug)]
pub(super) struct Windows([BurstWindow; SCALES.len()]);

#[derive(Debug)]
struct BurstWindow {
    length: u64,
    /// The number of the window that is being counted.
    number: u64,
    count: u64,
    /// Of the windows before.
    sum: f64,
    squares: f64,
    most: u64,
}

impl Default for Windows {
    fn default() -> Windows {
        Windows(SCALES.map(|length| BurstWindow {
            length,
            number: 0,
            count: 0,
            sum: 0.0,
            squares: 0.0,
            most: 0,
        }))
    }
}

impl Windows {
    /// Counts a packet, which comes no earlier than the one before.
    pub(super) fn count(&mut self, now: Time) {
        for window in &mut self.0 {
            let number = now.as_nanos() / window.length;
            if number > window.number {
                window.close();
                window.number = number;
            }
            window.count += 1;
        }
    }

    /// What was counted, without the last windows, which may not have been whole.
    pub(super) fn burstiness(&self) -> Vec<Burstiness> {
        let enough = self.0.iter().filter(|window| window.number >= FEWEST && window.sum > 0.0);
        enough.map(BurstWindow::burstiness).collect()
    }
}

impl BurstWindow {
    fn close(&mut self) {
        let count = self.count as f64;
        self.sum += count;
        self.squares += count * count;
        self.most = self.most.max(self.count);
        self.count = 0;
    }

    fn burstiness(&self) -> Burstiness {
        let windows = self.number as f64;
        let mean = self.sum / windows;
        let variance = (self.squares - self.sum * mean) / (windows - 1.0);
        Burstiness {
            window: self.length as f64 / 1e9,
            windows: self.number,
            dispersion: variance / mean,
            peak_to_mean: self.most as f64 / mean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(times: impl Iterator<Item = u64>) -> Vec<Burstiness> {
        let mut windows = Windows::default();
        times.for_each(|us| windows.count(Time::from_nanos(us * 1_000)));
        windows.burstiness()
    }

    #[test]
    fn a_constant_rate_has_no_dispersion() {
        let figures = counted((0..100_000).map(|n| n * 10));
        assert_eq!(figures.len(), 2, "a second has no ten windows of 100 ms before the last one");
        assert!(
            figures.iter().all(|f| f.dispersion == 0.0 && f.peak_to_mean == 1.0),
            "{figures:?}"
        );
    }

    #[test]
    fn empty_windows_count() {
        // 40 packets in one millisecond of four, 100 times.
        let figures = counted((0..4_001).map(|n| n / 40 * 4_000 + n % 40));
        // Of 400 windows, 100 have 40: a mean of 10, a variance of 300 · 400 / 399.
        let Burstiness { windows, dispersion, peak_to_mean, .. } = figures[0];
        assert_eq!((windows, peak_to_mean), (400, 4.0));
        assert!((dispersion - 30.0 * 400.0 / 399.0).abs() < 1e-9, "{dispersion}");
    }
}
