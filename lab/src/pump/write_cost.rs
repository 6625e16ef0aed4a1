//! What it costs a lane to take a packet from the pumped device: to place it, and to write it into a buffer as the DMA
//! of a NIC would.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Clock, ClockSource};
use rheostat_io::{Device, DrawnArrivals, NullSink, SimNic};
use rheostat_measure::quantiles::median;
use rheostat_measure::rounding::to_tenths;
use rheostat_packet::{Burst, PoolCache};

use crate::error::BenchError;

const DESCRIPTORS: u32 = 1 << 14;
const RATE: u64 = 10_000_000;

/// Nanoseconds per packet of 64 bytes on the wire, in bursts of 32: the median.
pub(super) fn measure() -> Result<f64, BenchError> {
    let config = super::config(DESCRIPTORS)?;
    let pool = super::pool(DESCRIPTORS)?;
    let length = Duration::from_nanos(u64::from(DESCRIPTORS) * 1_000_000_000 / RATE);
    let drawn = DrawnArrivals::draw(&config, Box::new(super::evenly(RATE)), &pool, length)?;
    let clock = Clock::new();
    let by: Arc<dyn ClockSource> = Arc::new(clock.clone());
    let mut nic = SimNic::open_drawn(&config, &drawn, by, |_| Box::new(NullSink))?;
    let mut rx = nic.queues().remove(0).rx;
    let mut cache = PoolCache::new(pool);
    let mut burst = Burst::new();
    rx.recv(&mut burst, &mut cache, clock.now());
    burst.drain(..).for_each(|packet| cache.free(packet));
    // Everything is due, and is placed with the first poll.
    let now = clock.now() + length;
    rx.recv(&mut burst, &mut cache, now);
    burst.drain(..).for_each(|packet| cache.free(packet));
    let mut times = Vec::new();
    loop {
        let from = clock.cycles();
        let taken = rx.recv(&mut burst, &mut cache, now);
        let nanos = clock.nanos_between(from, clock.cycles());
        burst.drain(..).for_each(|packet| cache.free(packet));
        if taken == 0 {
            break;
        }
        times.push(nanos as f64 / taken as f64);
    }
    Ok(to_tenths(median(times)))
}
