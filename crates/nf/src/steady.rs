//! The fast path of functions: what they do with most packets of flows that they know.

use std::convert::Infallible;

use rheostat_base::{Nanos, Time};
use rheostat_state::{Handle, StateRefs, StateSet};
use rheostat_steer::Side;

use crate::packet::Packet;
use crate::reading::{Reading, Unread};

/// What a function does with most packets of flows that it knows, in two steps. It looks at the packet and at the flow's state
/// and decides; once every function of the chain has decided, each carries out what it has decided. A packet about which one of
/// them decides nothing has changed nothing, and takes the general handlers.
///
/// The packets are of TCP or UDP, whole, with their transport headers in the first segment. Nothing but the packet, the flow's
/// state and the flow's deadline can change here, and counts of the lane: what needs more, as the state of the shard, is not
/// for this path.
///
/// Whatever is decided here, [`NetworkFunction::packet`](crate::NetworkFunction::packet) must decide, too: it would have
/// changed packet and state alike, asked for the same deadline and nothing else, and said
/// [`Verdict::Forward`](crate::Verdict::Forward).
pub trait Steady<S> {
    /// Whether there is a packet about which anything is decided here.
    const EXISTS: bool = true;

    /// What has been decided.
    type Step;

    /// The shortest time from a packet to the deadline that [`Steady::commit`] returns for it, if it returns one. While a flow is
    /// with another lane, its home knows by this how long it lives at least.
    fn shortest(&self) -> Nanos;

    /// Whether a flow may leave its lane, so that another decides about its packets by [`Steady::decide`] alone, and nothing that
    /// the function keeps for the shard, or does with other flows of it, depends on what becomes of the flow meanwhile. Asked when a
    /// flow is to leave, and again before each packet.
    fn may_leave(&self, state: &S) -> bool;

    /// What to do with a packet, as it arrived. `None` when the general handler has to do it.
    fn decide(&self, packet: &Packet<'_>, state: &S) -> Option<Self::Step>;

    /// Does what has been decided about a packet of time `now`, and returns when the flow is to end without another packet:
    /// `None` for when it would have ended.
    ///
    /// The functions before in the packet's direction may have changed addresses and ports since; whatever else the step needs of
    /// the packet, it holds.
    fn commit(
        &self,
        step: Self::Step,
        now: Time,
        packet: &mut Packet<'_>,
        state: &mut S,
    ) -> Option<Time>;

    /// The fast path of a function on shared objects, on packets of no flow, if it has one.
    #[inline(always)]
    fn reading(self) -> impl Reading
    where
        Self: Sized,
    {
        Unread
    }
}

/// For functions without a fast path on packets of flows: these take the general handlers. Of packets of no flow, a function on
/// shared objects can decide about some by an `R`.
#[derive(Clone, Copy, Debug)]
pub struct General<R = Unread>(pub R);

impl<S, R: Reading> Steady<S> for General<R> {
    const EXISTS: bool = false;

    type Step = Infallible;

    fn shortest(&self) -> Nanos {
        Nanos::default()
    }

    fn may_leave(&self, _: &S) -> bool {
        false
    }

    #[inline(always)]
    fn decide(&self, _: &Packet<'_>, _: &S) -> Option<Infallible> {
        None
    }

    #[inline(always)]
    fn commit(&self, step: Infallible, _: Time, _: &mut Packet<'_>, _: &mut S) -> Option<Time> {
        match step {}
    }
    #[inline(always)]
    fn reading(self) -> impl Reading {
        self.0
    }
}

/// The fast path of a chain, whose functions' states stand in the flow's entry.
pub trait SteadyChain {
    /// As [`Steady::EXISTS`], of all functions.
    const EXISTS: bool;

    /// The places of its functions' states.
    type Places: StateSet;

    /// What its functions have decided.
    type Step;

    /// Where its functions' states are.
    fn places(&self) -> Self::Places;

    /// As [`Steady::shortest`], of all functions.
    fn shortest(&self) -> Nanos;

    /// As [`Steady::may_leave`], of all functions.
    fn may_leave(&self, states: &StateRefs<'_, Self::Places>) -> bool;

    /// As [`Steady::decide`], of all functions.
    fn decide(
        &self,
        packet: &Packet<'_>,
        states: &StateRefs<'_, Self::Places>,
    ) -> Option<Self::Step>;

    /// As [`Steady::commit`], of all functions; of their deadlines the earliest.
    fn commit(
        &self,
        step: Self::Step,
        now: Time,
        packet: &mut Packet<'_>,
        states: &mut StateRefs<'_, Self::Places>,
    ) -> Option<Time>;
}

/// The fast path of a chain of one function.
pub(crate) struct SteadyStage<F, S> {
    pub(crate) function: F,
    pub(crate) handle: Handle<S>,
}

impl<F: Steady<S>, S: Send + 'static> SteadyChain for SteadyStage<F, S> {
    const EXISTS: bool = F::EXISTS;

    type Places = Handle<S>;
    type Step = F::Step;

    #[inline(always)]
    fn places(&self) -> Handle<S> {
        self.handle
    }

    fn shortest(&self) -> Nanos {
        self.function.shortest()
    }

    #[inline(always)]
    fn may_leave(&self, state: &&mut S) -> bool {
        self.function.may_leave(state)
    }

    #[inline(always)]
    fn decide(&self, packet: &Packet<'_>, state: &&mut S) -> Option<F::Step> {
        self.function.decide(packet, state)
    }

    #[inline(always)]
    fn commit(
        &self,
        step: F::Step,
        now: Time,
        packet: &mut Packet<'_>,
        state: &mut &mut S,
    ) -> Option<Time> {
        self.function.commit(step, now, packet, state)
    }
}

/// The fast path of two chains in a row.
impl<A: SteadyChain, B: SteadyChain> SteadyChain for (A, B) {
    const EXISTS: bool = A::EXISTS && B::EXISTS;

    type Places = (A::Places, B::Places);
    type Step = (A::Step, B::Step);

    #[inline(always)]
    fn places(&self) -> Self::Places {
        (self.0.places(), self.1.places())
    }

    fn shortest(&self) -> Nanos {
        self.0.shortest().min(self.1.shortest())
    }

    #[inline(always)]
    fn may_leave(&self, (a, b): &StateRefs<'_, Self::Places>) -> bool {
        self.0.may_leave(a) && self.1.may_leave(b)
    }

    #[inline(always)]
    fn decide(
        &self,
        packet: &Packet<'_>,
        (a, b): &StateRefs<'_, Self::Places>,
    ) -> Option<Self::Step> {
        Some((self.0.decide(packet, a)?, self.1.decide(packet, b)?))
    }

    #[inline(always)]
    fn commit(
        &self,
        (a, b): Self::Step,
        now: Time,
        packet: &mut Packet<'_>,
        (of_a, of_b): &mut StateRefs<'_, Self::Places>,
    ) -> Option<Time> {
        // The last function may put headers before the packet that the others do not know.
        let (a, b) = match packet.side() {
            Side::Inside => {
                let a = self.0.commit(a, now, packet, of_a);
                (a, self.1.commit(b, now, packet, of_b))
            }
            Side::Outside => {
                let b = self.1.commit(b, now, packet, of_b);
                (self.0.commit(a, now, packet, of_a), b)
            }
        };
        match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}
