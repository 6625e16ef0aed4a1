//! What a plan cannot meet, by name.

use std::time::Duration;

use super::super::{Constraint, Violation};
use super::Dyssect;
use super::situation::Situation;
use crate::policy::{Class, HeavyFlow, Load, LoadSnapshot, Reason};

impl Dyssect {
    /// Names objectives that are missed on all lanes there are, and flows that no lane could take.
    pub(super) fn name_missed(
        &self,
        load: &LoadSnapshot,
        situation: &Situation,
        left: &[Violation],
        why: &mut Vec<Reason>,
    ) {
        let worst = |constraint| {
            let of = left.iter().filter(|violation| violation.constraint == constraint);
            of.map(|violation| violation.excess).max_by(f64::total_cmp)
        };
        let stricter = situation.working.wait.map(|wait| wait.objective);
        let of_priority = stricter.is_some_and(|limit| {
            let service = Duration::ZERO;
            self.objectives
                .waiting_limit(Class::Priority, service)
                .is_some_and(|most| limit <= most)
        });
        let working = if of_priority { Class::Priority } else { Class::Regular };
        let missed = [
            (worst(Constraint::WorkingWait), working),
            (worst(Constraint::OffloadingWait), Class::Regular),
        ];
        for (excess, class) in missed {
            let Some(excess) = excess else { continue };
            let by = Duration::try_from_secs_f64(excess).unwrap_or(Duration::MAX);
            why.push(Reason::ObjectiveMissed { class, by });
        }
        if let Some(excess) = worst(Constraint::WorkingBelowFull) {
            let excess = Load::from_share(excess).unwrap_or(Load::MAX);
            why.push(Reason::LanesFull { excess });
        }
        let most = situation.offloading.transient().max(situation.working.transient());
        let heaviest = load.heavy().iter().max_by_key(|flow| (flow.load, flow.shard));
        if let Some(&HeavyFlow { shard, load }) = heaviest.filter(|flow| flow.load > most) {
            why.push(Reason::HeavyFlow { shard, load, most });
        }
    }
}
