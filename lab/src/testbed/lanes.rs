//! Parts of all runs of lanes in this process: buffers, hashes of flows, and the end of a run with its invariants.

use std::thread;
use std::time::{Duration, Instant};

use rheostat_io::DeviceMonitor;
use rheostat_packet::mbuf::PoolError;
use rheostat_packet::{Mempool, MempoolConfig};
use rheostat_run::{RunReport, Runtime};
use rheostat_state::FlowHasher;

use crate::error::BenchError;

/// How long packets that are under way at the end may take.
const DRAIN: Duration = Duration::from_secs(5);

/// So many packet buffers.
pub(crate) fn pool(buffers: u32) -> Result<Mempool, PoolError> {
    Mempool::new(&MempoolConfig { buffers, ..MempoolConfig::default() })
}

/// The hash of flows that belongs to a seed.
pub(crate) fn hasher(seed: u64) -> FlowHasher {
    FlowHasher::new(std::array::from_fn(|word| {
        (seed + word as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95).rotate_left(29)
    }))
}

/// Ends the sources, and waits until all packets under way have left, for 5 seconds at most.
pub(crate) fn drain(runtime: &Runtime) {
    runtime.stop_sources();
    let begun = Instant::now();
    while !runtime.is_finished() && begun.elapsed() < DRAIN {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ends a run.
///
/// # Errors
/// [`BenchError::Violated`] when one of its invariants did not hold.
pub(crate) fn finish(runtime: Runtime) -> Result<RunReport, BenchError> {
    let mut report = runtime.join()?;
    match report.violations.is_empty() {
        true => Ok(report),
        false => Err(BenchError::Violated(report.violations.swap_remove(0))),
    }
}

/// Whether the packets drawn before a run lasted until its end.
///
/// # Errors
/// [`BenchError::LateWindow`] when they did not.
pub(crate) fn in_time(source: &dyn DeviceMonitor) -> Result<(), BenchError> {
    match source.source().and_then(|source| source.work()).is_some_and(|work| work.late > 0) {
        true => Err(BenchError::LateWindow),
        false => Ok(()),
    }
}
