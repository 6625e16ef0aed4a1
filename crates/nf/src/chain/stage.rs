//! A chain of one function.

use std::fmt::Display;

use rheostat_base::{Counter, DeviceId};
use rheostat_packet::FlowKey;
use rheostat_run::Metrics;
use rheostat_run::Step;
use rheostat_run::listing::{FunctionFields, ListedFields};
use rheostat_state::txn::Objects;
use rheostat_state::{FlowMut, Handle, LayoutError, StateLayout};

use super::mode::{Mode, OnObjects, Owned};
use super::visit::Visit;
use super::{Chain, CompiledChain};
use crate::chain_service::FastPath;
use crate::cx::{Cx, Scope};
use crate::function::{Ahead, NetworkFunction, NoShardState, Prefetch, ShardInfo, ShardState};
use crate::function_spec::FunctionSpec;
use crate::listing::{ListCx, ListMethods, ListedFlow, Lists, WantedEntries};
use crate::packet::Packet;
use crate::reading::Reading;
use crate::steady::{Steady, SteadyChain, SteadyStage};
use crate::verdict::{Admission, Ending, Outcome, Verdict};

/// A function with the place of its state in a flow's entry.
///
/// The handlers of a function [`OnObjects`] run in transactions. The state that is not a flow's is an object's, so the function
/// keeps nothing per shard (`Shard = ()`), and a flow's state can be cloned: the clone takes its place again when a transaction
/// conflicts. It does not stand in one [`Chain2`](super::Chain2) with an [`Owned`] one, whose effects cannot be undone:
///
/// ```compile_fail,E0080
/// # use std::sync::Arc;
/// # use rheostat_nf::{Chain2, ChainService, Cx, NetworkFunction, Outcome, Packet, Stage, Verdict};
/// # use rheostat_state::{StateLayout, txn::Objects};
/// # struct Any;
/// # impl NetworkFunction for Any {
/// #     type Flow = ();
/// #     type Shard = ();
/// #     fn packet(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>, _: &mut ()) -> Outcome<Verdict> {
/// #         Ok(Verdict::Forward)
/// #     }
/// # }
/// # let (objects, mut layout) = (Objects::new(1), StateLayout::new());
/// # let routes = rheostat_run::Routes(Vec::new());
/// let shared = Stage::on_objects(Any, &objects, &mut layout).unwrap();
/// let owned = Stage::new(Any, &mut layout).unwrap();
/// ChainService::new(Arc::new(Chain2(shared, owned)), routes); // does not compile
/// ```
#[derive(Debug)]
pub struct Stage<F: NetworkFunction, M = Owned> {
    pub(crate) spec: FunctionSpec,
    pub(crate) function: F,
    pub(crate) handle: Handle<F::Flow>,
    mode: M,
    listing: Option<ListMethods<F>>,
    /// The name under which it is listed.
    listed_as: &'static str,
}

impl<F: NetworkFunction> Stage<F> {
    /// A function with state per flow and per shard. Reserves a place for the former in `layout`.
    ///
    /// # Errors
    /// [`LayoutError`] when the entry has no room for it.
    pub fn new(function: F, layout: &mut StateLayout) -> Result<Stage<F>, LayoutError> {
        Stage::in_mode(function, Owned, layout)
    }
}

impl<F: NetworkFunction<Shard: NoShardState>> Stage<F, OnObjects>
where
    F::Flow: Clone,
{
    /// A function on shared objects. Reserves a place for its state of a flow in `layout`. `objects` are those that the
    /// function's own were made with, and those of the other functions of the chain.
    ///
    /// # Errors
    /// [`LayoutError`] when the entry has no room for it.
    pub fn on_objects(
        function: F,
        objects: &Objects,
        layout: &mut StateLayout,
    ) -> Result<Stage<F, OnObjects>, LayoutError> {
        Stage::in_mode(function, <OnObjects as Mode<F>>::of(objects), layout)
    }
}

impl<F: NetworkFunction, M: Mode<F>> Stage<F, M> {
    /// A function whose handlers run in this mode.
    pub(crate) fn in_mode(
        function: F,
        mode: M,
        layout: &mut StateLayout,
    ) -> Result<Stage<F, M>, LayoutError> {
        let (spec, handle) = (FunctionSpec::of(&function), layout.reserve()?);
        let listed_as = spec.name;
        Ok(Stage { spec, function, handle, mode, listing: None, listed_as })
    }

    /// The same, which lists what the function implements in [`Lists`].
    #[must_use]
    pub fn listing(self) -> Stage<F, M>
    where
        F: Lists,
    {
        let listed_as = self.listed_as;
        self.listed_by(Some(ListMethods::of()), listed_as)
    }

    pub(crate) fn listed_by(
        self,
        listing: Option<ListMethods<F>>,
        listed_as: &'static str,
    ) -> Stage<F, M> {
        Stage { listing, listed_as, ..self }
    }

    /// What the function lists of a flow with this state.
    fn fields(&self, cx: ListCx<'_, F::Shard>, key: &FlowKey, state: &F::Flow) -> FunctionFields {
        let mut fields = ListedFields::default();
        if let Some(listing) = self.listing {
            (listing.list)(&self.function, cx, key, state, &mut fields);
        }
        FunctionFields { function: self.listed_as, fields }
    }

    /// Adds what the function lists of a flow whose state lies elsewhere than in the flow's entry.
    pub(super) fn list_state(
        &self,
        shard: &F::Shard,
        listed: &mut ListedFlow<'_, '_>,
        state: &F::Flow,
    ) {
        let cx = ListCx { now: listed.now, shard, devices: listed.flow.devices() };
        let fields = self.fields(cx, listed.key, state);
        listed.into.push(fields);
    }

    /// Gives up the state of a flow that lives on for other functions.
    #[cold]
    fn delete_state(&self, shard: &mut F::Shard, scope: &mut Scope<'_>, flow: &mut FlowMut<'_>) {
        (scope.requests.delete, scope.requests.has_deleted) = (false, true);
        self.ended(shard, scope, flow, Ending::Closed);
        drop(flow.take(self.handle));
    }

    /// Executes the function on the first packet of a flow, and returns its state if the function admits it.
    #[inline]
    pub(super) fn first(
        &self,
        shard: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<(Option<F::Flow>, Verdict)> {
        let admission =
            self.run(shard, scope, packet, |cx, packet| self.function.first(cx, packet))?;
        // There is no state yet that could be given up.
        scope.requests.delete = false;
        let (state, verdict) = match admission {
            Admission::Pass(verdict) => return Ok((None, verdict)),
            Admission::Admit(state, verdict) => (Some(state), verdict),
            Admission::Refuse(reason) => (None, Verdict::Drop(reason)),
        };
        scope.requests.needs_flow = true;
        Ok((state, verdict))
    }

    /// Executes the function on a packet of a live flow.
    #[inline]
    pub(super) fn packet(
        &self,
        shard: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        flow: &mut FlowMut<'_>,
    ) -> Outcome<Verdict> {
        if let Some(state) = flow.state(self.handle) {
            let requested = scope.requests.deadline;
            let verdict = self
                .run(shard, scope, packet, |cx, packet| self.function.packet(cx, packet, state))?;
            if scope.requests.delete {
                scope.requests.deadline = requested;
                self.delete_state(shard, scope, flow);
            }
            return Ok(verdict);
        }
        // An earlier function kept the flow's first packet from this one; it sees the flow only now.
        let (state, verdict) = self.first(shard, scope, packet)?;
        self.install(shard, flow, state);
        if matches!(verdict, Verdict::Drop(_)) {
            scope.requests.close = true;
        }
        Ok(verdict)
    }

    /// Runs a handler on a packet.
    #[inline(always)]
    fn run<T: Display>(
        &self,
        shard: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        handler: impl FnOnce(&mut Cx<'_, F::Shard>, &mut Packet<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        match packet.is_traced() {
            false => handler(&mut scope.cx(shard), packet),
            true => self.run_traced(shard, scope, packet, handler),
        }
    }

    /// Runs a handler on a packet that is traced, and notes its decision.
    #[cold]
    #[inline(never)]
    fn run_traced<T: Display>(
        &self,
        shard: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        handler: impl FnOnce(&mut Cx<'_, F::Shard>, &mut Packet<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let before = packet.key();
        let outcome = handler(&mut scope.cx(shard), packet);
        let after = packet.key();
        scope.outbox.decisions.push(Step::Function {
            name: self.spec.name,
            verdict: outcome.as_ref().map_or_else(ToString::to_string, ToString::to_string),
            rewrote: (after != before).then_some((before, after)),
        });
        outcome
    }
}

impl<F: NetworkFunction, M: Mode<F>> Chain for Stage<F, M> {
    type Shard = F::Shard;
    type States = Option<F::Flow>;
    type Saved = Option<F::Flow>;

    const SHARED: bool = M::SHARED;

    fn spec(&self) -> FunctionSpec {
        self.spec.clone()
    }

    fn shard(&self, shard: ShardInfo) -> F::Shard {
        F::Shard::of(&self.function, shard, self.handle)
    }

    fn follow(&self, shard: &mut F::Shard, info: &ShardInfo) {
        shard.follow(&self.function, info);
    }

    #[inline(always)]
    fn fast_path<'a>(&'a self, counts: &'a [Counter]) -> impl FastPath {
        self.steady(counts)
    }

    #[inline(always)]
    fn reading<'a>(&'a self, counts: &'a [Counter]) -> impl Reading {
        self.function.steady(counts).reading()
    }

    #[inline]
    fn prefetch(&self, packet: &Packet<'_>, ahead: Ahead) {
        self.function.prefetch(Prefetch::Packet(packet, ahead));
    }

    fn objects(&self) -> Option<&Objects> {
        self.mode.objects()
    }

    #[inline]
    fn save(&self, flow: &mut FlowMut<'_>) -> Option<F::Flow> {
        flow.state(self.handle).and_then(|state| M::copy(state))
    }

    fn restore(&self, flow: &mut FlowMut<'_>, saved: Option<F::Flow>) {
        drop(flow.take(self.handle));
        if let Some(state) = saved {
            flow.init(self.handle, state);
        }
    }

    #[inline(always)]
    fn visit(
        &self,
        shard: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        visit: Visit<'_, '_, Option<F::Flow>>,
    ) -> Outcome<Verdict> {
        match visit {
            Visit::First(states) => {
                let (state, verdict) = self.first(shard, scope, packet)?;
                *states = state;
                Ok(verdict)
            }
            Visit::Known(flow) => self.packet(shard, scope, packet, flow),
            Visit::NonFlow => {
                self.run(shard, scope, packet, |cx, packet| self.function.non_flow(cx, packet))
            }
        }
    }

    #[inline]
    fn install(&self, _: &mut F::Shard, flow: &mut FlowMut<'_>, states: Option<F::Flow>) {
        if let Some(state) = states {
            flow.init(self.handle, state);
        }
    }

    fn discarded(&self, shard: &mut F::Shard, scope: &mut Scope<'_>, states: Option<F::Flow>) {
        if let Some(state) = states {
            self.function.discarded(&mut scope.cx(shard), state);
        }
    }

    #[inline]
    fn prefetch_end(&self, shard: &F::Shard, flow: &mut FlowMut<'_>) {
        if let Some(state) = flow.state(self.handle) {
            self.function.prefetch(Prefetch::End(shard, state));
        }
    }

    fn ended(
        &self,
        shard: &mut F::Shard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
        ending: Ending,
    ) {
        let key = flow.key();
        if let Some(state) = flow.state(self.handle) {
            // An aborted clean-up has no packet to drop; the state goes in any case.
            let _ = self.function.closed(&mut scope.cx(shard), &key, state, ending);
        }
    }

    fn periodic(&self, shard: &mut F::Shard, scope: &mut Scope<'_>) -> Outcome<()> {
        self.function.periodic(&mut scope.cx(shard))
    }

    fn list(&self, shard: &F::Shard, flow: &mut ListedFlow<'_, '_>) {
        let ListedFlow { now, key, flow, into } = flow;
        let devices = flow.devices();
        if let Some(state) = flow.state(self.handle) {
            into.push(self.fields(ListCx { now: *now, shard, devices }, key, state));
        }
    }

    fn entries(&self, shard: &F::Shard, wanted: WantedEntries<'_>) -> Option<u32> {
        let WantedEntries { function, now, from, most, into } = wanted;
        let listing = self.listing.filter(|_| function == self.listed_as)?;
        (listing.entries)(
            &self.function,
            ListCx { now, shard, devices: [DeviceId::NONE; 2] },
            from,
            most,
            into,
        )
    }

    fn fixed_entries(&self, function: &str, into: &mut Vec<ListedFields>) {
        if let Some(listing) = self.listing.filter(|_| function == self.listed_as) {
            (listing.fixed_entries)(&self.function, into);
        }
    }

    fn metrics(&self, shard: Option<&F::Shard>, metrics: &mut Metrics) {
        let shard = if M::SHARED { M::no_shard().filter(|_| shard.is_none()) } else { shard };
        if let Some(shard) = shard {
            self.function.metrics(shard, metrics);
        }
    }
}

impl<F: NetworkFunction, M: Mode<F>> CompiledChain for Stage<F, M> {
    #[inline(always)]
    fn counts(&self) -> usize {
        self.spec.counts.len()
    }

    #[inline(always)]
    fn steady<'a>(&'a self, counts: &'a [Counter]) -> impl SteadyChain {
        SteadyStage { function: self.function.steady(counts), handle: self.handle }
    }
}
