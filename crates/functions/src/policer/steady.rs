//! The fast path of the policer: packets that pass, of those whose buckets are known.

use rheostat_base::{Counter, Nanos, Time};

use super::meter::Bucket;
use super::{Action, Colour, FlowState, LINGER, Metered, Policer, mark};
use rheostat_nf::Packet;
use rheostat_nf::Steady;

/// What the fast path needs of the policer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buckets<'a> {
    policer: &'a Policer,
    /// Packets that were metered, by their colour.
    packets: &'a [Counter],
}

impl<'a> Buckets<'a> {
    pub(super) fn of(policer: &'a Policer, packets: &'a [Counter]) -> Buckets<'a> {
        Buckets { policer, packets }
    }
}

/// What becomes of a packet and of its bucket.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// It passes, whatever it takes.
    Exempt,
    /// It is not metered.
    Pass,
    /// It is metered, and passes.
    Metered {
        /// The bucket with what is left.
        bucket: Bucket,
        /// When it can be forgotten.
        deadline: Time,
        colour: Colour,
        action: Action,
    },
}

impl Steady<FlowState> for Buckets<'_> {
    type Step = Step;

    fn shortest(&self) -> Nanos {
        LINGER.into()
    }

    /// All that are metered and known for good, or exempt.
    #[inline(always)]
    fn may_leave(&self, state: &FlowState) -> bool {
        match state {
            FlowState::Metered(metered) => metered.is_kept,
            _ => true,
        }
    }

    #[inline(always)]
    fn decide(&self, packet: &Packet<'_>, state: &FlowState) -> Option<Step> {
        let (mut bucket, class, is_kept) = match *state {
            FlowState::Metered(Metered { bucket, class, is_kept }) => (bucket, class, is_kept),
            FlowState::Exempt(class) => {
                return self.policer.config.classes.has(class).then_some(Step::Exempt);
            }
        };
        if !self.policer.is_metered(packet) {
            return Some(Step::Pass);
        }
        // Without one, the class is that of a policer before this one.
        let (meter, now) = (self.policer.config.classes.meter(class)?, packet.arrived());
        let before = self.policer.colour_before(packet);
        let colour = meter.colour(&mut bucket, now, self.policer.bytes(packet), before);
        let action = self.policer.config.actions.of(colour);
        if action == Action::Drop || (!is_kept && meter.is_half_empty(&bucket)) {
            return None;
        }
        let deadline = meter.full_at(&bucket).max(now + LINGER);
        Some(Step::Metered { bucket, deadline, colour, action })
    }

    #[inline(always)]
    fn commit(
        &self,
        step: Step,
        now: Time,
        packet: &mut Packet<'_>,
        state: &mut FlowState,
    ) -> Option<Time> {
        match (step, state) {
            (Step::Metered { bucket, deadline, colour, action }, FlowState::Metered(metered)) => {
                metered.bucket = bucket;
                self.packets[colour as usize].increment();
                mark(packet, action, colour);
                Some(deadline)
            }
            (Step::Exempt, _) => Some(now + LINGER),
            _ => None,
        }
    }
}
