//! A chain of one function that works on objects shared by all lanes.

use std::fmt;

use rheostat_run::Metrics;
use rheostat_state::txn::Objects;
use rheostat_state::{FlowMut, LayoutError, StateLayout};
use rheostat_steer::{PacketSet, Translation};

use super::{Chain, Stage};
use crate::chain_service::Undo;
use crate::cx::Scope;
use crate::function::{Ahead, NetworkFunction, NoShardState, ShardInfo};
use crate::packet::Packet;
use crate::reading::Reading;
use crate::verdict::{Ending, Outcome, Verdict};

/// A function whose handlers run in transactions on shared objects.
///
/// What is not a flow's is an object's, so the function keeps nothing per shard (`Shard = ()`), and a
/// flow's state can be cloned: the clone takes its place again when a transaction conflicts.
///
/// Functions on shared objects do not stand in one chain with others, whose effects cannot be undone:
///
/// ```compile_fail
/// # use std::sync::Arc;
/// # use rheostat_nf::{Admission, ChainService, Cx, NetworkFunction, Outcome, Packet, ShardInfo};
/// # use rheostat_nf::{Shared, Stage, Chain2, Verdict};
/// # use rheostat_state::{StateLayout, txn::Objects};
/// # use rheostat_steer::PacketSet;
/// # struct Any;
/// # impl NetworkFunction for Any {
/// #     type Flow = ();
/// #     type Shard = ();
/// #     fn packet_set(&self) -> PacketSet { PacketSet::five_tuple() }
/// #     fn local(&self, _: ShardInfo) {}
/// #     fn first(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>) -> Outcome<Admission<()>> {
/// #         Ok(Admission::Admit((), Verdict::Forward))
/// #     }
/// #     fn packet(
/// #         &self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>, _: &mut (),
/// #     ) -> Outcome<Verdict> {
/// #         Ok(Verdict::Forward)
/// #     }
/// # }
/// # let (objects, mut layout) = (Objects::new(1), StateLayout::new());
/// # let routes = rheostat_run::Routes(Vec::new());
/// let shared = Shared::new(Any, &objects, &mut layout).unwrap();
/// let stage = Stage::new(Any, &mut layout).unwrap();
/// ChainService::new(Arc::new(Chain2(shared, stage)), routes); // does not compile
/// ```
pub struct Shared<F: NetworkFunction> {
    stage: Stage<F>,
    objects: Objects,
}

impl<F: NetworkFunction<Shard: NoShardState>> Shared<F>
where
    F::Flow: Clone,
{
    /// Reserves a place for the function's state in `layout`. `objects` are those that the function's
    /// own were made with, and those of the other functions of the chain.
    ///
    /// # Errors
    /// [`LayoutError`] when the entry has no room for it.
    pub fn new(
        function: F,
        objects: &Objects,
        layout: &mut StateLayout,
    ) -> Result<Shared<F>, LayoutError> {
        Ok(Shared { stage: Stage::new(function, layout)?, objects: objects.clone() })
    }
}

impl<F: NetworkFunction<Shard: NoShardState>> Chain for Shared<F>
where
    F::Flow: Clone,
{
    type Shard = F::Shard;
    type States = Option<F::Flow>;
    type Saved = Option<F::Flow>;
    type Journal = Undo<Self::Saved>;

    const STATEFUL: bool = true;
    const SHARED: bool = true;

    fn objects(&self) -> Option<&Objects> {
        Some(&self.objects)
    }

    #[inline(always)]
    fn reading(&self) -> impl Reading {
        self.stage.function.reading()
    }

    #[inline]
    fn prefetch(&self, packet: &Packet<'_>, what: Ahead) {
        self.stage.function.prefetch(packet, what);
    }

    #[inline]
    fn save(&self, flow: &mut FlowMut<'_>) -> Option<F::Flow> {
        flow.state(self.stage.handle).cloned()
    }

    fn restore(&self, flow: &mut FlowMut<'_>, saved: Option<F::Flow>) {
        match saved {
            Some(state) => {
                flow.init(self.stage.handle, state);
            }
            None => drop(flow.take(self.stage.handle)),
        }
    }

    fn packet_set(&self) -> PacketSet {
        self.stage.packet_set()
    }

    fn steering(&self) -> PacketSet {
        self.stage.steering()
    }

    fn aliases(&self) -> bool {
        self.stage.aliases()
    }

    fn depends_on_flows(&self) -> bool {
        self.stage.depends_on_flows()
    }

    fn translation(&self) -> Option<Translation> {
        self.stage.translation()
    }

    fn local(&self, shard: ShardInfo) -> F::Shard {
        self.stage.local(shard)
    }

    fn passes_without_entry(&self) -> bool {
        self.stage.passes_without_entry()
    }

    #[inline]
    fn first(
        &self,
        local: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<(Option<F::Flow>, Verdict)> {
        self.stage.first(local, scope, packet)
    }

    #[inline]
    fn install(&self, local: &mut F::Shard, flow: &mut FlowMut<'_>, states: Option<F::Flow>) {
        self.stage.install(local, flow, states);
    }

    fn discarded(&self, local: &mut F::Shard, scope: &mut Scope<'_>, states: Option<F::Flow>) {
        self.stage.discarded(local, scope, states);
    }

    #[inline]
    fn packet(
        &self,
        local: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
        flow: &mut FlowMut<'_>,
    ) -> Outcome<Verdict> {
        self.stage.packet(local, scope, packet, flow)
    }

    /// Nothing: what a transaction has done to a packet is undone with it.
    fn undo(&self, _: &mut Packet<'_>, _: &mut FlowMut<'_>) {}

    fn ended(
        &self,
        local: &mut F::Shard,
        scope: &mut Scope<'_>,
        flow: &mut FlowMut<'_>,
        ending: Ending,
    ) {
        self.stage.ended(local, scope, flow, ending);
    }

    fn ends_with_run(&self) -> bool {
        self.stage.ends_with_run()
    }

    #[inline]
    fn non_flow(
        &self,
        local: &mut F::Shard,
        scope: &mut Scope<'_>,
        packet: &mut Packet<'_>,
    ) -> Outcome<Verdict> {
        self.stage.non_flow(local, scope, packet)
    }

    fn periodic(&self, local: &mut F::Shard, scope: &mut Scope<'_>) -> Outcome<()> {
        self.stage.periodic(local, scope)
    }

    fn metrics(&self, local: &F::Shard, metrics: &mut Metrics) {
        self.stage.metrics(local, metrics);
    }

    fn shared_metrics(&self, metrics: &mut Metrics) {
        self.stage.shared_metrics(metrics);
    }
}

impl<F: NetworkFunction + fmt::Debug> fmt::Debug for Shared<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("function", &self.stage.function).finish_non_exhaustive()
    }
}
