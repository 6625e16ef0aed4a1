//! The fast path of a chain that is put together at run time: a run of packets, each of another flow, passes it by two virtual calls
//! per function.
//!
//! In the first, each function decides about all packets of the run, the last function first, and keeps its steps where they are:
//! on the stack, in an array of its own type. It calls the function before it, for as many packets as it has decided about. The
//! first function of the chain finds out how many that are. In the second call, each carries out its steps of these packets: of
//! packets from inside before the function behind it, of those from outside after it.

use arrayvec::ArrayVec;
use rheostat_base::{Counter, Time};
use rheostat_packet::Mbuf;
use rheostat_run::PacketInfo;
use rheostat_state::{EntryColumn, Handle, OPEN_FLOWS, TimePlace};
use rheostat_steer::Side;

use super::LinkStage;
use crate::packet::Packet;
use crate::steady::Steady;

/// Packets of known flows, each of another flow.
pub(crate) struct SteadyRun<'r, 'f> {
    pub(super) packets: &'r mut [Mbuf],
    pub(super) infos: &'r [PacketInfo],
    /// The flows of the packets about which all functions so far have decided.
    pub(super) entries: &'r mut EntryColumn<'f>,
    /// When each flow is to end without another packet, as the functions that decide about that have it.
    pub(super) deadlines: [Option<Time>; OPEN_FLOWS],
}

/// The functions of a chain that have yet to decide, and what they count.
#[derive(Clone, Copy)]
pub(crate) struct Undecided<'l> {
    pub(super) links: &'l [Box<dyn LinkStage>],
    pub(super) counts: &'l [Counter],
}

impl Undecided<'_> {
    /// Lets the last of these decide, and those before it. At the end, all carry out what they have decided.
    pub(super) fn decide(self, run: &mut SteadyRun<'_, '_>, mut behind: Option<&mut dyn Decided>) {
        match self.links.split_last() {
            Some((last, links)) => last.decide(Undecided { links, ..self }, run, behind),
            None => {
                if let Some(first) = &mut behind {
                    first.commit(run);
                }
            }
        }
    }
}

/// A function that has decided about the packets of a run.
pub(crate) trait Decided {
    /// Carries out its steps, and those of the functions behind it.
    fn commit(&mut self, run: &mut SteadyRun<'_, '_>);
}

struct Steps<'b, F: Steady<S>, S> {
    function: F,
    place: Handle<S>,
    /// Where the function's own deadline lies, if it has one.
    deadline: Option<TimePlace>,
    steps: ArrayVec<Option<F::Step>, OPEN_FLOWS>,
    behind: Option<&'b mut dyn Decided>,
}

impl<F: Steady<S>, S: Send + 'static> Steps<'_, F, S> {
    /// Carries out the steps of packets from one side.
    #[inline(always)]
    fn commit_from(&mut self, side: Side, run: &mut SteadyRun<'_, '_>) {
        let mut states = run.entries.states_mut(self.place);
        let parts = run.packets.iter_mut().zip(run.infos).zip(&mut run.deadlines);
        for (at, ((packet, info), deadline)) in parts.enumerate() {
            if info.side() != side {
                continue;
            }
            let Some(step) = self.steps.get_mut(at).and_then(Option::take) else { continue };
            let packet = &mut Packet::new(packet, info);
            let own = self.function.commit(step, info.now, packet, states.get_mut(at));
            match (self.deadline, *deadline, own) {
                (Some(place), _, Some(own)) => states.set_time(at, place, own),
                (None, Some(other), Some(own)) => *deadline = Some(other.min(own)),
                (None, None, own) => *deadline = own,
                (_, _, None) => {}
            }
        }
    }
}

impl<F: Steady<S>, S: Send + 'static> Decided for Steps<'_, F, S> {
    #[inline(never)]
    fn commit(&mut self, run: &mut SteadyRun<'_, '_>) {
        let len = run.entries.len();
        self.steps.truncate(len);
        let infos = &run.infos[..len];
        let is_all = |side| infos.iter().all(|info| info.side() == side);
        if !is_all(Side::Outside) {
            self.commit_from(Side::Inside, run);
        }
        if let Some(behind) = &mut self.behind {
            behind.commit(run);
        }
        if !is_all(Side::Inside) {
            self.commit_from(Side::Outside, run);
        }
    }
}

/// Lets `function` decide about the packets of a run, and then those that have yet to.
#[inline(always)]
pub(super) fn decide<F: Steady<S>, S: Send + 'static>(
    function: F,
    (place, deadline): (Handle<S>, Option<TimePlace>),
    others: Undecided<'_>,
    run: &mut SteadyRun<'_, '_>,
    behind: Option<&mut dyn Decided>,
) {
    let mut steps = ArrayVec::<Option<F::Step>, OPEN_FLOWS>::new();
    let (len, states) = (run.entries.len(), run.entries.states(place));
    for (at, (packet, info)) in run.packets[..len].iter_mut().zip(run.infos).enumerate() {
        let step = function.decide(&Packet::new(packet, info), states.get(at));
        if step.is_none() {
            break;
        }
        steps.push(step);
    }
    run.entries.truncate(steps.len());
    if !run.entries.is_empty() {
        let mut steps = Steps { function, place, deadline, steps, behind };
        others.decide(run, Some(&mut steps));
    }
}
