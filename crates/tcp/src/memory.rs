//! A budget for the buffers of many connections.
//!
//! Two marks divide it. Below the first, windows and send buffers grow with what programs read and peers acknowledge, each to a
//! quarter of what is left at most. Above it the budget is *under pressure*: a window is not offered beyond memory that is held
//! already, but for a segment if nothing waits to be read; a send buffer grows to one segment at most; empty buffers give their
//! memory back; and the owner accepts no new connections. What peers were promised before still finds memory up to the second
//! mark. There, windows close, and data that finds no memory is not acknowledged, so that the peer sends it again. Marks that are
//! a segment for each connection apart leave that to windows that were promised before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes that buffers may take together, for a shard or in total. Charges are what is allocated.
///
/// Counters are relaxed atomics: connections of one shard charge from one thread, and shares of a total never exceed its limit
/// whatever the order.
#[derive(Debug)]
pub struct MemoryBudget {
    used: AtomicUsize,
    refused: AtomicU64,
    pressure: usize,
    limit: usize,
    total: Option<Arc<MemoryBudget>>,
}

impl MemoryBudget {
    /// A budget of `limit` bytes that is under pressure from `pressure` on.
    pub fn new(pressure: usize, limit: usize) -> MemoryBudget {
        MemoryBudget {
            used: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            pressure,
            limit,
            total: None,
        }
    }

    /// A part of `total`: what is charged here is charged there, too, and either may refuse it.
    pub fn within(total: Arc<MemoryBudget>, pressure: usize, limit: usize) -> MemoryBudget {
        MemoryBudget { total: Some(total), ..MemoryBudget::new(pressure, limit) }
    }

    /// Bytes that are allocated.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that may be allocated.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Allocations that were refused: data that was dropped, or writes that have to wait.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether windows close. New connections should not be accepted then: established ones go first.
    pub fn is_under_pressure(&self) -> bool {
        self.used() >= self.pressure
            || self.total.as_ref().is_some_and(|total| total.is_under_pressure())
    }

    /// Whether more is allocated than the limit, here or in total: what programs hold is charged beyond it.
    pub fn is_exceeded(&self) -> bool {
        self.used() > self.limit || self.total.as_ref().is_some_and(|total| total.is_exceeded())
    }

    /// Charges what is allocated for a purpose now, beyond the limit if it must be; `charged` is what was charged for it before.
    #[inline]
    pub fn recharge(&self, charged: &mut usize, allocated: usize) {
        match allocated.checked_sub(*charged) {
            Some(0) => {}
            Some(more) => self.charge(more),
            None => self.release(*charged - allocated),
        }
        *charged = allocated;
    }

    /// Whether nothing can be allocated.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.used() >= self.limit || self.total.as_ref().is_some_and(|total| total.is_exhausted())
    }

    /// What a buffer may grow to: a quarter of what is left before there is pressure, so that several can grow, and each less the
    /// less there is.
    pub(crate) fn affordable(&self) -> usize {
        let own = self.pressure.saturating_sub(self.used()) / 4;
        self.total.as_ref().map_or(own, |total| own.min(total.affordable()))
    }

    pub(crate) fn try_charge(&self, bytes: usize, up_to: Mark) -> bool {
        let most = match up_to {
            Mark::Pressure => self.pressure.min(self.limit),
            Mark::Limit => self.limit,
        };
        let add = |used: usize| used.checked_add(bytes).filter(|used| *used <= most);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        if self.total.as_ref().is_none_or(|total| total.try_charge(bytes, up_to)) {
            return true;
        }
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.refused.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Charges what is allocated already, beyond the limit if it must be.
    pub fn charge(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        if let Some(total) = &self.total {
            total.charge(bytes);
        }
    }

    /// Takes back what was charged.
    pub fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(total) = &self.total {
            total.release(bytes);
        }
    }
}

/// How far a charge may fill a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Pressure,
    Limit,
}
