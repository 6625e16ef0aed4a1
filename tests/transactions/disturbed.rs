//! Makes a function's transactions conflict, at places and as often as a seed decides.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rheostat::{
    Abort, Admission, Cx, Ending, FlowKey, FunctionSpec, NetworkFunction, Objects, Outcome, Packet,
    Vector, Verdict,
};
use rheostat_base::{LaneId, Time};
use rheostat_state::txn::Txn;

/// Fewer conflicts in a row than make a transaction run alone: then no other lane could commit, not even on
/// the same thread.
const IN_A_ROW: u32 = 5;

/// What other lanes do to an element that is read: they write it.
pub(crate) struct Disturbance {
    noise: Vector<u64>,
    other: Mutex<Other>,
    /// The share of calls that are disturbed.
    share: f64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) swallowed: AtomicU64,
}

/// Another lane.
struct Other {
    txn: Txn,
    rng: StdRng,
    last: Time,
    in_a_row: u32,
}

impl Disturbance {
    /// As the last of the lanes that `objects` were made for.
    pub(crate) fn new(objects: &Objects, share: f64, seed: u64) -> Disturbance {
        let lane = LaneId(objects.lanes() as u16 - 1);
        let txn = Txn::new(objects, lane);
        let rng = StdRng::seed_from_u64(seed);
        let other = Other { txn, rng, last: Time::ZERO, in_a_row: 0 };
        Disturbance {
            noise: Vector::new(objects, "noise", [0]),
            other: Mutex::new(other),
            share,
            conflicts: AtomicU64::new(0),
            swallowed: AtomicU64::new(0),
        }
    }

    /// Lets the transaction conflict, or not. A conflict is passed on, or forgotten about.
    fn disturb(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        let other = &mut *self.other.lock().expect("no thread panicked with it");
        if self.share == 0.0 || !other.rng.random_bool(self.share) {
            return Ok(());
        }
        other.in_a_row = if other.last == cx.now() { other.in_a_row + 1 } else { 0 };
        other.last = cx.now();
        if other.in_a_row >= IN_A_ROW {
            return Ok(());
        }
        self.noise.read(cx, 0)?;
        other.txn.begin(cx.now());
        self.noise.update(&mut other.txn, 0, |noise| *noise += 1).expect("no other lane writes");
        other.txn.commit().expect("no other lane writes");
        other.txn.rest();
        assert_eq!(self.noise.read(cx, 0), Err(Abort), "what was read has changed");
        self.conflicts.fetch_add(1, Ordering::Relaxed);
        if other.rng.random_bool(0.5) {
            self.swallowed.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        Err(Abort)
    }
}

/// A function whose transactions conflict, before it has done something or after.
pub(crate) struct Disturbed<F> {
    pub(crate) function: F,
    pub(crate) disturbance: std::sync::Arc<Disturbance>,
}

impl<F: NetworkFunction<Shard = ()>> NetworkFunction for Disturbed<F> {
    type Flow = F::Flow;
    type Shard = ();

    fn spec(&self) -> FunctionSpec {
        self.function.spec()
    }

    fn first(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Admission<F::Flow>> {
        self.disturbance.disturb(cx)?;
        let admission = self.function.first(cx, packet)?;
        self.disturbance.disturb(cx)?;
        Ok(admission)
    }

    fn packet(
        &self,
        cx: &mut Cx<'_, ()>,
        packet: &mut Packet<'_>,
        state: &mut F::Flow,
    ) -> Outcome<Verdict> {
        self.disturbance.disturb(cx)?;
        let verdict = self.function.packet(cx, packet, state)?;
        self.disturbance.disturb(cx)?;
        Ok(verdict)
    }

    fn closed(
        &self,
        cx: &mut Cx<'_, ()>,
        key: &FlowKey,
        state: &mut F::Flow,
        why: Ending,
    ) -> Outcome<()> {
        self.disturbance.disturb(cx)?;
        self.function.closed(cx, key, state, why)?;
        self.disturbance.disturb(cx)
    }

    fn discarded(&self, cx: &mut Cx<'_, ()>, state: F::Flow) {
        self.function.discarded(cx, state);
        let _ = self.disturbance.disturb(cx);
    }

    fn non_flow(&self, cx: &mut Cx<'_, ()>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        self.disturbance.disturb(cx)?;
        let verdict = self.function.non_flow(cx, packet)?;
        self.disturbance.disturb(cx)?;
        Ok(verdict)
    }

    fn periodic(&self, cx: &mut Cx<'_, ()>) -> Outcome<()> {
        self.disturbance.disturb(cx)?;
        self.function.periodic(cx)?;
        self.disturbance.disturb(cx)
    }
}
