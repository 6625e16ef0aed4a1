//! The long period: how many lanes there should be.

use rheostat_base::Time;

use super::super::{Budget, Counts, fewest_lanes};
use super::Dyssect;
use super::situation::Situation;
use crate::policy::{Load, LoadSnapshot, Reason};

impl Dyssect {
    /// Sets how many lanes there should be.
    pub(super) fn set_counts(
        &mut self,
        now: Time,
        load: &LoadSnapshot,
        situation: &Situation,
        why: &mut Vec<Reason>,
    ) {
        let on_time = now >= self.long_due;
        if on_time {
            self.long_due = now + self.long;
            self.trend.note(now, situation.demands.iter().map(|demand| demand.load).sum());
        }
        if self.fixed.is_some() {
            self.counts = self.fixed;
            return;
        }
        let growth = self.trend.growth(self.long);
        let bounds = load.bounds();
        let lanes = bounds.max;
        let present = situation.previous.counts();
        let Some(problem) = situation.problem(self, lanes, growth, Load::FULL) else { return };
        let answer = fewest_lanes(&problem, Budget::steps(self.steps));
        // Lanes go only where the others keep a reserve, or the next fluctuation brings them back.
        let reserved = 1.0 + self.reserve.share() / self.highest.share().max(0.1);
        let answer = match situation.problem(self, lanes, growth * reserved, Load::FULL) {
            Some(problem) if answer.counts.lanes() < present.lanes() => {
                fewest_lanes(&problem, Budget::steps(self.steps))
            }
            _ => answer,
        };
        let offloading = answer.counts.offloading.min(self.offloading);
        let keep = self.keep.min(bounds.max).min(present.lanes());
        let lanes = answer.counts.lanes().max(bounds.min).max(keep);
        let working = (lanes - offloading).clamp(1, situation.demands.len());
        let mut counts = Counts { working, offloading };
        // Fewer lanes only when two long periods in turn agree; never because the short one has failed.
        let fewer = counts.lanes() < present.lanes();
        if fewer && !(on_time && std::mem::replace(&mut self.shrinking, true)) {
            counts = self.counts.filter(|old| old.lanes() >= counts.lanes()).unwrap_or(present);
        } else if !fewer {
            self.shrinking = false;
        }
        if problem.check_counts(counts).is_err() {
            counts = Counts { working: counts.lanes().min(situation.demands.len()), offloading: 0 };
        }
        if self.counts != Some(counts) {
            let Counts { working, offloading } = counts;
            let ahead = growth > 1.0;
            why.push(Reason::LaneCounts { working, offloading, bound: answer.bound, ahead });
        }
        self.counts = Some(counts);
    }
}
