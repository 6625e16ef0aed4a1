//! The fast path of a chain that is put together at run time: a run of packets, each of another flow, passes it by two virtual calls
//! per function.
//!
//! In the first, each function decides about all packets of the run, the last function first, and keeps its steps where they are:
//! on the stack, in an array of its own type. It calls the function before it, for as many packets as it has decided about. The
//! first function of the chain finds out how many that are. In the second call, each carries out its steps of these packets: of
//! packets from inside before the function behind it, of those from outside after it.
//!
//! A function without a fast path decides nothing in the first call, if it has no flows of the chain: in the second, the packets are
//! presented to its handler. What the functions behind it have decided stands, as nothing but addresses, ports and traffic class can
//! be changed about a packet. A packet that it stops is not presented to them. The packets of such a run all come from one side, so
//! that the function sees them in the order in which they came.

use arrayvec::ArrayVec;
use rheostat_base::{Counter, Time};
use rheostat_packet::Mbuf;
use rheostat_run::PacketInfo;
use rheostat_state::{EntryColumn, Handle, OPEN_FLOWS, TimePlace};
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
    pub(super) deadlines: [Time; OPEN_FLOWS],
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
        visits: Option<&'r mut Visits<'v>>,
    ) -> SteadyRun<'r, 'f, 'v> {
        let deadlines = [UNCHANGED; OPEN_FLOWS];
        SteadyRun { packets, infos, entries, deadlines, visits, rewritten: 0 }
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
    pub(super) links: &'l [Box<dyn LinkStage>],
    pub(super) counts: &'l [Counter],
}

impl<'l> Undecided<'l> {
    /// The same without the last `own` counts, which are those of a function that has had its turn.
    pub(super) fn without_counts(self, own: usize) -> Undecided<'l> {
        let (counts, _) = self.counts.split_at(self.counts.len() - own);
        Undecided { counts, ..self }
    }

    /// Lets the last of these decide, and those before it. At the end, all carry out what they have decided.
    pub(super) fn decide(
        self,
        run: &mut SteadyRun<'_, '_, '_>,
        mut behind: Option<&mut dyn Decided>,
    ) {
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
    /// Carries out the steps of packets from one side.
    #[inline(always)]
    fn commit_from(&mut self, side: Side, run: &mut SteadyRun<'_, '_, '_>) {
        let stopped = run.stopped();
        let mut states = run.entries.states_mut(self.place);
        let parts = run.packets.iter_mut().zip(run.infos).zip(&mut run.deadlines);
        for (at, ((packet, info), deadline)) in parts.enumerate() {
            if info.side() != side || stopped & 1 << at != 0 {
                continue;
            }
            let Some(step) = self.steps.get_mut(at).and_then(Option::take) else { continue };
            let packet = &mut Packet::new(packet, info);
            let own = self.function.commit(step, info.now, packet, states.get_mut(at));
            run.rewritten |= u16::from(packet.is_rewritten()) << at;
            let Some(own) = own else { continue };
            match self.deadline {
                Some(place) => states.set_time(at, place, own),
                None if *deadline == UNCHANGED => *deadline = own,
                None => *deadline = own.min(*deadline),
            }
        }
    }
}

impl<F: Steady<S>, S: Send + 'static> Decided for Steps<'_, F, S> {
    #[inline(never)]
    fn commit(&mut self, run: &mut SteadyRun<'_, '_, '_>) {
        self.steps.truncate(run.entries.len());
        let sides = Sides::of(run);
        if sides.inside {
            self.commit_from(Side::Inside, run);
        }
        if let Some(behind) = &mut self.behind {
            behind.commit(run);
        }
        if sides.outside {
            self.commit_from(Side::Outside, run);
        }
    }
}

/// The sides from which packets of a run come.
struct Sides {
    inside: bool,
    outside: bool,
}

impl Sides {
    #[inline(always)]
    fn of(run: &SteadyRun<'_, '_, '_>) -> Sides {
        let from = |side| run.infos[..run.entries.len()].iter().any(|info| info.side() == side);
        Sides { inside: from(Side::Inside), outside: from(Side::Outside) }
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
        let is_inside = run.infos[0].side() == Side::Inside;
        if is_inside {
            self.visit(run);
        }
        if let Some(behind) = &mut self.behind {
            behind.commit(run);
        }
        if !is_inside {
            self.visit(run);
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
    let mut visitor = Visitor { link, at: others.links.len(), behind };
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
