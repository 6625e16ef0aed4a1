//! Where a function keeps its state beside flows, and so how its handlers run.

use std::fmt;

use rheostat_state::txn::Objects;

use crate::function::{NetworkFunction, NoShardState};

/// How the handlers of an `F` run: [`Owned`] or [`OnObjects`].
pub trait Mode<F: NetworkFunction>: fmt::Debug + Send + Sync + Sized + 'static {
    /// Whether handlers run in transactions on objects that all lanes share.
    const SHARED: bool = true;

    /// The mode of a function whose own objects were made with `objects`.
    fn of(objects: &Objects) -> Self;

    /// The objects of a function on shared objects.
    fn objects(&self) -> Option<&Objects>;

    /// A copy of a flow's state that replaces it when a transaction is undone.
    fn copy(flow: &F::Flow) -> Option<F::Flow>;

    /// The state of every shard, if shards keep nothing.
    fn no_shard() -> Option<&'static F::Shard>;
}

/// State per shard: the lane that owns a shard runs handlers on it, each once.
#[derive(Clone, Copy, Debug)]
pub struct Owned;

impl<F: NetworkFunction> Mode<F> for Owned {
    const SHARED: bool = false;

    fn of(_: &Objects) -> Owned {
        Owned
    }

    fn objects(&self) -> Option<&Objects> {
        None
    }

    fn copy(_: &F::Flow) -> Option<F::Flow> {
        None
    }

    fn no_shard() -> Option<&'static F::Shard> {
        None
    }
}

/// State in objects that all lanes share: handlers run in transactions, again while these conflict.
pub struct OnObjects(Objects);

impl<F: NetworkFunction<Shard: NoShardState>> Mode<F> for OnObjects
where
    F::Flow: Clone,
{
    fn of(objects: &Objects) -> OnObjects {
        OnObjects(objects.clone())
    }

    fn objects(&self) -> Option<&Objects> {
        Some(&self.0)
    }

    fn copy(flow: &F::Flow) -> Option<F::Flow> {
        Some(flow.clone())
    }

    fn no_shard() -> Option<&'static F::Shard> {
        Some(F::Shard::NONE)
    }
}

impl fmt::Debug for OnObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnObjects")
    }
}
