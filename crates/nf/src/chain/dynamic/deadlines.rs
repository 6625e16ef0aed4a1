//! Deadlines of functions that do not decide how long the flows of their chain live. Each has a place for its own in an entry, beside
//! its state, and the functions that decide have one together. The deadline of the entry is the earliest of them. So they are where
//! the flow is, also when its shard moves, and which of them has passed depends on the time of packets alone.

use rheostat_base::Time;
use rheostat_state::{EntryColumn, FlowMut, LayoutError, StateBits, StateLayout, TimePlace};

use super::{LinkStage, Seen};

/// The deadline that a function has of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnDeadline {
    /// The place of the function's state.
    pub(super) state: StateBits,
    /// The place of the deadline.
    pub(super) at: TimePlace,
}

/// Where the deadlines of a flow lie.
pub(super) struct Deadlines {
    /// That of the functions that decide how long flows live, if there are some.
    flow: Option<TimePlace>,
    /// By function.
    own: Box<[Option<OwnDeadline>]>,
}

/// The deadline of a function that has no state of the flow.
const NONE: Time = Time::ZERO;

impl Deadlines {
    /// Those of these functions; `None` when none has its own. `decides` states whether functions decide how long flows live.
    pub(super) fn of(
        links: &[Box<dyn LinkStage>],
        decides: bool,
        layout: &mut StateLayout,
    ) -> Result<Option<Deadlines>, LayoutError> {
        let own: Box<[_]> = links.iter().map(|link| link.deadline()).collect();
        if own.iter().all(Option::is_none) {
            return Ok(None);
        }
        let flow = if decides { Some(layout.reserve_time()?) } else { None };
        Ok(Some(Deadlines { flow, own }))
    }

    /// Whether functions decide how long flows live.
    pub(super) fn has_deciding(&self) -> bool {
        self.flow.is_some()
    }

    /// That of a function.
    pub(super) fn own(&self, function: usize) -> Option<OwnDeadline> {
        self.own[function]
    }

    /// The deadline of the entry of a new flow, of which these functions have seen a packet.
    pub(super) fn requested(&self, own: &mut [Time], of_flow: Time, seen: Seen) -> Option<Time> {
        for (at, requested) in own.iter_mut().enumerate() {
            if seen.0 & 1 << at == 0 || self.own[at].is_none() {
                *requested = Time::NEVER;
            }
        }
        own.iter().copied().chain(self.flow.map(|_| of_flow)).min()
    }

    /// Sets the deadlines of a new flow: those that functions requested which have a state of it, and that of the flow.
    pub(super) fn begin(&self, flow: &mut FlowMut<'_>, requested: &[Time], of_flow: Time) {
        for (own, requested) in self.own.iter().zip(requested) {
            if let Some(own) = own {
                let has_state = flow.has(own.state);
                flow.set_time(own.at, if has_state { set(*requested) } else { NONE });
            }
        }
        if let Some(place) = self.flow {
            flow.set_time(place, set(of_flow));
        }
    }

    /// Notes the deadline that the deciding functions requested with a packet, if they did, and returns that of the entry.
    pub(super) fn after_packet(
        &self,
        flow: &mut FlowMut<'_>,
        requested: Option<Time>,
    ) -> Option<Time> {
        if let (Some(place), Some(deadline)) = (self.flow, requested) {
            flow.set_time(place, set(deadline));
        }
        self.earliest(|place| flow.time(place))
    }

    /// As [`Deadlines::after_packet`], of a packet on the fast path.
    pub(super) fn after_run(
        &self,
        entries: &mut EntryColumn<'_>,
        at: usize,
        requested: Option<Time>,
    ) -> Option<Time> {
        if let (Some(place), Some(deadline)) = (self.flow, requested) {
            entries.set_time(at, place, set(deadline));
        }
        self.earliest(|place| entries.time(at, place))
    }

    /// Whether the time of the deciding functions for a flow is up at `now`.
    pub(super) fn is_over(&self, flow: &FlowMut<'_>, now: Time) -> bool {
        self.flow.is_some_and(|place| flow.time(place) <= now)
    }

    /// The earliest deadline of a flow, if it has one.
    pub(super) fn earliest(&self, time: impl Fn(TimePlace) -> Time) -> Option<Time> {
        let own = self.own.iter().flatten().map(|own| own.at);
        own.chain(self.flow).map(time).filter(|deadline| *deadline != NONE).min()
    }
}

impl OwnDeadline {
    /// Notes the deadline that the function requested with a packet of `now`, if it did. A state that is new has `default`.
    pub(super) fn note(self, flow: &mut FlowMut<'_>, requested: Option<Time>, default: Time) {
        let deadline = match requested {
            _ if !flow.has(self.state) => NONE,
            Some(deadline) => set(deadline),
            None if flow.time(self.at) == NONE => default,
            None => return,
        };
        flow.set_time(self.at, deadline);
    }

    /// Whether the function's time for a flow is up at `now`. If so, it has no deadline from now on.
    pub(super) fn take_passed(self, flow: &mut FlowMut<'_>, now: Time) -> bool {
        let deadline = flow.time(self.at);
        let has_passed = deadline != NONE && deadline <= now;
        if has_passed {
            flow.set_time(self.at, NONE);
        }
        has_passed
    }
}

/// A deadline that is distinct from none.
fn set(deadline: Time) -> Time {
    deadline.max(Time::from_nanos(1))
}
