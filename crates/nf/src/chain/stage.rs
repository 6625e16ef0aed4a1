//! A chain of one function.

use std::fmt::Display;

use rheostat_base::Counter;
use rheostat_run::Metrics;
use rheostat_run::Step;
use rheostat_state::{FlowMut, Handle, LayoutError, StateLayout};
use rheostat_steer::{PacketSet, Translation};

use super::Chain;
use crate::chain_service::AtOnce;
use crate::cx::{Cx, Scope};
use crate::function::{NetworkFunction, ShardInfo};
use crate::packet::Packet;
use crate::steady::{SteadyChain, SteadyStage};
use crate::verdict::{Admission, Ending, Outcome, Verdict};

/// A function with the place of its state in a flow's entry.
#[derive(Debug)]
pub struct Stage<F: NetworkFunction> {
    pub(super) function: F,
    pub(super) handle: Handle<F::Flow>,
}

impl<F: NetworkFunction> Stage<F> {
    /// Reserves a place for the function's state in `layout`.
    ///
    /// # Errors
    /// [`LayoutError`] when the entry has no room for it.
    pub fn new(mut function: F, layout: &mut StateLayout) -> Result<Stage<F>, LayoutError> {
        let handle = layout.reserve::<F::Flow>()?;
        function.placed(handle);
        Ok(Stage { function, handle })
    }

    /// Gives up the state of a flow that lives on for other functions.
    #[cold]
    fn delete_state(&self, local: &mut F::Shard, scope: &mut Scope<'_>, flow: &mut FlowMut<'_>) {
        (scope.requests.delete, scope.requests.has_deleted) = (false, true);
        self.ended(local, scope, flow, Ending::Closed);
        drop(flow.take(self.handle));
    }

    /// Runs the function on a packet that is followed, and keeps what it decided.
    #[cold]
    #[inline(never)]
    fn follow<T: Display>(
        &self,
        local: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        run: impl FnOnce(&mut Cx<'_, F::Shard>, &mut Packet<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let before = packet.key();
        let outcome = run(&mut scope.cx(local), packet);
        let after = packet.key();
        scope.outbox.decisions.push(Step::Function {
            name: self.function.name(),
            verdict: outcome.as_ref().map_or_else(ToString::to_string, ToString::to_string),
            rewrote: (after != before).then_some((before, after)),
        });
        outcome
    }
}

impl<F: NetworkFunction> Chain for Stage<F> {
    type Shard = F::Shard;
    type States = Option<F::Flow>;
    /// Nothing: what the function keeps per shard could not be restored.
    type Saved = ();
    type Journal = AtOnce;

    const STATEFUL: bool = true;

    #[inline(always)]
    fn counts(&self) -> usize {
        F::COUNTS.len()
    }

    #[inline(always)]
    fn steady<'a>(&'a self, counts: &'a [Counter]) -> impl SteadyChain {
        SteadyStage { function: self.function.steady(counts), handle: self.handle }
    }

    fn add_counts(&self, counts: &[Counter], metrics: &mut Metrics) {
        for (name, count) in F::COUNTS.iter().zip(counts) {
            metrics.add(name, count.get());
        }
    }

    fn save(&self, _: &mut FlowMut<'_>) {}

    fn restore(&self, _: &mut FlowMut<'_>, (): ()) {}

    fn packet_set(&self) -> PacketSet {
        self.function.packet_set()
    }

    fn steering(&self) -> PacketSet {
        self.function.steering()
    }

    fn aliases(&self) -> bool {
        self.function.aliases()
    }

    fn depends_on_flows(&self) -> bool {
        self.function.depends_on_flows()
    }

    fn translation(&self) -> Option<Translation> {
        self.function.translation()
    }

    fn local(&self, shard: ShardInfo) -> F::Shard {
        self.function.local(shard)
    }

    fn passes_without_entry(&self) -> bool {
        self.function.passes_without_entry()
    }

    #[inline]
    fn first(
        &self,
        local: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<(Option<F::Flow>, Verdict)> {
        let admission = match packet.is_traced() {
            false => self.function.first(&mut scope.cx(local), packet)?,
            true => {
                self.follow(local, scope, packet, |cx, packet| self.function.first(cx, packet))?
            }
        };
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

    #[inline]
    fn install(&self, _: &mut F::Shard, flow: &mut FlowMut<'_>, states: Option<F::Flow>) {
        if let Some(state) = states {
            flow.init(self.handle, state);
        }
    }

    fn discarded(&self, local: &mut F::Shard, scope: &mut Scope<'_>, states: Option<F::Flow>) {
        if let Some(state) = states {
            self.function.discarded(&mut scope.cx(local), state);
        }
    }

    #[inline]
    fn packet(
        &self,
        local: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        flow: &mut FlowMut<'_>,
    ) -> Outcome<Verdict> {
        if let Some(state) = flow.state(self.handle) {
            let asked = scope.requests.deadline;
            let verdict = if packet.is_traced() {
                let run = |cx: &mut Cx<'_, F::Shard>, packet: &mut Packet<'_>| {
                    self.function.packet(cx, packet, state)
                };
                self.follow(local, scope, packet, run)?
            } else {
                self.function.packet(&mut scope.cx(local), packet, state)?
            };
            if scope.requests.delete {
                scope.requests.deadline = asked;
                self.delete_state(local, scope, flow);
            }
            return Ok(verdict);
        }
        // An earlier function kept the flow's first packet from this one; it sees the flow only now.
        let (state, verdict) = self.first(local, scope, packet)?;
        self.install(local, flow, state);
        if matches!(verdict, Verdict::Drop(_)) {
            scope.requests.close = true;
        }
        Ok(verdict)
    }

    fn undo(&self, packet: &mut Packet<'_>, flow: &mut FlowMut<'_>) {
        if let Some(state) = flow.state(self.handle) {
            self.function.undo(packet, state);
        }
    }

    #[inline]
    fn ends_soon(&self, local: &F::Shard, flow: &mut FlowMut<'_>) {
        if let Some(state) = flow.state(self.handle) {
            self.function.ends_soon(local, state);
        }
    }

    fn ended(
        &self,
        local: &mut F::Shard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
        ending: Ending,
    ) {
        let key = flow.key();
        if let Some(state) = flow.state(self.handle) {
            // An aborted clean-up has no packet to drop; the state goes in any case.
            let _ = self.function.ended(&mut scope.cx(local), &key, state, ending);
        }
    }

    fn ends_with_run(&self) -> bool {
        self.function.ends_with_run()
    }

    #[inline]
    fn non_flow(
        &self,
        local: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Verdict> {
        match packet.is_traced() {
            false => self.function.non_flow(&mut scope.cx(local), packet),
            true => {
                self.follow(local, scope, packet, |cx, packet| self.function.non_flow(cx, packet))
            }
        }
    }

    fn periodic(&self, local: &mut F::Shard, scope: &mut Scope<'_>) -> Outcome<()> {
        self.function.periodic(&mut scope.cx(local))
    }

    fn metrics(&self, local: &F::Shard, metrics: &mut Metrics) {
        self.function.metrics(local, metrics);
    }

    fn shared_metrics(&self, metrics: &mut Metrics) {
        self.function.shared_metrics(metrics);
    }
}
