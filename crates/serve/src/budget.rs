//! What all connections of a process may have together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rheostat_tcp::MemoryBudget;

use crate::config::ServeConfig;

/// Counts against the bounds of a service. They are the process's and not divided over lanes: connections move between lanes,
/// and a lane must not refuse what another has room for. They change when connections open, close and grow, never per segment.
///
/// Relaxed: the counts publish nothing. Two lanes may both take the last place, so a bound is exceeded by one per lane at most.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: ServeConfig,
    connections: AtomicUsize,
    half_open: AtomicUsize,
    time_wait: AtomicUsize,
    /// For data of all connections. Each shard has a part of it ([`Budget::of_shard`]).
    memory: Arc<MemoryBudget>,
}

/// Why a connection is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Connections,
    Memory,
}

impl Budget {
    pub(crate) fn new(limits: ServeConfig) -> Budget {
        let zero = AtomicUsize::default;
        let memory = Arc::new(MemoryBudget::new(pressure_of(limits.memory), limits.memory));
        Budget { limits, connections: zero(), half_open: zero(), time_wait: zero(), memory }
    }

    /// What a shard's connections may take of the memory. It moves with the shard.
    pub(crate) fn of_shard(&self) -> Arc<MemoryBudget> {
        let limit = self.limits.shard_memory;
        Arc::new(MemoryBudget::within(self.memory.clone(), pressure_of(limit), limit))
    }

    pub(crate) fn limits(&self) -> &ServeConfig {
        &self.limits
    }

    /// Whether there is room for one more half-open connection.
    pub(crate) fn has_room_for_half_open(&self) -> bool {
        self.half_open.load(Ordering::Relaxed) < self.limits.half_open
    }

    /// Takes a place for a half-open connection.
    pub(crate) fn open(&self) {
        add(&self.connections);
        add(&self.half_open);
    }

    /// Takes a place for a connection that was never half-open: this end opens it, so that SYNs of others cannot keep it from that,
    /// or a SYN cookie does.
    pub(crate) fn open_at_once(&self, shard: &MemoryBudget) -> Result<(), Refused> {
        self.check(shard)?;
        add(&self.connections);
        Ok(())
    }

    /// Whether there is room for a connection.
    pub(crate) fn check(&self, shard: &MemoryBudget) -> Result<(), Refused> {
        if self.connections.load(Ordering::Relaxed) >= self.limits.connections {
            return Err(Refused::Connections);
        }
        // Those that are there go first.
        if shard.is_under_pressure() {
            return Err(Refused::Memory);
        }
        Ok(())
    }

    /// The handshake of a connection is done, or has failed.
    pub(crate) fn end_handshake(&self) {
        subtract(&self.half_open, 1);
    }

    /// A connection is gone.
    pub(crate) fn close(&self) {
        subtract(&self.connections, 1);
    }

    /// Takes a place for a connection in TIME-WAIT, if there is one.
    pub(crate) fn enter_time_wait(&self) -> bool {
        let has_room = self.time_wait.load(Ordering::Relaxed) < self.limits.time_wait;
        if has_room {
            add(&self.time_wait);
        }
        has_room
    }

    pub(crate) fn leave_time_wait(&self) {
        subtract(&self.time_wait, 1);
    }

    /// The memory of all connections.
    pub(crate) fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// Connections that are not closed; half-open ones; those in TIME-WAIT.
    pub(crate) fn taken(&self) -> [usize; 3] {
        [&self.connections, &self.half_open, &self.time_wait]
            .map(|count| count.load(Ordering::Relaxed))
    }
}

/// Where memory is scarce: a quarter is left for what peers were promised before.
fn pressure_of(limit: usize) -> usize {
    limit - limit / 4
}

fn add(count: &AtomicUsize) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn subtract(count: &AtomicUsize, amount: usize) {
    let before = count.fetch_sub(amount, Ordering::Relaxed);
    debug_assert!(before >= amount, "what is given back was taken");
}
