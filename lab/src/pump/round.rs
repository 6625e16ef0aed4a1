//! One absence of a lane, and the same moments again on a device that is stepped through them.

use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{Clock, ClockSource, Time};
use rheostat_io::{
    Device, DeviceMonitor, DrawnArrivals, Driver, NullSink, Pacing, RxQueue, SimConfig, SimNic,
};
use rheostat_packet::{Burst, Mempool, PoolCache};

use crate::error::BenchError;
use crate::testbed::lanes;

/// How long the lane is there before and, at least, after.
const BEFORE: Duration = Duration::from_millis(5);
const AFTER: Duration = Duration::from_millis(5);
/// More than the lane needs to become done with what it found, and for absences that were none of its own.
const SLACK: Duration = Duration::from_millis(300);

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) dropped_pumped: u64,
    pub(super) dropped_stepped: u64,
    /// The longest time between two polls.
    pub(super) longest: Duration,
}

/// A poll: when, how many packets it got, and a sum of their stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Poll {
    now: Time,
    taken: usize,
    stamps: u64,
}

impl Round {
    /// How much of the source a round needs.
    pub(super) fn length(away: Duration) -> Duration {
        BEFORE + away + AFTER + SLACK
    }

    /// Polls without a pause, stays away once for `away`, and does the same again in virtual time.
    pub(super) fn run(
        config: &SimConfig,
        drawn: &DrawnArrivals,
        rate: u64,
        away: Duration,
        pool: &Mempool,
        clock: &Clock,
    ) -> Result<Round, BenchError> {
        let by: Arc<dyn ClockSource> = Arc::new(clock.clone());
        let mut nic = SimNic::open_drawn(config, drawn, by, |_| Box::new(NullSink))?;
        let monitor = nic.monitor();
        let mut rx = nic.queues().remove(0).rx;
        let polls = be_away(&mut *rx, pool, away, clock);
        let dropped_pumped = dropped(&*monitor);
        lanes::in_time(&*monitor)?;
        let dropped_stepped = step(config, rate, pool, &polls)?;
        let gaps = polls.windows(2).map(|pair| pair[1].now.since(pair[0].now));
        let longest = gaps.max().unwrap_or_default();
        Ok(Round { dropped_pumped, dropped_stepped, longest })
    }
}

fn be_away(rx: &mut dyn RxQueue, pool: &Mempool, away: Duration, clock: &Clock) -> Vec<Poll> {
    let mut cache = PoolCache::new(pool.clone());
    let mut polls = Vec::with_capacity(1 << 20);
    let start = clock.now();
    let poll_until = |end: Time, polls: &mut Vec<Poll>, rx: &mut dyn RxQueue, cache: &mut _| {
        loop {
            let now = clock.now();
            polls.push(poll(rx, cache, now));
            if now >= end {
                break now;
            }
        }
    };
    let left = poll_until(start + BEFORE, &mut polls, rx, &mut cache);
    while clock.now() < left + away {
        std::hint::spin_loop();
    }
    poll_until(left + away + AFTER, &mut polls, rx, &mut cache);
    // A poll that finds nothing changes nothing.
    polls.retain(|poll| poll.taken > 0);
    polls
}

fn poll(rx: &mut dyn RxQueue, cache: &mut PoolCache, now: Time) -> Poll {
    let mut burst = Burst::new();
    let taken = rx.recv(&mut burst, cache, now);
    let mut stamps = 0_u64;
    for packet in burst.drain(..) {
        stamps = stamps.wrapping_mul(31).wrapping_add(u64::from(packet.stamp()) + 1);
        cache.free(packet);
    }
    Poll { now, taken, stamps }
}

/// What a device drops that is stepped through these polls.
fn step(config: &SimConfig, rate: u64, pool: &Mempool, polls: &[Poll]) -> Result<u64, BenchError> {
    let mut cache = PoolCache::new(pool.clone());
    // The first poll started the source, at whose start a packet is due.
    let origin = polls.first().map(|poll| poll.now);
    let pacing = Pacing::OpenLoop { origin };
    let config = SimConfig { driver: Driver::Stepped, pacing, ..config.clone() };
    let source = Box::new(super::evenly(rate));
    let mut nic = SimNic::open(config, source, |_| Box::new(NullSink), pool)?;
    let monitor = nic.monitor();
    let mut stepper = nic.stepper().expect("a stepped device has one");
    let mut rx = nic.queues().remove(0).rx;
    for (number, expected) in polls.iter().enumerate() {
        stepper.deliver_until(expected.now, &mut cache);
        if poll(&mut *rx, &mut cache, expected.now) != *expected {
            return Err(BenchError::PumpDiffers(number));
        }
    }
    Ok(dropped(&*monitor))
}

fn dropped(monitor: &dyn DeviceMonitor) -> u64 {
    monitor.counters().without_room()
}
