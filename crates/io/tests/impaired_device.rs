//! A bad network before a device: what it does to packets of both directions, and that every one of them is accounted for.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{config, numbered, poll, pool};
use rheostat_base::{ClockSource, Time, VirtualClock};
use rheostat_io::{
    Device, ImpairConfig, ImpairCounts, NullSink, Pacing, SimConfig, SimNic, impair,
};
use rheostat_packet::{Burst, PoolCache};

const PACKETS: u32 = 2_000;
const BUFFERS: u32 = 4_096;

/// What a run came to: stamps as they were received, what was sent and when the last left, and the faults.
struct Ran {
    stamps: Vec<u32>,
    counts: [ImpairCounts; 2],
    sent: u64,
    /// When the last packet had left.
    last: Time,
}

/// Receives all packets of a device, and sends each.
fn run(faults: &str) -> Ran {
    let pool = pool(BUFFERS);
    let nic = SimConfig { pacing: Pacing::Lossless, ..config(2, 8) };
    let nic = SimNic::open(nic, numbered(PACKETS), |_| Box::new(NullSink), &pool).unwrap();
    let clock = Arc::new(VirtualClock::new());
    let shared: Arc<dyn ClockSource> = clock.clone();
    let faults: ImpairConfig = faults.parse().unwrap();
    let (mut device, seen) = impair(Box::new(nic), &faults, &pool, &shared);
    let (mut queues, monitor) = (device.queues(), device.monitor());
    let mut cache = PoolCache::new(pool.clone());
    let (mut stamps, mut now, mut given) = (Vec::new(), Time::ZERO, 0);
    while !monitor.is_exhausted() {
        for queue in &mut queues {
            let mut burst: Burst = poll(&mut *queue.rx, 16, &mut cache, now).into_iter().collect();
            stamps.extend(burst.iter().map(|packet| packet.stamp()));
            given += burst.len() as u64;
            while !burst.is_empty() {
                queue.tx.send(&mut burst, &mut cache, now);
            }
        }
        now += Duration::from_micros(1);
        clock.advance_to(now);
    }
    assert_eq!(stamps.len() as u64, monitor.counters().arrived, "what was lost never arrived");
    // What is on its way leaves although the lane only asks.
    while queues.iter_mut().any(|queue| queue.tx.unsent().waiting > 0) {
        now += Duration::from_micros(100);
        clock.advance_to(now);
        assert!(now < Time::from_secs(60), "all of it leaves");
    }
    assert_eq!(monitor.counters().sent, given, "what was lost was sent");
    let sent = given - seen.counts()[1].lost;
    queues.iter_mut().for_each(|queue| queue.tx.finish(&mut cache));
    drop((queues, cache));
    assert_eq!(pool.available(), BUFFERS as usize, "all buffers came back");
    Ran { stamps, counts: seen.counts(), sent, last: now }
}

#[test]
fn without_faults_nothing_changes() {
    let Ran { mut stamps, counts, sent, .. } = run("seed=1");
    stamps.sort_unstable();
    assert_eq!((stamps, sent), ((0..PACKETS).collect(), u64::from(PACKETS)));
    assert_eq!(counts, [ImpairCounts::default(); 2]);
}

#[test]
fn packets_are_lost_in_both_directions_as_often_as_was_asked_for() {
    let Ran { stamps, counts: [received, sent], .. } = run("loss=0.1,seed=2");
    assert_eq!(stamps.len() as u64 + received.lost, u64::from(PACKETS));
    for lost in [received.lost, sent.lost] {
        assert!((140..260).contains(&lost), "{lost}");
    }
}

#[test]
fn packets_come_twice_and_change_places() {
    let Ran { mut stamps, counts: [received, sent], .. } = run("duplicate=0.1,reorder=0.1,seed=3");
    assert!(!stamps.is_sorted());
    assert!(received.duplicated > 50 && sent.duplicated == 0, "{received:?} {sent:?}");
    assert!(received.reordered > 50 && sent.reordered > 50, "{received:?} {sent:?}");
    assert_eq!(stamps.len() as u64, u64::from(PACKETS) + received.duplicated);
    stamps.sort_unstable();
    stamps.dedup();
    assert_eq!(stamps.len() as u32, PACKETS);
}

#[test]
fn packets_leave_late_and_all_of_them() {
    let Ran { counts, sent, last, .. } = run("delay=3ms,seed=4");
    assert_eq!((sent, counts), (u64::from(PACKETS), [ImpairCounts::default(); 2]));
    assert!(last >= Time::ZERO + Duration::from_millis(6), "{last:?}");
}

#[test]
fn the_seed_names_the_faults() {
    assert_eq!(
        run("loss=0.1,reorder=0.1,seed=5").stamps,
        run("loss=0.1,reorder=0.1,seed=5").stamps
    );
    assert_ne!(
        run("loss=0.1,reorder=0.1,seed=5").stamps,
        run("loss=0.1,reorder=0.1,seed=6").stamps
    );
}
