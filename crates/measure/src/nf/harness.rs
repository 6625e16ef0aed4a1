//! The baseline: source and sink in the loop of a worker, with nothing between them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rheostat_base::{Clock, ClockSource, CoreId, Counter};
use rheostat_io::QueuePair;
use rheostat_packet::{Burst, Mempool, PoolCache};

use super::measurement::{Figure, Sample, await_opening, measure as take};
use super::testbed::Testbed;
use super::{NfBench, Spec};
use crate::error::MeasureError;

/// Measures the source and the sink of a load.
pub(super) fn measure(spec: &Spec, bench: &NfBench) -> Result<Figure, MeasureError> {
    let mut testbed = Testbed::new(spec, Ok)?;
    let mut lanes: Vec<Vec<QueuePair>> = (0..spec.lanes).map(|_| Vec::new()).collect();
    for device in &mut testbed.devices {
        for (lane, pair) in lanes.iter_mut().zip(device.queues()) {
            lane.push(pair);
        }
    }
    let stop = AtomicBool::new(false);
    let clock = Clock::new();
    let received: Vec<HarnessReceived> = lanes.iter().map(|_| HarnessReceived::default()).collect();
    thread::scope(|scope| {
        let workers: Vec<_> = lanes
            .into_iter()
            .zip(&testbed.cores)
            .zip(&received)
            .map(|((queues, core), received)| {
                let (pool, clock, stop) = (&testbed.pool, &clock, &stop);
                scope.spawn(move || forward(queues, *core, pool, clock, stop, &received.0))
            })
            .collect();
        let figure = await_opening(&testbed.opening, spec.load.flows.into()).map(|()| {
            take(bench, testbed.warm_up, || {
                let packets = received.iter().map(|lane| lane.0.get()).sum();
                let seconds = clock.now().as_nanos() as f64 * 1e-9;
                Sample { packets, seconds, timings: testbed.opening.timings() }
            })
        });
        stop.store(true, Ordering::Relaxed);
        for worker in workers {
            worker.join().expect("a worker of the harness has nothing to panic about")?;
        }
        let passed = received.iter().map(|lane| lane.0.get()).sum();
        Ok(Figure { passed, ..figure? })
    })
}

/// Packets that a worker has received, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct HarnessReceived(Counter);

/// What a worker does with a lane, less the lane.
fn forward(
    mut queues: Vec<QueuePair>,
    core: CoreId,
    pool: &Mempool,
    clock: &Clock,
    stop: &AtomicBool,
    received: &Counter,
) -> Result<(), MeasureError> {
    rheostat_kernel::core_set::pin_current_thread(core)?;
    let mut cache = PoolCache::new(pool.clone());
    let mut burst = Burst::new();
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        for device in 0..queues.len() {
            let count = queues[device].rx.recv(&mut burst, &mut cache, now);
            received.add(count as u64);
            // Two devices: what comes from one leaves through the other.
            queues[1 - device].tx.send(&mut burst, &mut cache, now);
            for refused in burst.drain(..) {
                cache.free(refused);
            }
        }
    }
    Ok(())
}
