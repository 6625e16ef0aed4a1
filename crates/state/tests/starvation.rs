//! Lanes on threads whose long transactions others are always in the way of: each of them gets through after a bounded
//! number of attempts, because it runs alone in the end.
//!
//! Timed: threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rheostat_base::{LaneId, Time};
use rheostat_state::object::Vector;
use rheostat_state::txn::{Objects, Outcome, Txn};

const ELEMENTS: usize = 64;
const TRANSACTIONS: u64 = 50;
/// Aborts after which a transaction runs alone.
const TIMEOUT: u64 = 8;

/// Reads every element, with something else in the middle, and writes one.
fn read_all(txn: &mut Txn, elements: &Vector<u64>, meanwhile: impl Fn()) -> Outcome<()> {
    txn.begin(Time::ZERO);
    let mut sum = 0;
    for element in 0..ELEMENTS {
        if element == ELEMENTS / 2 {
            meanwhile();
        }
        sum += elements.read(txn, element)?;
    }
    // All are changed together, so that a sum which is no multiple was never there.
    assert!(sum.is_multiple_of(ELEMENTS as u64), "{sum}");
    elements.update(txn, 0, |_| ())?;
    txn.commit()
}

fn change_all(txn: &mut Txn, elements: &Vector<u64>) -> Outcome<()> {
    txn.begin(Time::ZERO);
    for element in 0..ELEMENTS {
        elements.update(txn, element, |value| *value += 1)?;
    }
    txn.commit()
}

#[test]
fn no_transaction_waits_for_ever() {
    let objects = Objects::new(3);
    let elements = &Vector::new(&objects, "elements", [0; ELEMENTS]);
    let (over, changes) = (&AtomicBool::new(false), &AtomicU64::new(0));
    let wait_for_change = || {
        let before = changes.load(Ordering::SeqCst);
        // The first that is counted from here on may have been made before; the second is made after it was counted.
        while changes.load(Ordering::SeqCst) < before + 2 {
            thread::yield_now();
        }
    };
    let patient = |mut txn: Txn| {
        for _ in 0..TRANSACTIONS {
            // Another transaction is in the way each time.
            for _ in 0..TIMEOUT {
                let outcome = read_all(&mut txn, elements, wait_for_change);
                assert!(outcome.is_err(), "a change went unnoticed");
                txn.roll_back();
            }
            txn.make_serial();
            read_all(&mut txn, elements, || ()).expect("it runs alone");
            txn.rest();
        }
    };
    thread::scope(|scope| {
        let lane = |lane| Txn::new(&objects, LaneId(lane));
        let lanes: Vec<_> = (0..2).map(|number| (lane(number), &patient)).collect();
        let lanes: Vec<_> =
            lanes.into_iter().map(|(txn, run)| scope.spawn(move || run(txn))).collect();
        let mut txn = lane(2);
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                changes.fetch_add(change_all(&mut txn, elements).is_ok().into(), Ordering::SeqCst);
                txn.rest();
            }
        });
        let ends: Vec<_> = lanes.into_iter().map(|lane| lane.join()).collect();
        over.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(|end| end.expect("a lane gets through"));
    });
    let profile = objects.profile();
    assert_eq!(profile.lanes[2].commits, changes.load(Ordering::SeqCst));
    for lane in &profile.lanes[..2] {
        let expected = (TRANSACTIONS, TRANSACTIONS, TRANSACTIONS * TIMEOUT);
        assert_eq!((lane.commits, lane.alone, lane.aborts), expected);
    }
}
