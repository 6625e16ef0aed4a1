//! Faults of a whole device: what they break is seen from outside, and nothing else breaks.

use std::time::Duration;

use crate::support::{config, numbered, poll, pool};
use rheostat_base::Time;
use rheostat_io::{Device, FaultConfig, NullSink, Pacing, SimConfig, SimNic, with_faults};
use rheostat_packet::{Mempool, PoolCache};

/// Stamps in the order they were received, and the packets the device states it passed on.
fn run(faults: &FaultConfig, pool: &Mempool) -> (Vec<u32>, u64) {
    let nic = SimConfig { pacing: Pacing::Lossless, ..config(2, 8) };
    let nic = SimNic::open(nic, numbered(300), |_| Box::new(NullSink), pool).unwrap();
    let (mut device, _) = with_faults(Box::new(nic), faults);
    let (mut queues, monitor) = (device.queues(), device.monitor());
    let mut cache = PoolCache::new(pool.clone());
    let (mut stamps, mut now) = (Vec::new(), Time::ZERO);
    while !monitor.is_exhausted() {
        for queue in &mut queues {
            // Small polls, so that doubled packets have to wait.
            for packet in poll(&mut *queue.rx, 4, &mut cache, now) {
                stamps.push(packet.stamp());
                cache.free(packet);
            }
        }
        now += Duration::from_micros(1);
    }
    stamps.sort_unstable();
    (stamps, monitor.counters().arrived)
}

#[test]
fn doubled_and_late_packets_are_waited_for() {
    let pool = pool(512);
    let delay = Some((0.05, Duration::from_micros(20)));
    let faults = FaultConfig { seed: 1, duplicate: 0.5, delay, ..FaultConfig::default() };
    let (mut stamps, arrived) = run(&faults, &pool);
    assert!(stamps.len() > 400);
    stamps.dedup();
    assert_eq!((stamps, arrived), ((0..300).collect(), 300));
    assert_eq!(pool.available(), 512);
}

#[test]
fn a_loss_is_not_in_the_counters_of_the_device() {
    let pool = pool(512);
    let faults = FaultConfig { seed: 2, drop: 0.1, limit: Some(1), ..FaultConfig::default() };
    let (stamps, arrived) = run(&faults, &pool);
    assert_eq!((stamps.len(), arrived), (298, 300), "one in each queue");
    assert_eq!(pool.available(), 512);
}

#[test]
fn a_leak_is_missing_from_the_pool() {
    let pool = pool(512);
    let faults = FaultConfig { seed: 3, leak: 0.1, limit: Some(1), ..FaultConfig::default() };
    assert_eq!(run(&faults, &pool).0.len(), 298);
    assert_eq!(pool.available(), 510);
}
