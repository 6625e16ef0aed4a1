//! What a transaction costs on a lane that runs alone: four reads of random elements of 10,000, and a read and a
//! write, each alone and in batches of 32. The first row is the loop that chooses the elements; the others are to be
//! read above it. The comparison with locks, on several lanes, is `rheo bench txn`.
//!
//! `cargo bench -p rheostat-state --bench txn`

use std::hint::black_box;
use std::time::{Duration, Instant};

use rheostat_base::{LaneId, Time};
use rheostat_state::object::{Map, Vector};
use rheostat_state::txn::{Objects, Outcome, Txn};

const ELEMENTS: usize = 10_000;
const ROUNDS: usize = 300;
const PACKETS: usize = 32 * 200;

fn main() -> Outcome<()> {
    let objects = Objects::new(1);
    let vector = Vector::new(&objects, "vector", (0..ELEMENTS as u64).map(|at| [at, 1]));
    let map: Map<u64, u64> = Map::new(&objects, "map", ELEMENTS);
    let mut txn = Txn::new(&objects, LaneId(0));
    for key in 0..ELEMENTS as u64 {
        txn.begin(Time::ZERO);
        map.set(&mut txn, key, key)?.expect("there is room");
        txn.commit()?;
    }
    let mut random = 1_u64;
    let mut element = move || {
        // A linear congruential generator, Knuth's constants.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % ELEMENTS
    };
    report("elements alone", measure(|_| (0..4).for_each(|_| _ = black_box(element()))));
    let mut sum = 0_u64;
    for batch in [1, 32] {
        let mut run = |what: &str, packet: &mut dyn FnMut(&mut Txn) -> Outcome<()>| {
            let mut packet = |at: usize| {
                if at.is_multiple_of(batch) {
                    txn.begin(Time::ZERO);
                }
                packet(&mut txn).expect("no other lane runs");
                if (at + 1).is_multiple_of(batch) {
                    txn.commit().expect("no other lane runs");
                }
            };
            let ns = measure(&mut packet);
            txn.rest();
            report(&format!("{what}, batches of {batch}"), ns);
        };
        run("four reads", &mut |txn| {
            (0..4).try_for_each(|_| vector.read(txn, element()).map(|value| sum ^= value[0]))
        });
        run("four lookups", &mut |txn| {
            (0..4).try_for_each(|_| {
                map.get(txn, &(element() as u64)).map(|value| sum ^= value.unwrap_or_default())
            })
        });
        run("one change", &mut |txn| vector.update(txn, element(), |value| value[0] += 1));
    }
    black_box(sum);
    Ok(())
}

/// The best of some rounds, in nanoseconds per packet.
fn measure(mut packet: impl FnMut(usize)) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..PACKETS).for_each(&mut packet);
        best = best.min(start.elapsed());
    }
    best.as_nanos() as f64 / PACKETS as f64
}

fn report(what: &str, ns: f64) {
    println!("{what:<32} {ns:>7.1} ns per packet");
}
