//! The fast path of a chain that is put together at run time: a run of packets, each of another flow, passes it by two virtual calls
//! per function.
//!
//! In the first, each function decides about all packets of the run, in the reverse of the order in which they pass the functions,
//! and keeps its steps where they are: on the stack, in an array of its own type. It calls the function before it, for as many
//! packets as it has decided about. The function that the packets pass first decides last, and carries out each step at once. In
//! the second call, the others carry out theirs, one function behind the other.
//!
//! Packets of both sides make a run where every function has a fast path. Functions decide about it as about packets from inside.
//! Each carries out its steps of packets from inside before the next function, and of those from outside after it.
//!
//! A function without a fast path decides nothing in the first call, if it has no flows of the chain: in the second, the packets are
//! presented to its handler. What the functions behind it have decided stands, as nothing but addresses, ports and traffic class can
//! be changed about a packet. A packet that it stops is not presented to them. The packets of such a run all come from one side, so
//! that the function sees them in the order in which they came.

use arrayvec::ArrayVec;
use rheostat_base::{Counter, Time};
use rheostat_packet::Mbuf;
use rheostat_run::PacketInfo;
use rheostat_state::{EntryColumn, Handle, OPEN_FLOWS, StateColumnMut, TimePlace};
use rheostat_steer::Side;

use super::LinkStage;
use super::visits::Visits;
use crate::packet::Packet;
use crate::steady::Steady;

/// Packets of known flows, each of another flow.
pub(crate) struct SteadyRun<'r, 'f, 'v> {
    pub(super) packets: &'r mut [Mbuf],
    pub(super) infos: &'r [PacketInfo],
    /// The flows of the packets about which all functions so far have decided.
    pub(super) entries: &'r mut EntryColumn<'f>,
    /// When each flow is to end without another packet, as the functions that decide about that have it; [`UNCHANGED`] when it
    /// stays.
    pub(super) deadlines: &'r mut [Time; OPEN_FLOWS],
    /// Where all packets come from; `None` for packets of both sides.
    side: Option<Side>,
    /// The parts of the lane for functions without a fast path, if there are such functions.
    pub(super) visits: Option<&'r mut Visits<'v>>,
    /// The packets whose addresses or ports were changed, one bit each.
    rewritten: u16,
}

const _: () = assert!(OPEN_FLOWS <= u16::BITS as usize);

/// No function has requested a deadline.
pub(super) const UNCHANGED: Time = Time::ZERO;

impl<'r, 'f, 'v> SteadyRun<'r, 'f, 'v> {
    pub(super) fn new(
        packets: &'r mut [Mbuf],
        infos: &'r [PacketInfo],
        entries: &'r mut EntryColumn<'f>,
        deadlines: &'r mut [Time; OPEN_FLOWS],
        side: Option<Side>,
        visits: Option<&'r mut Visits<'v>>,
    ) -> SteadyRun<'r, 'f, 'v> {
        SteadyRun { packets, infos, entries, deadlines, side, visits, rewritten: 0 }
    }

    /// The packets that do not go on, one bit each.
    #[inline(always)]
    fn stopped(&self) -> u16 {
        self.visits.as_ref().map_or(0, |visits| visits.stopped())
    }
}

/// The functions of a chain that have yet to decide, and what they count.
#[derive(Clone, Copy)]
pub(crate) struct Undecided<'l> {
    links: &'l [Box<dyn LinkStage>],
    counts: &'l [Counter],
    /// How many functions of the chain stand in front of these.
    before: usize,
}

impl<'l> Undecided<'l> {
    /// All functions of a chain.
    pub(super) fn all(links: &'l [Box<dyn LinkStage>], counts: &'l [Counter]) -> Undecided<'l> {
        Undecided { links, counts, before: 0 }
    }

    /// The `count` counts of the function that is to decide about a run now, and the functions that have yet to.
    pub(super) fn split_counts(
        self,
        count: usize,
        run: &SteadyRun<'_, '_, '_>,
    ) -> (&'l [Counter], Undecided<'l>) {
        let (own, counts) = match run.side {
            Some(Side::Outside) => self.counts.split_at(count),
            _ => {
                let (counts, own) = self.counts.split_at(self.counts.len() - count);
                (own, counts)
            }
        };
        (own, Undecided { counts, ..self })
    }

    /// The place in the chain of the function that decides about the run before these.
    fn place_of_next(&self, run: &SteadyRun<'_, '_, '_>) -> usize {
        match run.side {
            Some(Side::Outside) => self.before - 1,
            _ => self.links.len(),
        }
    }

    /// Lets the one of these decide that packets of the run pass last, and then the others. At the end, all carry out what they have
    /// decided.
    pub(super) fn decide(self, run: &mut SteadyRun<'_, '_, '_>, behind: Option<&mut dyn Decided>) {
        let next = match run.side {
            Some(Side::Outside) => self.links.split_first(),
            _ => self.links.split_last(),
        };
        match (next, behind) {
            (Some((next, links)), behind) => {
                let is_first = run.side == Some(Side::Outside);
                let before = self.before + usize::from(is_first);
                next.decide(Undecided { links, before, ..self }, run, behind);
            }
            (None, Some(first)) => first.commit(run),
            (None, None) => {}
        }
    }
}

/// A function that has decided about the packets of a run.
pub(crate) trait Decided {
    /// Carries out its steps, and those of the functions behind it.
    fn commit(&mut self, run: &mut SteadyRun<'_, '_, '_>);
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
    /// Carries out the steps of packets from `side`, or of all.
    #[inline(always)]
    fn commit_from(&mut self, side: Option<Side>, run: &mut SteadyRun<'_, '_, '_>) {
        let stopped = run.stopped();
        let mut states = run.entries.states_mut(self.place);
        let parts = run.packets.iter_mut().zip(run.infos).zip(run.deadlines.iter_mut());
        for (at, (((packet, info), deadline), step)) in parts.zip(&mut self.steps).enumerate() {
            if side.is_some_and(|side| info.side() != side) || stopped & 1 << at != 0 {
                continue;
            }
            let Some(step) = step.take() else { continue };
            let packet = &mut Packet::new(packet, info);
            let own = self.function.commit(step, info.now, packet, states.get_mut(at));
            run.rewritten |= u16::from(packet.is_rewritten()) << at;
            note_deadline(own, self.deadline, (&mut states, at), deadline);
        }
    }
}

impl<F: Steady<S>, S: Send + 'static> Decided for Steps<'_, F, S> {
    #[inline(never)]
    fn commit(&mut self, run: &mut SteadyRun<'_, '_, '_>) {
        self.steps.truncate(run.entries.len());
        let is_mixed = run.side.is_none();
        self.commit_from(is_mixed.then_some(Side::Inside), run);
        if let Some(behind) = &mut self.behind {
            behind.commit(run);
        }
        if is_mixed {
            self.commit_from(Some(Side::Outside), run);
        }
    }
}

/// Notes the deadline that a function has requested with the packet at a place, if it has: at the place of its own deadline, or, of
/// those of the functions that decide how long the flow lives, if it is the earliest.
#[inline(always)]
fn note_deadline<S: Send + 'static>(
    requested: Option<Time>,
    own: Option<TimePlace>,
    (states, at): (&mut StateColumnMut<'_, S>, usize),
    earliest: &mut Time,
) {
    let Some(requested) = requested else { return };
    match own {
        Some(place) => states.set_time(at, place, requested),
        None if *earliest == UNCHANGED => *earliest = requested,
        None => *earliest = requested.min(*earliest),
    }
}

/// A function without a fast path and without flows of the chain, which has its handler called instead of steps carried out.
struct Visitor<'l, 'b> {
    link: &'l dyn LinkStage,
    /// Its place in the chain.
    at: usize,
    behind: Option<&'b mut dyn Decided>,
}

impl Decided for Visitor<'_, '_> {
    fn commit(&mut self, run: &mut SteadyRun<'_, '_, '_>) {
        self.visit(run);
        if let Some(behind) = &mut self.behind {
            behind.commit(run);
        }
    }
}

impl Visitor<'_, '_> {
    /// Presents the packets, which all come from one side, to the function.
    fn visit(&self, run: &mut SteadyRun<'_, '_, '_>) {
        let SteadyRun { packets, infos, entries, visits, rewritten, .. } = run;
        let Some(visits) = visits else { return };
        for at in 0..entries.len() {
            let bit = 1 << at;
            if visits.stopped() & bit == 0 {
                let packet =
                    &mut Packet::behind(&mut packets[at], &infos[at], *rewritten & bit != 0);
                visits.visit(self.link, self.at, at, packet);
                *rewritten |= u16::from(packet.is_rewritten()) << at;
            }
        }
    }
}

/// Lets the others decide that have yet to, and then presents the packets to `link` in its turn.
pub(super) fn visit(
    link: &dyn LinkStage,
    others: Undecided<'_>,
    run: &mut SteadyRun<'_, '_, '_>,
    behind: Option<&mut dyn Decided>,
) {
    let mut visitor = Visitor { link, at: others.place_of_next(run), behind };
    others.decide(run, Some(&mut visitor));
}

/// Lets `function` decide about the packets of a run, and then those that have yet to.
#[inline(always)]
pub(super) fn decide<F: Steady<S>, S: Send + 'static>(
    function: F,
    (place, deadline): (Handle<S>, Option<TimePlace>),
    others: Undecided<'_>,
    run: &mut SteadyRun<'_, '_, '_>,
    behind: Option<&mut dyn Decided>,
) {
    // All packets pass this function first: none has yet to decide, and they come from one side, or there is no other.
    if others.links.is_empty() && (run.side.is_some() || behind.is_none()) {
        return decide_first(function, (place, deadline), run, behind);
    }
    // Filled where it lies: it may be large.
    let mut own = Steps { function, place, deadline, steps: ArrayVec::new(), behind };
    let (len, states) = (run.entries.len(), run.entries.states(place));
    for (at, (packet, info)) in run.packets[..len].iter_mut().zip(run.infos).enumerate() {
        let step = own.function.decide(&Packet::new(packet, info), states.get(at));
        if step.is_none() {
            break;
        }
        own.steps.push(step);
    }
    run.entries.truncate(own.steps.len());
    if !run.entries.is_empty() {
        others.decide(run, Some(&mut own));
    }
}

/// Lets `function` decide about each packet of a run and carry that out, as the function that they pass first and the last to decide,
/// and then those behind it carry out what they have decided.
#[inline(always)]
fn decide_first<F: Steady<S>, S: Send + 'static>(
    function: F,
    (place, own): (Handle<S>, Option<TimePlace>),
    run: &mut SteadyRun<'_, '_, '_>,
    behind: Option<&mut dyn Decided>,
) {
    let (mut passed, len) = (0, run.entries.len());
    let mut states = run.entries.states_mut(place);
    let parts = run.packets[..len].iter_mut().zip(run.infos).zip(run.deadlines.iter_mut());
    for ((packet, info), deadline) in parts {
        let packet = &mut Packet::new(packet, info);
        let Some(step) = function.decide(packet, states.get_mut(passed)) else { break };
        let requested = function.commit(step, info.now, packet, states.get_mut(passed));
        run.rewritten |= u16::from(packet.is_rewritten()) << passed;
        note_deadline(requested, own, (&mut states, passed), deadline);
        passed += 1;
    }
    run.entries.truncate(passed);
    if let Some(behind) = behind
        && passed > 0
    {
        behind.commit(run);
    }
}
