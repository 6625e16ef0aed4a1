//! Imbalance that comes back by itself.

use super::super::{Plan, Reason, SquaredLoad};

/// How much more imbalance a plan finds than the one before had left, on average: what fluctuates from period to period,
/// and what no plan can do away with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returning {
    /// What the last plan has left, where that is known.
    left: Option<SquaredLoad>,
    /// Of the last plans, each of which counts half of what the next one counts. Nothing before the second.
    pub(super) mean: SquaredLoad,
}

impl Returning {
    /// A plan is to be made where this is the squared imbalance.
    pub(super) fn found(&mut self, squared: SquaredLoad) {
        if let Some(left) = self.left.take() {
            self.mean = squared.beyond(left).mean(self.mean);
        }
    }

    /// It was made, where this was the squared imbalance.
    pub(super) fn planned(&mut self, before: SquaredLoad, plan: &Plan) {
        let after = plan.why.iter().find_map(|reason| match reason {
            Reason::Rebalanced { after, .. } => Some(*after),
            _ => None,
        });
        // Other lanes take part from now on, and their imbalance is another.
        let changed = !(plan.wake.is_empty() && plan.park.is_empty());
        self.left = (!changed).then(|| after.unwrap_or(before));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Load;

    fn squared(percent: u64) -> SquaredLoad {
        SquaredLoad::of(Load::FULL, Load::from_percent(percent))
    }

    #[test]
    fn what_comes_back_is_what_is_found_beyond_what_was_left() {
        let mut returning = Returning::default();
        returning.found(squared(40));
        assert_eq!(returning.mean, squared(0), "it may have been there all the time");
        let why = Reason::Rebalanced {
            mean: Load::FULL,
            before: squared(40),
            after: squared(4),
            steps: 1,
        };
        let plan = Plan { why: vec![why], ..Plan::default() };
        returning.planned(squared(40), &plan);
        returning.found(squared(12));
        assert_eq!(returning.mean, squared(4));
        returning.planned(squared(12), &Plan::default());
        returning.found(squared(8));
        assert_eq!(returning.mean, squared(2), "less than was left");
        let park = Plan { park: vec![rheostat_base::LaneId(1)], ..Plan::default() };
        returning.planned(squared(8), &park);
        returning.found(squared(50));
        assert_eq!(returning.mean, squared(2), "lanes changed");
    }
}
