//! A NIC and three or four claimants under many schedules: nothing is lost or doubled, each claimant gets its packets in
//! order, and a claimant that is paused between claim and done stops the others only when the ring is used up.

use std::time::Duration;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::{Config, Runner, thread};

use crate::backend::sim::descriptor_ring::{ClaimantSide, shared_descriptor_ring};

const SCHEDULES: usize = 1_000;
const PACKETS: u32 = 24;
const DESCRIPTORS: u32 = 4;

/// Takes packets until all of the run are taken; lets other threads go on between claim and done.
fn empty(claimant: &ClaimantSide<u32>, taken: &AtomicU32) -> Vec<u32> {
    let mut got = Vec::new();
    while taken.load(Ordering::SeqCst) < PACKETS {
        let Ok(claimed) = claimant.claim(3, u64::MAX) else {
            thread::yield_now();
            continue;
        };
        let (first, end) = claimed.range();
        thread::yield_now();
        let before = got.len();
        let done = claimed.take(|packet| got.push(packet));
        let packets: Vec<u32> = (first as u32..end as u32).collect();
        assert_eq!(got[before..], packets, "the NIC wrote packet n into descriptor n");
        thread::yield_now();
        done.finish();
        taken.fetch_add((end - first) as u32, Ordering::SeqCst);
    }
    got
}

fn run(claimants: usize) {
    let (mut nic, claimant) = shared_descriptor_ring(DESCRIPTORS);
    let taken = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..claimants)
        .map(|_| {
            let (claimant, taken) = (claimant.clone(), taken.clone());
            thread::spawn(move || empty(&claimant, &taken))
        })
        .collect();
    for packet in 0..PACKETS {
        while nic.put(packet).is_err() {
            thread::yield_now();
        }
    }
    let mut all = Vec::new();
    for thread in threads {
        let got = thread.join().unwrap();
        assert!(got.is_sorted());
        all.extend(got);
    }
    all.sort_unstable();
    assert_eq!(all, (0..PACKETS).collect::<Vec<_>>());
    assert_eq!((claimant.tail(), claimant.backlog()), (PACKETS.into(), 0));
}

fn explore(scheduler: impl Scheduler + 'static, claimants: usize) {
    let mut config = Config::new();
    config.max_time = Some(Duration::from_secs(60));
    Runner::new(scheduler, config).run(move || run(claimants));
}

#[test]
fn three_claimants_under_random_schedules() {
    explore(RandomScheduler::new(SCHEDULES), 3);
}

#[test]
fn four_claimants_under_random_schedules() {
    explore(RandomScheduler::new(SCHEDULES), 4);
}

#[test]
fn three_claimants_under_schedules_of_few_changes() {
    explore(PctScheduler::new(4, SCHEDULES), 3);
}

#[test]
fn four_claimants_under_schedules_of_few_changes() {
    explore(PctScheduler::new(4, SCHEDULES), 4);
}
