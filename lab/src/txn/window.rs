//! One pass of all packets through an engine.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rheostat_base::{Clock, CoreId};
use rheostat_kernel::core_set::{CoreError, pin_current_thread};

use super::engine::{Engine, Tries};
use super::lock::wait_while;
use super::packets::{Packets, TxnPacket};
use crate::error::BenchError;
use crate::testbed::Cores;

/// Packets after which a lane ends its burst.
const BURST: usize = 32;

/// What one window came to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TxnWindow {
    pub(super) packets: u64,
    /// What all lanes together spent, in nanoseconds.
    pub(super) nanos: u64,
    pub(super) tries: Tries,
}

/// Runs the lanes, each on a core of its own, from the moment that all are ready.
pub(super) fn pass<E: Engine>(
    lanes: &mut [E],
    packets: &Packets,
    batch: usize,
    clock: &Clock,
) -> Result<TxnWindow, BenchError> {
    let cores = Cores::of_lanes(0, lanes.len())?;
    let ready = &AtomicUsize::new(0);
    let all = lanes.len();
    let passed = thread::scope(|scope| {
        let lanes = lanes.iter_mut().zip(&packets.by_lane).zip(cores.as_slice().iter().copied());
        let workers: Vec<_> = lanes
            .map(|((lane, own), core)| {
                let four = packets.workload.reads_four();
                scope.spawn(move || match four {
                    true => run::<4, E>(lane, own, batch, core, (ready, all), clock),
                    false => run::<1, E>(lane, own, batch, core, (ready, all), clock),
                })
            })
            .collect();
        let ends = workers.into_iter().map(|worker| worker.join().expect("a lane ends"));
        ends.collect::<Result<Vec<_>, _>>()
    })?;
    let mut window = TxnWindow { packets: packets.count(), ..TxnWindow::default() };
    for (nanos, tries) in passed {
        window.nanos += nanos;
        window.tries += tries;
    }
    Ok(window)
}

/// A lane's pass: what it spent in nanoseconds, and its tries.
fn run<const N: usize, E: Engine>(
    lane: &mut E,
    packets: &[TxnPacket],
    batch: usize,
    core: CoreId,
    (ready, all): (&AtomicUsize, usize),
    clock: &Clock,
) -> Result<(u64, Tries), CoreError> {
    let pinned = pin_current_thread(core);
    // Counted after a failure, too, so that the others do not wait in vain.
    ready.fetch_add(1, Ordering::AcqRel);
    wait_while(|| ready.load(Ordering::Acquire) < all);
    pinned?;
    let mut tries = Tries::default();
    let before = clock.cycles();
    for burst in packets.chunks(BURST) {
        for batch in burst.chunks(batch) {
            black_box(lane.run::<N>(batch, &mut tries));
        }
        lane.end_burst();
    }
    Ok((clock.nanos_between(before, clock.cycles()), tries))
}
