//! A function at its place in a chain that is put together at run time, without its type.

use std::any::Any;

use rheostat_base::{Counter, Nanos};
use rheostat_run::Metrics;
use rheostat_run::listing::ListedFields;
use rheostat_state::txn::Objects;
use rheostat_state::{EntryColumn, FlowMut, StateBits, StateLayout, TimePlace};

use super::Naming;
use super::deadlines::OwnDeadline;
use super::event::Event;
use super::steady_run::{self, Decided, SteadyRun, Undecided};
use crate::chain::{BytesBeside, Chain, Mode, Stage, Visit};
use crate::cx::Scope;
use crate::function::{Ahead, NetworkFunction, ShardInfo};
use crate::listing::{ListedFlow, WantedEntries};
use crate::packet::Packet;
use crate::steady::Steady;
use crate::verdict::{Outcome, Verdict};

/// The value that a link keeps for one shard, without its type.
pub(crate) type LinkShard = dyn Any + Send;

/// What a packet is to a function. The state of a new flow stays with the link.
pub(crate) type LinkVisit<'a, 'f> = Visit<'a, 'f, ()>;

/// A function at its place in a chain, without its type. Its methods are those of [`Chain`] for one function; the state of a new
/// flow stays in the link's value for the shard until it is installed or discarded, so that a first packet allocates nothing.
pub(crate) trait LinkStage: Any + Send + Sync {
    /// The objects of a function on shared objects.
    fn objects(&self) -> Option<&Objects> {
        None
    }

    fn counts(&self) -> usize;

    fn prefetch(&self, _packet: &Packet<'_>, _ahead: Ahead) {}

    /// The value that the link keeps for one shard.
    fn shard(&self, shard: ShardInfo) -> Box<LinkShard>;

    /// As [`Chain::follow`].
    fn follow(&self, shard: &mut LinkShard, info: &ShardInfo);

    /// Whether `next` is a link of the same function with other settings.
    fn is_like(&self, next: &dyn LinkStage) -> bool;

    /// The entries of the function, if it has a table of its own.
    fn own_layout(&self) -> Option<&StateLayout> {
        None
    }

    /// Bytes of such a value, without what it points to, and of the table that the function has of its own beside a table for so
    /// many flows.
    fn bytes_beside(&self, flows: usize) -> BytesBeside;

    /// Calls the handler for a packet.
    fn visit(
        &self,
        shard: &mut LinkShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        visit: &mut LinkVisit<'_, '_>,
    ) -> Outcome<Verdict>;

    /// Puts the state of a new flow into its entry, if the function keeps one.
    fn install(&self, _shard: &mut LinkShard, _flow: &mut FlowMut<'_>) {}

    /// Drops the state of a new flow.
    fn forget(&self, _shard: &mut LinkShard) {}

    fn prefetch_end(&self, _shard: &LinkShard, _flow: &mut FlowMut<'_>) {}

    /// Calls the handler for an event.
    fn handle(
        &self,
        shard: &mut LinkShard,
        scope: &mut Scope<'_>,
        event: &mut Event<'_, '_>,
    ) -> Outcome<()>;

    /// As [`Chain::metrics`].
    fn metrics(&self, shard: Option<&LinkShard>, metrics: &mut Metrics);

    /// As [`Chain::list`].
    fn list(&self, _shard: &LinkShard, _flow: &mut ListedFlow<'_, '_>) {}

    /// As [`Chain::entries`].
    fn entries(&self, shard: &LinkShard, wanted: WantedEntries<'_>) -> Option<u32>;

    /// As [`Chain::fixed_entries`].
    fn fixed_entries(&self, function: &str, into: &mut Vec<ListedFields>);

    /// The deadline that the function has of its own, if it has one.
    fn deadline(&self) -> Option<OwnDeadline> {
        None
    }

    /// Drops the function's state of a flow.
    fn drop_state(&self, _flow: &mut FlowMut<'_>) {}

    /// The place of the function's states, if it has a fast path.
    fn steady_place(&self) -> Option<StateBits> {
        None
    }

    /// Whether the function has no flows of the chain and no transactions: on the fast path of the others, packets of known flows
    /// are presented to it as packets of no flow.
    fn is_visitor(&self) -> bool;

    /// Decides about the packets of a run, if the function has a fast path, and lets the others decide and carry that out.
    fn decide(
        &self,
        others: Undecided<'_>,
        run: &mut SteadyRun<'_, '_, '_>,
        behind: Option<&mut dyn Decided>,
    );

    /// As [`Steady::shortest`](crate::Steady::shortest).
    fn shortest(&self, _counts: &[Counter]) -> Nanos {
        Nanos::default()
    }

    /// As [`Steady::may_leave`](crate::Steady::may_leave), about the first flow.
    fn may_leave(&self, _counts: &[Counter], _flows: &EntryColumn<'_>) -> bool {
        false
    }

    /// Keeps a flow's state for [`LinkStage::restore`], if the function is on shared objects.
    fn save(&self, _shard: &mut LinkShard, _flow: &mut FlowMut<'_>) {}

    /// Gives a flow the state again that was kept last.
    fn restore(&self, _shard: &mut LinkShard, _flow: &mut FlowMut<'_>) {}
}

/// A function at its place in a chain.
pub(crate) struct PlacedLink<F: NetworkFunction, M> {
    stage: Stage<F, M>,
    naming: Naming,
    /// Where its deadline lies, if it does not end flows for all functions.
    deadline: Option<TimePlace>,
}

/// The value that a link keeps for one shard.
struct Local<F: NetworkFunction> {
    shard: F::Shard,
    /// Which packets the function has flows for, where these are not the chain's.
    admits: Option<Box<Admits>>,
    /// The state of a flow that the chain has yet to admit.
    new: Option<F::Flow>,
    /// The state that a flow had before a transaction.
    saved: Option<F::Flow>,
}

/// Decides which packets of a chain's flows are packets of a flow to a function.
type Admits = dyn Fn(&Packet<'_>) -> bool + Send;

/// The value that a link keeps for one shard, by its type.
fn local_of<F: NetworkFunction>(shard: &mut LinkShard) -> &mut Local<F> {
    shard.downcast_mut().unwrap_or_else(|| wrong_type())
}

pub(super) fn by_type<L: 'static>(shard: &LinkShard) -> &L {
    shard.downcast_ref().unwrap_or_else(|| wrong_type())
}

#[cold]
pub(super) fn wrong_type() -> ! {
    panic!("a shard holds what another chain keeps for it")
}

impl<F: NetworkFunction, M: Mode<F>> PlacedLink<F, M> {
    pub(crate) fn new(
        stage: Stage<F, M>,
        naming: Naming,
        deadline: Option<TimePlace>,
    ) -> PlacedLink<F, M> {
        PlacedLink { stage, naming, deadline }
    }

    /// Whether a packet of a flow of the chain is one of a flow to the function.
    fn has_flow_of(&self, packet: &Packet<'_>, admits: &Option<Box<Admits>>) -> bool {
        match self.naming {
            Naming::Chain | Naming::Own => true,
            Naming::None => false,
            Naming::Selected => admits.as_ref().is_none_or(|admits| admits(packet)),
        }
    }
}

impl<F: NetworkFunction, M: Mode<F>> LinkStage for PlacedLink<F, M> {
    fn objects(&self) -> Option<&Objects> {
        self.stage.objects()
    }

    fn counts(&self) -> usize {
        self.stage.spec.counts.len()
    }

    fn prefetch(&self, packet: &Packet<'_>, ahead: Ahead) {
        self.stage.prefetch(packet, ahead);
    }

    fn shard(&self, shard: ShardInfo) -> Box<LinkShard> {
        let admits = (self.naming == Naming::Selected).then(|| {
            let spec = &self.stage.spec;
            let own = (*shard.steering).clone().with_sets(&spec.packet_set, &spec.steering());
            let own = own.expect("a function agrees with itself on how packets are placed");
            let admits: Box<Admits> = Box::new(move |packet: &Packet<'_>| {
                let side = packet.side();
                own.admits(&packet.arrival_key(), side)
            });
            admits
        });
        let shard = self.stage.shard(shard);
        Box::new(Local::<F> { shard, admits, new: None, saved: None })
    }

    fn follow(&self, shard: &mut LinkShard, info: &ShardInfo) {
        self.stage.follow(&mut local_of::<F>(shard).shard, info);
    }

    fn is_like(&self, next: &dyn LinkStage) -> bool {
        let next = (next as &dyn Any).downcast_ref::<PlacedLink<F, M>>();
        // The places of states and deadlines are the same in layouts that continue each other.
        next.is_some_and(|next| {
            self.naming == next.naming && self.deadline.is_some() == next.deadline.is_some()
        })
    }

    fn bytes_beside(&self, _: usize) -> BytesBeside {
        BytesBeside { boxed: size_of::<Local<F>>(), tables: 0 }
    }

    fn visit(
        &self,
        shard: &mut LinkShard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        visit: &mut LinkVisit<'_, '_>,
    ) -> Outcome<Verdict> {
        let Local::<F> { shard, admits, new, .. } = local_of(shard);
        let visit = match visit {
            Visit::First(()) if self.has_flow_of(packet, admits) => Visit::First(new),
            Visit::Known(flow) if self.has_flow_of(packet, admits) => Visit::Known(flow),
            _ => Visit::NonFlow,
        };
        self.stage.visit(shard, scope, packet, visit)
    }

    fn install(&self, shard: &mut LinkShard, flow: &mut FlowMut<'_>) {
        let Local::<F> { shard, new, .. } = local_of(shard);
        self.stage.install(shard, flow, new.take());
    }

    fn forget(&self, shard: &mut LinkShard) {
        local_of::<F>(shard).new = None;
    }

    fn handle(
        &self,
        shard: &mut LinkShard,
        scope: &mut Scope<'_>,
        event: &mut Event<'_, '_>,
    ) -> Outcome<()> {
        let Local::<F> { shard, new, .. } = local_of(shard);
        match event {
            Event::Discarded => {
                let copy = new.as_ref().and_then(|state| M::copy(state));
                let state = if M::SHARED { copy } else { new.take() };
                self.stage.discarded(shard, scope, state);
            }
            Event::Ended(flow, ending) => self.stage.ended(shard, scope, flow, *ending),
            Event::Periodic => self.stage.periodic(shard, scope)?,
            Event::Stopped => {}
        }
        Ok(())
    }

    fn prefetch_end(&self, shard: &LinkShard, flow: &mut FlowMut<'_>) {
        self.stage.prefetch_end(&by_type::<Local<F>>(shard).shard, flow);
    }

    fn metrics(&self, shard: Option<&LinkShard>, metrics: &mut Metrics) {
        let shard = shard.map(|shard| &by_type::<Local<F>>(shard).shard);
        self.stage.metrics(shard, metrics);
    }

    fn list(&self, shard: &LinkShard, flow: &mut ListedFlow<'_, '_>) {
        self.stage.list(&by_type::<Local<F>>(shard).shard, flow);
    }

    fn entries(&self, shard: &LinkShard, wanted: WantedEntries<'_>) -> Option<u32> {
        self.stage.entries(&by_type::<Local<F>>(shard).shard, wanted)
    }

    fn fixed_entries(&self, function: &str, into: &mut Vec<ListedFields>) {
        self.stage.fixed_entries(function, into);
    }

    fn deadline(&self) -> Option<OwnDeadline> {
        let state = StateBits::of(self.stage.handle);
        self.deadline.map(|at| OwnDeadline { state, at })
    }

    fn drop_state(&self, flow: &mut FlowMut<'_>) {
        drop(flow.take(self.stage.handle));
    }

    fn steady_place(&self) -> Option<StateBits> {
        fn exists<S, F: Steady<S>>(_: F) -> bool {
            F::EXISTS
        }
        let counts: Vec<_> = self.stage.spec.counts.iter().map(|_| Counter::new()).collect();
        let is_plain = !M::SHARED && self.naming == Naming::Chain;
        let has_path = exists(self.stage.function.steady(&counts));
        (is_plain && has_path).then(|| StateBits::of(self.stage.handle))
    }

    fn is_visitor(&self) -> bool {
        !M::SHARED && self.naming == Naming::None
    }

    #[inline(never)]
    fn decide(
        &self,
        others: Undecided<'_>,
        run: &mut SteadyRun<'_, '_, '_>,
        behind: Option<&mut dyn Decided>,
    ) {
        let (own, others) = others.split_counts(self.stage.spec.counts.len(), run);
        if self.is_visitor() {
            return steady_run::visit(self, others, run, behind);
        }
        let function = self.stage.function.steady(own);
        steady_run::decide(function, (self.stage.handle, self.deadline), others, run, behind);
    }

    fn shortest(&self, counts: &[Counter]) -> Nanos {
        self.stage.function.steady(counts).shortest()
    }

    fn may_leave(&self, counts: &[Counter], flows: &EntryColumn<'_>) -> bool {
        self.stage.function.steady(counts).may_leave(flows.states(self.stage.handle).get(0))
    }

    fn save(&self, shard: &mut LinkShard, flow: &mut FlowMut<'_>) {
        local_of::<F>(shard).saved = self.stage.save(flow);
    }

    fn restore(&self, shard: &mut LinkShard, flow: &mut FlowMut<'_>) {
        self.stage.restore(flow, local_of::<F>(shard).saved.take());
    }
}
