//! A function that another lane is always in the way of gets through, because it runs alone in the end.

use std::sync::{Arc, Mutex};

use rheostat::{
    Admission, Cx, Ending, FlowKey, NetworkFunction, Objects, Outcome, Packet, Vector, Verdict,
};
use rheostat_base::LaneId;
use rheostat_state::txn::Txn;

use crate::transactions::on_one_lane;

/// Reads an element that another lane then writes: always, unless that is kept from it.
struct Starved {
    element: Vector<u64>,
    other: Mutex<Txn>,
}

impl Starved {
    fn starve(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.element.read(cx, 0)?;
        let mut other = self.other.lock().unwrap();
        other.begin(cx.now());
        self.element.update(&mut *other, 0, |count| *count += 1).expect("no other lane writes");
        // Turned away when this function runs alone.
        let _ = other.commit();
        other.rest();
        self.element.read(cx, 0)?;
        Ok(())
    }
}

impl NetworkFunction for Starved {
    type Flow = ();
    type Shard = ();

    fn packet(&self, cx: &mut Cx<'_, ()>, _: &mut Packet<'_>, (): &mut ()) -> Outcome<Verdict> {
        self.starve(cx)?;
        Ok(Verdict::Forward)
    }

    fn closed(&self, cx: &mut Cx<'_, ()>, _: &FlowKey, (): &mut (), _: Ending) -> Outcome<()> {
        self.starve(cx)
    }

    fn periodic(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.starve(cx)
    }
}

#[test]
fn a_transaction_that_always_conflicts_runs_alone() {
    let objects = Objects::new(2);
    let other = Mutex::new(Txn::new(&objects, LaneId(1)));
    let starved = Starved { element: Vector::new(&objects, "element", [0]), other };
    let report = on_one_lane(starved, &objects, 20, 500);
    assert_eq!(report.counters.sent, 500);
    let total = objects.profile().total();
    // Each packet, and each turn of a shard.
    assert!(total.alone > 500, "{total:?}");
    assert!(total.aborts >= 8 * total.alone, "{total:?}");
}

/// What a handler that gives up has done is undone; what others did in the same transaction stays.
struct Fickle {
    counts: Arc<Vector<u64>>,
}

impl NetworkFunction for Fickle {
    type Flow = u64;
    type Shard = ();

    fn first(&self, cx: &mut Cx<'_, ()>, _: &mut Packet<'_>) -> Outcome<Admission<u64>> {
        self.counts.update(cx, 0, |count| *count += 1)?;
        Ok(Admission::Admit(0, Verdict::Forward))
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        passed: &mut u64,
    ) -> Outcome<Verdict> {
        self.counts.update(cx, 0, |count| *count += 1)?;
        self.counts.update(cx, 1, |count| *count = (*count).max(*passed + 1))?;
        *passed += 1;
        if packet.len().is_multiple_of(3) { Err(rheostat::Abort) } else { Ok(Verdict::Forward) }
    }
}

#[test]
fn giving_up_costs_one_packet_and_nothing_else() {
    let objects = Objects::new(1);
    let counts = Arc::new(Vector::new(&objects, "counts", [0, 0]));
    let report = on_one_lane(Fickle { counts: counts.clone() }, &objects, 5, 2_000);
    let dropped = report.counters.dropped[rheostat::DropReason::HandlerAbort as usize];
    assert!(dropped > 300 && report.counters.sent > 300, "{:?}", report.counters);
    let mut txn = Txn::new(&objects, LaneId(0));
    txn.begin(rheostat_base::Time::ZERO);
    assert_eq!(counts.read(&mut txn, 0), Ok(report.counters.sent));
}
