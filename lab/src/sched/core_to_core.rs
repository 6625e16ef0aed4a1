//! How far apart two cores are: what a cache line takes from one to the other.
//!
//! On a virtual machine this may change from one second to the next, as the host moves virtual processors between cores that share a
//! cache and those that do not. What workers share then costs several times more or less.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::CoreId;
use rheostat_kernel::core_set::{CoreError, pin_current_thread};
use rheostat_measure::rounding::to_tenths;

use crate::testbed::Cores;

/// Round trips that are timed together, and how often they are.
const ROUND_TRIPS: u32 = 500;
const BATCHES: usize = 9;
/// Looks for an answer before a thread yields its core, which the other may need.
const PATIENCE: u32 = 1_000;
/// Distances that differ by less are taken for the same.
const LIKE: f64 = 1.5;

/// A line on which a thread answers another.
#[repr(align(128))]
struct CacheLine(AtomicU32);

impl CacheLine {
    /// Waits for `number`. Relaxed, as nothing is behind the number.
    fn wait_for(&self, number: u32) {
        let mut looks = 0_u32;
        while self.0.load(Ordering::Relaxed) != number {
            looks += 1;
            match looks.is_multiple_of(PATIENCE) {
                true => thread::yield_now(),
                false => std::hint::spin_loop(),
            }
        }
    }
}

/// Nanoseconds that a line takes from one core to the other: half of the median round trip of two lines. Takes a few milliseconds on
/// idle cores.
///
/// # Errors
/// [`CoreError`] if a thread cannot be pinned.
pub(super) fn core_to_core_ns([near, far]: [CoreId; 2]) -> Result<f64, CoreError> {
    let (there, back) = (CacheLine(AtomicU32::new(0)), CacheLine(AtomicU32::new(0)));
    let start = Barrier::new(2);
    let last = ROUND_TRIPS * BATCHES as u32;
    thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let pinned = pin_current_thread(far);
            start.wait();
            for number in 1..=last {
                there.wait_for(number);
                back.0.store(number, Ordering::Relaxed);
            }
            pinned
        });
        let asking = scope.spawn(|| {
            let pinned = pin_current_thread(near);
            start.wait();
            let mut number = 0;
            let mut times = [Duration::ZERO; BATCHES];
            for time in &mut times {
                let from = Instant::now();
                for _ in 0..ROUND_TRIPS {
                    number += 1;
                    there.0.store(number, Ordering::Relaxed);
                    back.wait_for(number);
                }
                *time = from.elapsed();
            }
            times.sort_unstable();
            pinned.map(|()| times[BATCHES / 2])
        });
        answering.join().expect("nothing panics")?;
        let time = asking.join().expect("nothing panics")?;
        Ok(time.as_nanos() as f64 / f64::from(2 * ROUND_TRIPS))
    })
}

/// The cores of the first two workers, if this process may use two.
pub(super) fn first_two() -> Result<Option<[CoreId; 2]>, CoreError> {
    Ok(Cores::available()?.as_slice().first_chunk().copied())
}

/// The least and the greatest of distances, to tenths.
pub(super) fn range(distances: &[f64]) -> Option<[f64; 2]> {
    let least = distances.iter().copied().reduce(f64::min)?;
    let greatest = distances.iter().copied().reduce(f64::max)?;
    Some([least, greatest].map(to_tenths))
}

/// Whether the ends of a range are so near that what cores share costs the same.
pub(super) fn are_like([least, greatest]: [f64; 2]) -> bool {
    greatest <= LIKE * least
}

#[cfg(test)]
mod tests {
    //! Timed: threads, clock.

    use super::*;

    #[test]
    fn threads_answer_each_other_on_one_core_too() {
        let core = Cores::available().unwrap().first();
        assert!(core_to_core_ns([core; 2]).unwrap() > 0.0);
    }

    #[test]
    fn distances_are_like_within_half() {
        let like = |distances: &[f64]| are_like(range(distances).unwrap());
        assert!(like(&[50.0, 75.0]) && like(&[75.0, 60.0, 50.0]) && like(&[60.0]));
        assert!(!like(&[50.0, 76.0]) && !like(&[60.0, 270.0, 55.0]));
        assert_eq!(range(&[]), None);
    }
}
