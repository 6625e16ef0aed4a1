//! Handlers that panic: the packet is dropped and counted, its flow ends, and the lane goes on.

use std::panic;
use std::sync::Once;

use rheostat::{
    Admission, Cx, DropReason, Ending, FlowKey, NetworkFunction, Objects, Outcome, Packet, Vector,
    Verdict,
};

use crate::transactions::on_one_lane;
use crate::transactions::undone::{Plan, compare};

/// Panics that are meant are not shown: there are thousands.
pub(crate) fn expect_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let said = info.payload().downcast_ref::<&str>();
            if !said.is_some_and(|said| said.starts_with("erratic")) {
                usual(info);
            }
        }));
    });
}

#[test]
fn a_panic_costs_one_packet_and_its_flow() {
    expect_panics();
    for seed in 20..23 {
        let plan = Plan { seed, lanes: 2, flows: 4_096, panics: true };
        let counters = compare(plan).counters;
        let dropped = counters.dropped[DropReason::HandlerPanic as usize];
        assert!(dropped > 10, "{counters:?}");
        // More panics than packets that were dropped for it: those at the end of flows.
        assert!(counters.panics > dropped, "{counters:?}");
    }
}

/// Does not stand the third packet of any flow.
struct Touchy {
    packets: Vector<u64>,
}

impl NetworkFunction for Touchy {
    type Flow = u64;
    type Shard = ();

    fn first(&self, cx: &mut Cx<'_, ()>, _: &mut Packet<'_>) -> Outcome<Admission<u64>> {
        self.packets.update(cx, 0, |packets| *packets += 1)?;
        Ok(Admission::Admit(1, Verdict::Forward))
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        _: &mut Packet<'_>,
        packets: &mut u64,
    ) -> Outcome<Verdict> {
        self.packets.update(cx, 0, |packets| *packets += 1)?;
        *packets += 1;
        assert!(*packets < 3, "erratic");
        Ok(Verdict::Forward)
    }

    fn closed(&self, _: &mut Cx<'_, ()>, _: &FlowKey, packets: &mut u64, _: Ending) -> Outcome<()> {
        assert!(*packets < 3, "what a handler has done that panics is undone");
        Ok(())
    }
}

#[test]
fn a_flow_ends_with_the_packet_that_a_handler_panics_on() {
    expect_panics();
    let objects = Objects::new(1);
    let touchy = Touchy { packets: Vector::new(&objects, "packets", [0]) };
    let counters = on_one_lane(touchy, &objects, 10, 900).counters;
    let dropped = counters.dropped[DropReason::HandlerPanic as usize];
    assert!(dropped > 100, "{counters:?}");
    // One packet of three, but for the flows that had no third one.
    assert!(counters.flows_created >= dropped && counters.flows_ended >= dropped);
    assert_eq!((counters.panics, counters.sent), (dropped, 900 - dropped));
}
