//! Bytes whose memory a budget is charged with.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::memory::{Mark, MemoryBudget};

/// Bytes that a budget is charged with for as long as they are allocated.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    budget: Option<Arc<MemoryBudget>>,
}

impl Buffer {
    /// Allocates so many bytes, which are zero, in place of those that there are, if the budget has them, and returns the old
    /// ones.
    pub(crate) fn try_replace(&mut self, size: usize, up_to: Mark) -> Option<Box<[u8]>> {
        let old = self.bytes.len();
        if let Some(budget) = &self.budget {
            if size > old && !budget.try_charge(size - old, up_to) {
                return None;
            }
            budget.release(old.saturating_sub(size));
        }
        Some(std::mem::replace(&mut self.bytes, vec![0; size].into_boxed_slice()))
    }

    /// Gives all memory back.
    pub(crate) fn free(&mut self) {
        if let Some(budget) = &self.budget {
            budget.release(self.bytes.len());
        }
        self.bytes = Box::default();
    }

    /// Takes bytes in place of none. The budget is charged with them already.
    pub(crate) fn put(&mut self, bytes: Box<[u8]>) {
        self.bytes = bytes;
    }

    /// Gives the bytes away. The budget stays charged with them.
    pub(crate) fn take(&mut self) -> Box<[u8]> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn is_charged_to(&self, budget: &Arc<MemoryBudget>) -> bool {
        self.budget.as_ref().is_some_and(|own| Arc::ptr_eq(own, budget))
    }

    /// The budget that is charged.
    pub(crate) fn budget(&self) -> Option<&Arc<MemoryBudget>> {
        self.budget.as_ref()
    }

    /// Charges another budget from now on.
    pub(crate) fn move_to(&mut self, budget: Option<Arc<MemoryBudget>>) {
        if let Some(budget) = &budget {
            budget.charge(self.bytes.len());
        }
        if let Some(old) = std::mem::replace(&mut self.budget, budget) {
            old.release(self.bytes.len());
        }
    }

    /// Bytes that one ring should have at most.
    pub(crate) fn affordable(&self) -> usize {
        self.budget.as_ref().map_or(usize::MAX, |budget| budget.affordable())
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.is_exhausted())
    }

    pub(crate) fn is_under_pressure(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.is_under_pressure())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.free();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charged_to(budget: &Arc<MemoryBudget>) -> Buffer {
        let mut buffer = Buffer::default();
        buffer.move_to(Some(budget.clone()));
        buffer
    }

    fn try_set(buffer: &mut Buffer, size: usize, up_to: Mark) -> bool {
        buffer.try_replace(size, up_to).is_some()
    }

    #[test]
    fn a_charge_is_refused_beyond_the_limit_and_given_back_in_the_end() {
        let budget = Arc::new(MemoryBudget::new(60, 100));
        let (mut first, mut second) = (charged_to(&budget), charged_to(&budget));
        assert!(try_set(&mut first, 50, Mark::Limit) && !budget.is_under_pressure());
        assert!(try_set(&mut second, 50, Mark::Limit) && budget.is_under_pressure());
        assert!(!try_set(&mut second, 51, Mark::Limit) && !try_set(&mut first, 51, Mark::Limit));
        assert_eq!((budget.used(), budget.refused()), (100, 2));
        assert!(try_set(&mut first, 10, Mark::Limit) && try_set(&mut second, 90, Mark::Limit));
        drop(first);
        assert_eq!(budget.used(), 90);
        drop(second);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_charge_that_stops_at_pressure_leaves_the_rest() {
        let budget = Arc::new(MemoryBudget::new(60, 100));
        let mut buffer = charged_to(&budget);
        assert!(
            !try_set(&mut buffer, 61, Mark::Pressure) && try_set(&mut buffer, 60, Mark::Pressure)
        );
        assert!(budget.is_under_pressure() && !budget.is_exhausted());
        assert!(try_set(&mut buffer, 100, Mark::Limit) && budget.is_exhausted());
    }

    #[test]
    fn a_part_is_refused_what_the_total_has_not() {
        let total = Arc::new(MemoryBudget::new(80, 100));
        let parts = [(); 2].map(|()| Arc::new(MemoryBudget::within(total.clone(), 90, 90)));
        let mut buffers = [charged_to(&parts[0]), charged_to(&parts[1])];
        assert!(
            try_set(&mut buffers[0], 80, Mark::Limit) && !try_set(&mut buffers[1], 30, Mark::Limit)
        );
        assert_eq!((parts[1].used(), parts[1].refused(), total.refused()), (0, 1, 1));
        assert!(parts[1].is_under_pressure() && try_set(&mut buffers[1], 20, Mark::Limit));
        assert_eq!(total.used(), 100);
    }

    #[test]
    fn what_is_allocated_moves_to_another_budget_even_beyond_its_limit() {
        let budgets = [100, 10].map(|limit| Arc::new(MemoryBudget::new(limit, limit)));
        let mut buffer = charged_to(&budgets[0]);
        assert!(try_set(&mut buffer, 70, Mark::Limit));
        buffer.move_to(Some(budgets[1].clone()));
        assert_eq!((budgets[0].used(), budgets[1].used()), (0, 70));
        assert!(!try_set(&mut buffer, 71, Mark::Limit) && try_set(&mut buffer, 5, Mark::Limit));
        assert_eq!(budgets[1].used(), 5);
    }
}
