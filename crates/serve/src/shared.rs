//! What all lanes of a service share, and how it is steered from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rheostat_base::LaneId;
use rheostat_tcp::{InitialNumbers, MemoryBudget};

use crate::budget::Budget;
use crate::config::{ListenerConfig, ServeConfig};
use crate::counters::{Counters, Totals};

/// What all lanes of a service share.
pub(crate) struct Shared {
    pub(crate) budget: Budget,
    pub(crate) numbers: InitialNumbers,
    pub(crate) listeners: Vec<ListenerConfig>,
    counters: Vec<Arc<Counters>>,
    /// What the connections of each shard may take.
    pub(crate) shards: Mutex<Vec<Arc<MemoryBudget>>>,
    /// Publishes nothing: every lane looks at it now and then.
    draining: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Shared {
        Shared {
            budget: Budget::new(limits),
            numbers: InitialNumbers::new(secret),
            listeners,
            counters: (0..lanes).map(|_| Arc::default()).collect(),
            shards: Mutex::default(),
            draining: AtomicBool::new(false),
        }
    }

    pub(crate) fn limits(&self) -> &ServeConfig {
        self.budget.limits()
    }

    pub(crate) fn counters(&self, lane: LaneId) -> Arc<Counters> {
        self.counters[lane.index()].clone()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// Looks at a running service from outside, and ends it.
#[derive(Clone)]
pub struct ServeControl(pub(crate) Arc<Shared>);

impl ServeControl {
    /// Ends the service in good order: listeners refuse connections, those that are idle are closed, and the others when the
    /// request at hand is answered. Lanes notice within half a second.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    /// Connections that are not closed, half-open ones included.
    pub fn connections(&self) -> usize {
        self.0.budget.taken()[0]
    }

    /// Closed connections in TIME-WAIT.
    pub fn time_wait(&self) -> usize {
        self.0.budget.taken()[2]
    }

    /// Bytes allocated for data of connections.
    pub fn memory(&self) -> usize {
        self.0.budget.memory().used()
    }

    /// Bytes allocated for data of each shard's connections, without what applications are in the middle of.
    pub fn shard_memory(&self) -> Vec<usize> {
        let shards = self.0.shards.lock().unwrap_or_else(PoisonError::into_inner);
        shards.iter().map(|shard| shard.used()).collect()
    }

    /// Whether memory is scarce: windows close, and SYNs are dropped.
    pub fn is_under_pressure(&self) -> bool {
        self.0.budget.memory().is_under_pressure()
    }

    /// Allocations for data that were refused, by shards and in total: the peer sends again, or the application waits.
    pub fn memory_refused(&self) -> u64 {
        let shards = self.0.shards.lock().unwrap_or_else(PoisonError::into_inner);
        // What the total refuses, the shard that wanted it counts, too.
        shards.iter().map(|shard| shard.refused()).sum()
    }

    /// What all lanes have counted.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.0.counters.iter().for_each(|lane| totals.add(lane));
        totals
    }
}

impl std::fmt::Debug for ServeControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeControl").field("connections", &self.connections()).finish()
    }
}
