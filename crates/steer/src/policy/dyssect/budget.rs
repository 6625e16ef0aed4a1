//! A bound on time that needs no clock.

/// How many steps a search may still take. A step looks at one change of an assignment, which is
/// some ten nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    left: u64,
    spent: u64,
}

impl Budget {
    /// So many steps.
    pub const fn steps(steps: u64) -> Budget {
        Budget { left: steps, spent: 0 }
    }

    /// How many steps [`Budget::default`] is.
    pub const fn default_steps() -> u64 {
        50_000
    }

    /// Takes steps off; false once there are none left.
    pub(super) fn spend(&mut self, steps: usize) -> bool {
        let steps = steps as u64;
        let enough = steps <= self.left;
        self.left = self.left.saturating_sub(steps);
        self.spent = self.spent.saturating_add(steps);
        enough
    }

    /// Takes a part of what is left off, for a search that may not use up all.
    pub(super) fn part(&mut self, of: u64) -> Budget {
        let steps = self.left.div_ceil(of.max(1));
        self.left -= steps;
        Budget::steps(steps)
    }

    /// Returns what a search has left of its part.
    pub(super) fn back(&mut self, part: Budget) {
        self.left += part.left;
        self.spent = self.spent.saturating_add(part.spent);
    }

    /// Whether there are none left.
    pub(super) fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// Steps taken so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }
}

impl Default for Budget {
    /// About half a millisecond.
    fn default() -> Budget {
        Budget::steps(Budget::default_steps())
    }
}
