//! What a function prefetches before it executes packets.

use std::sync::{Arc, Mutex, PoisonError};

use rheostat::harness::HarnessReport;
use rheostat::{
    Ahead, Cx, FunctionSpec, NetworkFunction, Objects, Outcome, Packet, Prefetch, Verdict,
};

use crate::transactions::on_one_lane;
use crate::transactions::panics::expect_panics;

/// What a function has seen, packet by packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Prefetched(Ahead),
    Executed,
}

/// Notes what it sees, and may panic at a prefetch.
struct Recorder {
    seen: Arc<Mutex<Vec<Seen>>>,
    panics: bool,
}

impl Recorder {
    fn note(&self, seen: Seen) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }
}

impl NetworkFunction for Recorder {
    type Flow = ();
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::without_flows()
    }

    fn prefetch(&self, stage: Prefetch<'_, Recorder>) {
        let Prefetch::Packet(_, ahead) = stage else { return };
        self.note(Seen::Prefetched(ahead));
        assert!(!self.panics, "erratic");
    }

    fn packet(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>, (): &mut ()) -> Outcome<Verdict> {
        unreachable!("without a packet set there are no flows")
    }

    fn non_flow(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>) -> Outcome<Verdict> {
        self.note(Seen::Executed);
        Ok(Verdict::Forward)
    }
}

const PACKETS: u64 = 500;

fn run(panics: bool) -> (Vec<Seen>, HarnessReport) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let recorder = Recorder { seen: seen.clone(), panics };
    let report = on_one_lane(recorder, &Objects::new(1), 10, PACKETS);
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    (seen, report)
}

#[test]
fn a_burst_is_asked_for_before_it_is_presented() {
    let (seen, report) = run(false);
    assert_eq!(report.counters.sent, PACKETS);
    let count = |what| seen.iter().filter(|seen| **seen == what).count() as u64;
    for what in [Seen::Prefetched(Ahead::Keys), Seen::Prefetched(Ahead::Values), Seen::Executed] {
        assert_eq!(count(what), PACKETS, "{what:?}");
    }
    let phases: Vec<_> =
        seen.chunk_by(|a, b| a == b).map(|phase| (phase[0], phase.len())).collect();
    let mut longest = 0;
    for burst in phases.chunks(3) {
        let [(keys, n), (values, m), (executed, k)] = *burst else { panic!("{phases:?}") };
        assert_eq!(keys, Seen::Prefetched(Ahead::Keys));
        assert_eq!(values, Seen::Prefetched(Ahead::Values));
        assert_eq!((executed, m, k), (Seen::Executed, n, n));
        longest = longest.max(n);
    }
    assert!(longest > 1, "nothing is gained by a prefetch for one packet: {phases:?}");
}

#[test]
fn a_panic_there_costs_nothing_else() {
    expect_panics();
    let (seen, report) = run(true);
    assert_eq!((report.counters.sent, report.counters.panics), (PACKETS, 0));
    assert!(seen.contains(&Seen::Prefetched(Ahead::Keys)));
    assert!(!seen.contains(&Seen::Prefetched(Ahead::Values)), "what panicked is not called again");
}
