//! One handler called by itself, for tests of functions.

mod usual_info;

use rheostat_base::{ShardId, Time};
use rheostat_packet::PoolCache;

pub use self::usual_info::usual_info;

use crate::cx::{Cx, Outbox, Requests, Scope};

/// Requests of a handler for the flow of its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requested {
    /// The flow's deadline, if the handler set one.
    pub deadline: Option<Time>,
    /// Whether the flow may make room for another, if the handler decided about it.
    pub evictable: Option<bool>,
    /// Whether the flow ends.
    pub close: bool,
}

/// Calls `handler` at `now`, in the first shard, whose state is `state`. Returns its result, and its requests. Packets that it
/// makes are freed.
pub fn call<S, T>(
    now: Time,
    state: &mut S,
    pool: &mut PoolCache,
    handler: impl FnOnce(&mut Cx<'_, S>) -> T,
) -> (T, Requested) {
    let (mut requests, mut outbox) = (Requests::default(), Outbox::default());
    let start = outbox.mark();
    let mut scope = Scope {
        now,
        shard: ShardId(0),
        requests: &mut requests,
        outbox: &mut outbox,
        pool,
        flows: None,
    };
    let result = handler(&mut scope.cx(state));
    outbox.go_back_to(start, pool);
    let Requests { deadline, evictable, close, .. } = requests;
    (result, Requested { deadline, evictable, close })
}
