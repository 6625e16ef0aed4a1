//! A budget for the buffers of many connections.
//!
//! Two marks divide it. Below the first, windows and send buffers grow with what programs read and peers acknowledge. Above it the
//! budget is *under pressure*: a window is not offered beyond memory that is held already, but for a segment if nothing waits to
//! be read; a send buffer grows to one segment at most; empty buffers give their memory back; and the owner accepts no new
//! connections. What peers were promised before still finds memory up to the second mark. There, windows close, and data that
//! finds no memory is not acknowledged, so that the peer sends it again. Marks that are a segment for each connection apart leave
//! that to windows that were promised before.

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

    /// Whether nothing can be allocated.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.used() >= self.limit || self.total.as_ref().is_some_and(|total| total.is_exhausted())
    }

    fn try_charge(&self, bytes: usize, up_to: Mark) -> bool {
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

/// What one buffer has been charged, given back when it goes.
#[derive(Debug, Default)]
pub(crate) struct Charge {
    budget: Option<Arc<MemoryBudget>>,
    bytes: usize,
}

impl Charge {
    /// Charges so many bytes in place of what was charged. Returns whether the budget has them.
    pub(crate) fn try_set(&mut self, bytes: usize, up_to: Mark) -> bool {
        if let Some(budget) = &self.budget {
            if bytes > self.bytes && !budget.try_charge(bytes - self.bytes, up_to) {
                return false;
            }
            budget.release(self.bytes.saturating_sub(bytes));
        }
        self.bytes = bytes;
        true
    }

    pub(crate) fn budget(&self) -> Option<Arc<MemoryBudget>> {
        self.budget.clone()
    }

    /// Charges another budget from now on.
    pub(crate) fn move_to(&mut self, budget: Option<Arc<MemoryBudget>>) {
        if let Some(budget) = &budget {
            budget.charge(self.bytes);
        }
        if let Some(old) = std::mem::replace(&mut self.budget, budget) {
            old.release(self.bytes);
        }
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.is_exhausted())
    }

    pub(crate) fn is_under_pressure(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.is_under_pressure())
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.release(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge_to(budget: &Arc<MemoryBudget>) -> Charge {
        let mut charge = Charge::default();
        charge.move_to(Some(budget.clone()));
        charge
    }

    #[test]
    fn a_charge_is_refused_beyond_the_limit_and_given_back_in_the_end() {
        let budget = Arc::new(MemoryBudget::new(60, 100));
        let (mut first, mut second) = (charge_to(&budget), charge_to(&budget));
        assert!(first.try_set(50, Mark::Limit) && !budget.is_under_pressure());
        assert!(second.try_set(50, Mark::Limit) && budget.is_under_pressure());
        assert!(!second.try_set(51, Mark::Limit) && !first.try_set(51, Mark::Limit));
        assert_eq!((budget.used(), budget.refused()), (100, 2));
        assert!(first.try_set(10, Mark::Limit) && second.try_set(90, Mark::Limit));
        drop(first);
        assert_eq!(budget.used(), 90);
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_charge_that_stops_at_pressure_leaves_the_rest() {
        let budget = Arc::new(MemoryBudget::new(60, 100));
        let mut charge = charge_to(&budget);
        assert!(!charge.try_set(61, Mark::Pressure) && charge.try_set(60, Mark::Pressure));
        assert!(budget.is_under_pressure() && !budget.is_exhausted());
        assert!(charge.try_set(100, Mark::Limit) && budget.is_exhausted());
    }

    #[test]
    fn a_part_is_refused_what_the_total_has_not() {
        let total = Arc::new(MemoryBudget::new(80, 100));
        let parts = [(); 2].map(|()| Arc::new(MemoryBudget::within(total.clone(), 90, 90)));
        let mut charges = [charge_to(&parts[0]), charge_to(&parts[1])];
        assert!(charges[0].try_set(80, Mark::Limit) && !charges[1].try_set(30, Mark::Limit));
        assert_eq!((parts[1].used(), parts[1].refused(), total.refused()), (0, 1, 1));
        assert!(parts[1].is_under_pressure() && charges[1].try_set(20, Mark::Limit));
        assert_eq!(total.used(), 100);
    }

    #[test]
    fn what_is_allocated_moves_to_another_budget_even_beyond_its_limit() {
        let budgets = [100, 10].map(|limit| Arc::new(MemoryBudget::new(limit, limit)));
        let mut charge = charge_to(&budgets[0]);
        assert!(charge.try_set(70, Mark::Limit));
        charge.move_to(Some(budgets[1].clone()));
        assert_eq!((budgets[0].used(), budgets[1].used()), (0, 70));
        assert!(!charge.try_set(71, Mark::Limit) && charge.try_set(5, Mark::Limit));
        assert_eq!(budgets[1].used(), 5);
    }
}
