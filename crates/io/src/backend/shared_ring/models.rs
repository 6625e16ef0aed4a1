//! Claimants under every interleaving. Mutations that these notice are listed in docs/verification.md.

use loom::thread;
use rheostat_base::sync::atomic::{AtomicU32, Ordering};
use rheostat_base::sync::{Arc, UnsafeCell};

use super::{Claims, Readiness, Turns};
use crate::backend::sim::descriptor_ring::{ClaimantSide, NicSide, shared_descriptor_ring};

/// Two threads with up to three preemptions, which finish in seconds.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// One attempt to claim, take and give back one packet.
fn attempt(claimant: &ClaimantSide<Box<u32>>, got: &mut Vec<u32>) -> bool {
    let Ok(claimed) = claimant.claim(1, u64::MAX) else { return false };
    claimed.take(|packet| got.push(*packet)).finish();
    true
}

/// The same on another thread, which ends with what it got.
fn attempt_elsewhere(claimant: &ClaimantSide<Box<u32>>) -> thread::JoinHandle<Vec<u32>> {
    let claimant = claimant.clone();
    thread::spawn(move || {
        let mut got = Vec::new();
        attempt(&claimant, &mut got);
        got
    })
}

/// A ring of two descriptors with packets 0 and 1.
fn full_ring() -> (NicSide<Box<u32>>, ClaimantSide<Box<u32>>) {
    let (mut nic, claimant) = shared_descriptor_ring(2);
    for packet in 0..2 {
        nic.put(Box::new(packet)).unwrap();
    }
    (nic, claimant)
}

fn assert_each_once(mut got: Vec<u32>, packets: u32) {
    got.sort_unstable();
    assert_eq!(got, (0..packets).collect::<Vec<_>>());
}

/// *Stale done bit on wrap*: two claimants of a full ring of two descriptors, who look for more than there is. Each packet is
/// taken once, and the ring is free afterwards. Fails when the scan goes beyond the tail.
#[test]
fn a_descriptor_is_not_claimed_again_before_it_is_cleared() {
    check(|| {
        let (mut nic, claimant) = full_ring();
        let other = attempt_elsewhere(&claimant);
        let mut got = Vec::new();
        for _ in 0..3 {
            attempt(&claimant, &mut got);
        }
        got.extend(other.join().unwrap());
        while attempt(&claimant, &mut got) {}
        assert_each_once(got, 2);
        assert_eq!(claimant.tail(), 2);
        assert!(nic.put(Box::new(0)).is_ok() && nic.put(Box::new(0)).is_ok());
    });
}

/// The same where a claimant looks only at the last of the descriptors that it asks for. Fails when it looks beyond the bound.
#[test]
fn a_descriptor_beyond_the_tail_does_not_stand_for_those_before_it() {
    check(|| {
        let (_nic, claimant) = full_ring();
        let all = |claimant: &ClaimantSide<Box<u32>>, got: &mut Vec<u32>| {
            if let Ok(claimed) = claimant.claim(2, u64::MAX) {
                claimed.take(|packet| got.push(*packet)).finish();
            }
        };
        let other = attempt_elsewhere(&claimant);
        let mut got = Vec::new();
        for _ in 0..2 {
            all(&claimant, &mut got);
        }
        got.extend(other.join().unwrap());
        all(&claimant, &mut got);
        assert_each_once(got, 2);
        assert_eq!(claimant.tail(), 2);
    });
}

/// Packets of which a claimant saw only the last are complete, for they were written before it. Fails when the done bit is set
/// or seen without its Release or its Acquire.
#[test]
fn of_packets_claimed_together_each_is_complete() {
    check(|| {
        let (mut nic, claimant) = shared_descriptor_ring(2);
        let writer = thread::spawn(move || {
            for packet in 0..2 {
                nic.put(Box::new(packet)).unwrap();
            }
        });
        let mut got = Vec::new();
        while got.len() < 2 {
            match claimant.claim(2, u64::MAX) {
                Ok(claimed) => claimed.take(|packet| got.push(*packet)).finish(),
                Err(_) => thread::yield_now(),
            }
        }
        writer.join().unwrap();
        assert_eq!(got, [0, 1]);
    });
}

/// A NIC that laps the ring, and two claimants, of which one is the NIC's thread: each packet arrives complete and once, and
/// to each claimant in order. Fails when an ordering of the done bits, of the tail, or of the NIC's own words is weakened.
#[test]
fn packets_cross_once_through_a_ring_that_is_lapped() {
    check(|| {
        let (mut nic, claimant) = shared_descriptor_ring(2);
        nic.put(Box::new(0)).unwrap();
        let other = attempt_elsewhere(&claimant);
        let (mut got, mut next) = (Vec::new(), 1);
        while next < 3 {
            match nic.put(Box::new(next)) {
                Ok(()) => next += 1,
                Err(_) => {
                    if !attempt(&claimant, &mut got) {
                        thread::yield_now();
                    }
                }
            }
        }
        let theirs = other.join().unwrap();
        while attempt(&claimant, &mut got) {}
        assert!(got.is_sorted());
        got.extend(theirs);
        assert_each_once(got, 3);
    });
}

/// *Lost tail advance*: two claimants finish at the same time. Afterwards everything is released, in order, whichever of the two had the
/// lock. Fails when either `swap` of the lock is weakened, when a compare-and-swap and a store take their place, and when
/// the holder does not look again.
#[test]
fn the_tail_passes_everything_that_is_done() {
    check(|| {
        let claims = Arc::new(Claims::new(4));
        // Of the standard library, so that it orders nothing in the model.
        let released = Arc::new(std::sync::Mutex::new(Vec::new()));
        let lock = Arc::new(UnsafeCell::new(()));
        let claim = |claims: &Claims| {
            claims.claim(1, u64::MAX, |_| Readiness::Whole, |_| ()).expect("room for four")
        };
        let [first, second, third] = [0; 3].map(|_| claim(&claims));
        let note = {
            let released = released.clone();
            // The cell checks that calls follow one another.
            move |from, to| lock.with_mut(|_| released.lock().unwrap().push((from, to)))
        };
        let other = {
            let (claims, note) = (claims.clone(), note.clone());
            thread::spawn(move || claims.finish(second, &note))
        };
        claims.finish(third, &note);
        claims.finish(first, &note);
        other.join().unwrap();
        assert_eq!(claims.tail(), 3);
        let released = released.lock().unwrap();
        let ends = released.iter().map(|(_, to)| *to);
        let starts: Vec<u64> = released.iter().map(|(from, _)| *from).collect();
        assert_eq!(starts, [0].into_iter().chain(ends).take(starts.len()).collect::<Vec<_>>());
        assert_eq!(released.last().map(|(_, to)| *to), Some(3));
    });
}

/// What a claimant reads of a descriptor happens before it is released. Fails when the Release of the done bits or the
/// Acquire of the count is weakened.
#[test]
fn a_descriptor_is_read_before_it_is_released() {
    check(|| {
        let claims = Arc::new(Claims::new(2));
        let descriptors = Arc::new([UnsafeCell::new(0), UnsafeCell::new(0)]);
        let claim = |claims: &Claims| {
            claims.claim(1, u64::MAX, |_| Readiness::Whole, |_| ()).expect("room for two")
        };
        let [first, second] = [0; 2].map(|_| claim(&claims));
        // The cells check that no two accesses conflict.
        let read = |descriptors: &[UnsafeCell<u32>; 2], index: u64| {
            descriptors[index as usize].with(|_| ());
        };
        let overwrite = |descriptors: &[UnsafeCell<u32>; 2], from: u64, to: u64| {
            (from..to).for_each(|index| descriptors[index as usize].with_mut(|_| ()));
        };
        let other = {
            let (claims, descriptors) = (claims.clone(), descriptors.clone());
            thread::spawn(move || {
                read(&descriptors, first.first);
                claims.finish(first, |from, to| overwrite(&descriptors, from, to));
            })
        };
        read(&descriptors, second.first);
        claims.finish(second, |from, to| overwrite(&descriptors, from, to));
        other.join().unwrap();
        assert_eq!(claims.tail(), 2);
    });
}

/// Tickets grow with the index, whichever claimant draws first. Fails when the Release or an Acquire of `claimed` is weakened.
#[test]
fn of_two_claims_the_later_drew_its_ticket_later() {
    check(|| {
        let claims = Arc::new(Claims::new(4));
        let tickets = Arc::new(AtomicU32::new(0));
        let claim = |claims: &Claims, tickets: &AtomicU32| {
            let draw = |_| tickets.fetch_add(1, Ordering::Relaxed);
            let claim =
                claims.claim(1, u64::MAX, |_| Readiness::Whole, draw).expect("room for four");
            let drawn = (claim.first, claim.ticket);
            claims.finish(claim, |_, _| {});
            drawn
        };
        let other = {
            let (claims, tickets) = (claims.clone(), tickets.clone());
            thread::spawn(move || [claim(&claims, &tickets), claim(&claims, &tickets)])
        };
        let mut drawn = vec![claim(&claims, &tickets), claim(&claims, &tickets)];
        drawn.extend(other.join().unwrap());
        drawn.sort_unstable();
        let first: Vec<u64> = drawn.iter().map(|(first, _)| *first).collect();
        assert_eq!(first, [0, 1, 2, 3]);
        assert!(drawn.is_sorted_by_key(|(_, ticket)| *ticket), "{drawn:?}");
    });
}

/// Turns that two lanes close at the same time leave once and in the order of claims. Fails where the models of the release
/// do, whose code this is.
#[test]
fn turns_leave_once_and_in_order() {
    check(|| {
        let turns = Arc::new(Turns::new(4));
        let left = Arc::new(std::sync::Mutex::new(Vec::new()));
        let close = |turns: &Turns<Box<u64>>, left: &std::sync::Mutex<Vec<u64>>, index: u64| {
            turns.close(index, index + 1, Box::new(index), |turn| left.lock().unwrap().push(*turn));
        };
        let other = {
            let (turns, left) = (turns.clone(), left.clone());
            thread::spawn(move || close(&turns, &left, 1))
        };
        close(&turns, &left, 2);
        close(&turns, &left, 0);
        other.join().unwrap();
        assert_eq!(*left.lock().unwrap(), [0, 1, 2]);
        assert_eq!(turns.tail(), 3);
    });
}
