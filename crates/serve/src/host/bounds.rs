//! Bounds that lanes share, and what is in use of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::HostConfig;
use crate::config::ServeConfig;

/// The bounds of a service, with the connections and bytes in use by all lanes.
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) limits: ServeConfig,
    pub(super) idle_timeout: Duration,
    pub(super) request_timeout: Option<Duration>,
    connections: AtomicUsize,
    bytes: AtomicUsize,
}

impl Bounds {
    pub(super) fn new(config: &HostConfig) -> Bounds {
        Bounds {
            limits: config.limits,
            idle_timeout: config.idle_timeout,
            request_timeout: config.request_timeout,
            connections: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        }
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Bytes that all connections take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes the place of one connection more, if there is one, and less than three quarters of the memory are in use.
    pub(super) fn admit(&self) -> bool {
        if self.bytes.load(Ordering::Relaxed) > self.limits.memory / 4 * 3 {
            return false;
        }
        let most = self.limits.connections;
        let more = |count: usize| (count < most).then_some(count + 1);
        self.connections.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    pub(super) fn release(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes that a connection takes `now` bytes in place of `before`. Returns whether all together stay within the memory.
    pub(super) fn account(&self, before: usize, now: usize) -> bool {
        let others = match now >= before {
            true => self.bytes.fetch_add(now - before, Ordering::Relaxed) + (now - before),
            false => self.bytes.fetch_sub(before - now, Ordering::Relaxed) - (before - now),
        };
        now <= before || others <= self.limits.memory
    }
}
