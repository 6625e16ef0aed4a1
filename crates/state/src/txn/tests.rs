use std::time::Duration;

use rheostat_base::{LaneId, Time};

use super::{Abort, Objects, Operation, Txn};
use crate::object::{Allocator, Cause, Distributed, Map, Vector};

fn two_lanes() -> (Objects, Txn, Txn) {
    let objects = Objects::new(2);
    let [a, b] = [0, 1].map(|lane| {
        let mut txn = Txn::new(&objects, LaneId(lane));
        txn.sample_every(1);
        txn
    });
    (objects, a, b)
}

#[test]
fn what_is_written_is_seen_by_others_once_it_is_committed() {
    let (objects, mut a, mut b) = two_lanes();
    let vector: Vector<[u32; 3]> = Vector::new(&objects, "v", [[0; 3]; 4]);
    a.begin(Time::ZERO);
    vector.write(&mut a, 1, [1, 2, 3]).unwrap();
    assert_eq!(vector.read(&mut a, 1), Ok([1, 2, 3]), "its own writes it sees at once");
    b.begin(Time::ZERO);
    assert_eq!(vector.read(&mut b, 1), Ok([0; 3]));
    a.commit().unwrap();
    assert_eq!(b.commit(), Ok(()), "it only read, and ran before");
    b.begin(Time::ZERO);
    assert_eq!(vector.read(&mut b, 1), Ok([1, 2, 3]));
    assert_eq!(vector.update(&mut b, 1, |v| std::mem::replace(&mut v[0], 7)), Ok(1));
    b.roll_back();
    b.begin(Time::ZERO);
    assert_eq!(vector.read(&mut b, 1), Ok([1, 2, 3]), "what is rolled back never was");
}

#[test]
fn a_stale_read_aborts_and_the_reason_is_noted() {
    let (objects, mut a, mut b) = two_lanes();
    let vector = Vector::<u64>::new(&objects, "v", [0; 4]);
    a.begin(Time::ZERO);
    assert_eq!(vector.read(&mut a, 0), Ok(0));
    b.begin(Time::ZERO);
    vector.write(&mut b, 0, 5).unwrap();
    b.commit().unwrap();
    vector.write(&mut a, 1, 1).unwrap();
    assert_eq!(a.commit(), Err(Abort));
    a.begin(Time::ZERO);
    assert_eq!(vector.read(&mut a, 1), Ok(0), "nothing of it is left");
    a.commit().unwrap();
    let profile = objects.profile();
    let total = profile.total();
    assert_eq!((total.commits, total.aborts, profile.noted()), (2, 1, 1));
    let conflict = profile.conflicts[0].conflict;
    assert_eq!(
        (conflict.mine.operation, conflict.theirs.operation),
        (Operation::Read, Operation::Write)
    );
    let line = |access: super::Access| access.site.unwrap();
    assert!(line(conflict.mine).file.ends_with("tests.rs"));
    assert_eq!(line(conflict.theirs).line, line(conflict.mine).line + 2);
    assert_eq!(Cause::of(objects.infos()[0].kind, &conflict), Cause::SameElement);
}

#[test]
fn memory_is_seen_as_it_was_at_one_time() {
    let (objects, mut a, mut b) = two_lanes();
    let vector = Vector::<u64>::new(&objects, "v", [0; 2]);
    a.begin(Time::ZERO);
    assert_eq!(vector.read(&mut a, 0), Ok(0));
    b.begin(Time::ZERO);
    vector.write(&mut b, 0, 1).unwrap();
    vector.write(&mut b, 1, 1).unwrap();
    b.commit().unwrap();
    // Not 0 and 1, which never stood there together.
    assert_eq!(vector.read(&mut a, 1), Err(Abort));
    assert!(a.is_conflicted());
    assert_eq!(vector.read(&mut a, 0), Err(Abort), "there is no way on");
    assert_eq!(a.commit(), Err(Abort), "and keeping the abort back is of no use");
    // A newer element alone is no conflict: the snapshot moves.
    a.begin(Time::ZERO);
    b.begin(Time::ZERO);
    vector.write(&mut b, 0, 2).unwrap();
    b.commit().unwrap();
    assert_eq!((vector.read(&mut a, 0), vector.read(&mut a, 1)), (Ok(2), Ok(1)));
    a.commit().unwrap();
}

#[test]
fn a_transaction_that_runs_alone_aborts_others_and_is_not_aborted() {
    let (objects, mut a, mut b) = two_lanes();
    let vector = Vector::<u64>::new(&objects, "v", [0; 2]);
    a.make_serial();
    a.begin(Time::ZERO);
    assert_eq!(vector.update(&mut a, 0, |v| *v += 1), Ok(()));
    b.begin(Time::ZERO);
    assert_eq!(vector.read(&mut b, 0), Ok(0), "others read on");
    vector.write(&mut b, 0, 9).unwrap();
    assert_eq!(b.commit(), Err(Abort));
    a.commit().unwrap();
    b.begin(Time::ZERO);
    assert_eq!(vector.update(&mut b, 0, |v| *v += 1), Ok(()));
    b.commit().unwrap();
    let total = objects.profile().total();
    assert_eq!((total.aborts, total.turned_away, total.alone), (0, 1, 1));
}

#[test]
fn boxed_values_are_freed_once_lanes_have_rested() {
    use std::sync::Arc;
    let (objects, mut a, mut b) = two_lanes();
    let value = Arc::new(1);
    {
        let vector = Vector::boxed(&objects, "v", [value.clone()]);
        let map = Map::<u32, _, _>::boxed(&objects, "m", 10);
        b.begin(Time::ZERO);
        let read = vector.read(&mut b, 0).unwrap();
        a.begin(Time::ZERO);
        vector.write(&mut a, 0, Arc::new(2)).unwrap();
        map.set(&mut a, 7, value.clone()).unwrap().unwrap();
        a.commit().unwrap();
        a.rest();
        assert_eq!((*read, Arc::strong_count(&value)), (1, 4), "the other lane may still look");
        b.rest();
        a.begin(Time::ZERO);
        a.rest();
        assert_eq!(Arc::strong_count(&value), 3);
        a.begin(Time::ZERO);
        map.set(&mut a, 8, value.clone()).unwrap().unwrap();
        map.set(&mut a, 8, value.clone()).unwrap().unwrap();
        assert_eq!(Arc::strong_count(&value), 5);
        a.roll_back();
        assert_eq!(Arc::strong_count(&value), 3, "what was never committed is gone");
        a.begin(Time::ZERO);
        assert_eq!(map.remove(&mut a, &7), Ok(Some(value.clone())));
        a.commit().unwrap();
        drop(read);
    }
    drop((a, b, objects));
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn leases_end_and_come_back() {
    let (objects, mut a, mut b) = two_lanes();
    let second = Duration::from_secs(1);
    let ports = Allocator::<u64>::new(&objects, "p", 3, &[second, 10 * second], second / 2);
    a.begin(Time::ZERO);
    let first = ports.allocate(&mut a, 100, 0).unwrap().unwrap();
    assert_eq!(first.resource, 0);
    let second = ports.allocate(&mut a, 101, 1).unwrap().unwrap();
    // Its pool is empty now.
    assert_eq!(second.resource, 2);
    let third = ports.allocate(&mut a, 102, 0).unwrap().unwrap();
    assert_eq!((third.resource, ports.allocate(&mut a, 0, 0)), (1, Ok(None)));
    assert_eq!(ports.expired(&mut a), Ok(None));
    a.commit().unwrap();
    assert_eq!(ports.lent(), 3);
    a.begin(Time::from_millis(900));
    assert_eq!(ports.refresh(&mut a, first, 0), Ok(true));
    a.commit().unwrap();
    b.begin(Time::from_millis(1_000));
    assert_eq!(ports.get(&mut b, third), Ok(None), "its time is up");
    assert_eq!(
        (ports.get(&mut b, first), ports.get(&mut b, second)),
        (Ok(Some(100)), Ok(Some(101)))
    );
    // The other lane has nothing free, so it takes back what is over.
    assert_eq!(ports.expired(&mut b), Ok(Some((third, 102))));
    assert_eq!(ports.expired(&mut b), Ok(None));
    assert_eq!(ports.free(&mut b, second), Ok(true));
    assert_eq!((ports.free(&mut b, second), ports.set(&mut b, second, 0)), (Ok(false), Ok(false)));
    assert_eq!(ports.take(&mut b, 0, 0, 0), Ok(None));
    let again = ports.take(&mut b, 2, 7, 0).unwrap().unwrap();
    assert!(again != second && again.resource == 2);
    assert_eq!(ports.holder(&mut b, 2), Ok(Some((again, 7))));
    b.commit().unwrap();
    assert_eq!(ports.lent(), 2);
}

#[test]
fn a_distributed_value_may_be_old() {
    let (objects, mut a, mut b) = two_lanes();
    let sum = |sum: &mut u64, share: &u64| *sum += share;
    let old = Distributed::new(&objects, "old", 0, sum, Duration::from_millis(1));
    let new = Distributed::new(&objects, "new", 0, sum, Duration::ZERO);
    let count = |txn: &mut Txn, at| {
        txn.begin(at);
        old.update(txn, |v| *v += 1).unwrap();
        new.update(txn, |v| *v += 1).unwrap();
        let read = (old.read(txn).unwrap(), new.read(txn).unwrap());
        txn.commit().unwrap();
        read
    };
    assert_eq!(count(&mut a, Time::from_millis(1)), (1, 1));
    assert_eq!(count(&mut b, Time::from_millis(2)), (1, 2));
    assert_eq!(count(&mut b, Time::from_millis(3)), (3, 3));
    assert_eq!((old.total(), new.total()), (3, 3));
}
