//! Models of two lanes under loom, which tries every interleaving and every value that memory may show.

use loom::sync::Arc;
use loom::thread;
use rheostat_base::sync::UnsafeCell;
use rheostat_base::sync::atomic::{AtomicUsize, Ordering};
use rheostat_base::{LaneId, Time};

use crate::object::Vector;
use crate::txn::quiescence::Epochs;
use crate::txn::{Objects, Outcome, Txn};

/// Runs one transaction on each of two lanes, on `words` elements that are zero. Returns what they returned if
/// they committed, and the elements.
fn two<A: Send + 'static, B: 'static>(
    words: usize,
    a: impl Fn(&mut Txn, &Vector<u64>) -> Outcome<A> + Send + 'static,
    b: impl Fn(&mut Txn, &Vector<u64>) -> Outcome<B>,
) -> (Outcome<A>, Outcome<B>, Vec<u64>) {
    let objects = Objects::new(2);
    let vector = std::sync::Arc::new(Vector::new(&objects, "v", vec![0_u64; words]));
    let mut first = Txn::new(&objects, LaneId(0));
    let other = vector.clone();
    let thread = thread::spawn(move || {
        first.begin(Time::ZERO);
        let result = a(&mut first, &other);
        first.commit().and(result)
    });
    let mut second = Txn::new(&objects, LaneId(1));
    second.begin(Time::ZERO);
    let result = b(&mut second, &vector);
    let result = second.commit().and(result);
    let first = thread.join().unwrap();
    second.begin(Time::ZERO);
    let words = (0..words).map(|at| vector.read(&mut second, at).unwrap()).collect();
    (first, result, words)
}

/// Opacity: a transaction sees all of another's writes or none, even if it will not commit. Fails when the fence in
/// `read_shared` or the one in `write_all` is taken away, when the word is loaded relaxed or not looked at again, and when
/// the snapshot is not looked after or moves unchecked.
#[test]
fn reads_belong_together() {
    loom::model(|| {
        let (written, read, words) = two(
            2,
            |txn, vector| {
                vector.write(txn, 0, 1)?;
                vector.write(txn, 1, 1)
            },
            |txn, vector| {
                let x = vector.read(txn, 0)?;
                let y = vector.read(txn, 1)?;
                // Here, and not only once it has committed.
                assert_eq!(x, y);
                Ok(x)
            },
        );
        assert_eq!((written, words), (Ok(()), vec![1, 1]));
        assert!(read.is_err() || read == Ok(0) || read == Ok(1));
    });
}

/// Two that each read what the other writes cannot both have been first. Fails when the clock is incremented with less
/// than acquire and release, and when what was read is not looked at again.
#[test]
fn writes_follow_what_was_read() {
    loom::model(|| {
        let (a, b, words) = two(
            2,
            |txn, vector| {
                let x = vector.read(txn, 0)?;
                vector.write(txn, 1, x + 1)
            },
            |txn, vector| {
                let y = vector.read(txn, 1)?;
                vector.write(txn, 0, y + 1)
            },
        );
        let expected = match (a, b) {
            (Ok(()), Ok(())) => [vec![1, 2], vec![2, 1]],
            (Ok(()), Err(_)) => [vec![0, 1], vec![0, 1]],
            (Err(_), Ok(())) => [vec![1, 0], vec![1, 0]],
            (Err(_), Err(_)) => [vec![0, 0], vec![0, 0]],
        };
        assert!(expected.contains(&words), "{a:?} {b:?} {words:?}");
    });
}

/// No change is lost. Fails when the new version is stored relaxed.
#[test]
fn changes_add_up() {
    loom::model(|| {
        let change = |txn: &mut Txn, vector: &Vector<u64>| vector.update(txn, 0, |v| *v += 1);
        let (a, b, words) = two(1, change, change);
        assert_eq!(words[0], u64::from(a.is_ok()) + u64::from(b.is_ok()));
    });
}

/// A transaction that runs alone commits, whatever others do. Fails when it does not wait for locks, and when the clock is
/// not closed.
#[test]
fn a_transaction_that_runs_alone_commits() {
    loom::model(|| {
        let objects = Objects::new(2);
        let vector = std::sync::Arc::new(Vector::new(&objects, "v", [0_u64; 2]));
        let mut first = Txn::new(&objects, LaneId(0));
        let other = vector.clone();
        let thread = thread::spawn(move || {
            first.begin(Time::ZERO);
            let result = other.update(&mut first, 0, |v| *v += 1);
            let result = result.and_then(|()| other.update(&mut first, 1, |v| *v += 1));
            first.commit().and(result)
        });
        let mut second = Txn::new(&objects, LaneId(1));
        second.make_serial();
        second.begin(Time::ZERO);
        let x = vector.update(&mut second, 0, |v| std::mem::replace(v, *v + 1)).expect("alone");
        let y = vector.update(&mut second, 1, |v| std::mem::replace(v, *v + 1)).expect("alone");
        second.commit().expect("alone");
        assert_eq!(x, y);
        let other = thread.join().unwrap();
        second.begin(Time::ZERO);
        let expected = 1 + u64::from(other.is_ok());
        assert_eq!(vector.read(&mut second, 0), Ok(expected));
        assert_eq!(vector.read(&mut second, 1), Ok(expected));
    });
}

/// What was taken out is freed only after every lane that may have found it has rested. Fails when the fence in `begin`
/// or the one in `mark` is taken away, when a lane rests relaxed, and when marks are not looked at.
#[test]
fn nothing_is_freed_that_a_lane_looks_at() {
    loom::model(|| {
        let epochs = Arc::new(Epochs::new(2));
        let values = Arc::new([UnsafeCell::new(1), UnsafeCell::new(2)]);
        let current = Arc::new(AtomicUsize::new(0));
        let reader = {
            let (epochs, values, current) = (epochs.clone(), values.clone(), current.clone());
            thread::spawn(move || {
                epochs.begin(0);
                let at = current.load(Ordering::Acquire);
                // SAFETY: loom's cell checks that there is no write meanwhile, which is what the model is about.
                let value = values[at].with(|value| unsafe { *value });
                assert_eq!(value, at + 1);
                epochs.rest(0);
            })
        };
        epochs.begin(1);
        current.store(1, Ordering::Release);
        let mark = epochs.mark();
        epochs.rest(1);
        if epochs.passed() >= mark {
            // SAFETY: as above.
            values[0].with_mut(|value| unsafe { *value = 0 });
        }
        reader.join().unwrap();
    });
}
