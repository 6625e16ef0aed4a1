//! Simulations that run beside each other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What each run comes to, in the order of `runs`, with up to `threads` at the same time.
pub(super) fn in_parallel<T: Sync, R: Send>(
    runs: &[T],
    threads: usize,
    run: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(runs.len())));
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, runs.len().max(1)) {
            scope.spawn(|| {
                // Relaxed: each number is taken once, and nothing else hangs on it.
                while let Some((place, one)) = {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    runs.get(place).map(|one| (place, one))
                } {
                    let result = run(one);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
