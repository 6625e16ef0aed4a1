//! The policy `dyssect`: control on two timescales (Algorithm 5.1 of the thesis).

mod changes;
mod long_period;
mod missed;
mod readiness;
mod short_period;
mod situation;

use std::time::Duration;

use rheostat_base::{LaneId, Time};

use self::situation::Situation;
use super::correction::Corrections;
use super::queue_model::{QueueFigures, learn};
use super::trend::Trend;
use super::{Budget, Counts};
use crate::policy::balancing::parking;
use crate::policy::{
    Class, LaneState, Load, LoadSnapshot, LocalSearch, Objectives, Offloads, Plan, Policy,
    PolicyFacts, PolicyRegistration, Prediction, PredictionLog, Reason, Scaling, Settings,
    SquaredLoad, scaling,
};

pub(in crate::policy) const REGISTRATION: PolicyRegistration = PolicyRegistration {
    name: "dyssect",
    summary: "for latency objectives",
    facts: PolicyFacts { plans_offloading: true, serves: false, ..PolicyFacts::MOVES_SHARDS },
    make: &|settings| Box::new(Dyssect::with_settings(settings)),
};

/// What the short period is after, with the numbers of lanes that the long period has set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// As few changes as the objectives allow (Table 5.3).
    FewestChanges,
    /// Loads as even as can be (Table 5.4); a change has to lower the sum of squares by more than this.
    Balance(SquaredLoad),
}

/// Dyssect (thesis, chapter 5): as few lanes as the objectives allow every long period, as few changes as they allow
/// every short one, and flows that leave for offloading lanes where shards are too coarse.
///
/// What a lane may have follows from what lanes measured: Kingman's formula with an exponential tail, corrected by what
/// came of earlier predictions. Where nothing was measured or asked for, only `highest` limits lanes.
#[derive(Clone, Debug)]
pub struct Dyssect {
    /// What latencies packets may have.
    pub objectives: Objectives,
    /// So many lanes may offload; none where flows cannot leave their lanes.
    pub offloading: usize,
    /// A lane is taken away only where the others keep this much below `highest`.
    pub reserve: Load,
    /// No lane is taken away while so many or fewer run, as with the other policies.
    pub keep: usize,
    /// An offloading lane serves at least so many working lanes (2 in the thesis).
    pub min_working_per_offloading: usize,
    /// u_max: what lanes may have at most while their number is open.
    pub highest: Load,
    /// When a lane has too much, this share of what lanes may have is kept free, so that the next fluctuation does not make
    /// another change.
    pub margin: Load,
    /// What the short period is after.
    pub goal: Goal,
    /// ε.
    pub short: Duration,
    /// τ.
    pub long: Duration,
    /// How many lanes work and offload, where the long period is not to set it.
    pub fixed: Option<Counts>,
    /// Steps that each model may take: 50,000 are about half a millisecond.
    pub steps: u64,
    /// At most one part in so many of the time may go into rewriting the device's table.
    pub rewrite_one_in: u32,
    /// What plans when there is nothing to offload and bounds are to be met.
    fallback: LocalSearch,
    /// The numbers of lanes that the long period has set.
    counts: Option<Counts>,
    long_due: Time,
    /// The long period before found that fewer lanes would do.
    shrinking: bool,
    /// The short period before did not meet the objectives.
    missed: bool,
    /// No shard moves until then.
    rewrite_due: Time,
    trend: Trend,
    corrections: Corrections,
    /// What the last plan predicted, by lane and class.
    expected: Vec<[Option<Duration>; Class::ALL.len()]>,
    log: PredictionLog,
}

impl Default for Dyssect {
    fn default() -> Dyssect {
        Dyssect {
            objectives: Objectives::NONE,
            offloading: 0,
            reserve: Scaling::default().reserve,
            keep: Scaling::default().keep,
            min_working_per_offloading: 2,
            highest: Scaling::default().target,
            margin: Load::from_percent(5),
            goal: Goal::FewestChanges,
            short: Duration::from_millis(100),
            long: Duration::from_secs(1),
            fixed: None,
            steps: Budget::default_steps(),
            rewrite_one_in: 10,
            fallback: LocalSearch::default(),
            counts: None,
            long_due: Time::ZERO,
            shrinking: false,
            missed: false,
            rewrite_due: Time::ZERO,
            trend: Trend::default(),
            corrections: Corrections::default(),
            expected: Vec::new(),
            log: PredictionLog::default(),
        }
    }
}

impl Policy for Dyssect {
    fn name(&self) -> &'static str {
        "dyssect"
    }

    fn plan(&mut self, now: Time, load: &LoadSnapshot) -> Plan {
        self.observe(now, load);
        let plan = match Situation::of(self, load) {
            Some(situation) if self.fits_bounds(load) => self.solve(now, load, &situation),
            _ => self.within_bounds(now, load),
        };
        self.expect(load, &plan);
        plan
    }

    fn period(&self) -> Duration {
        self.short
    }

    fn predictions(&self) -> Option<&PredictionLog> {
        Some(&self.log)
    }
}

impl Dyssect {
    /// The policy for lanes that may be loaded as `scaling` states. Its target limits each lane, not only their mean.
    pub fn with_scaling(scaling: Scaling) -> Dyssect {
        let Scaling { target, reserve, keep } = scaling;
        let fallback = LocalSearch { scaling, ..LocalSearch::default() };
        Dyssect { highest: target, reserve, keep, fallback, ..Dyssect::default() }
    }

    /// The policy for these objectives, lanes and numbers of offloading lanes.
    fn with_settings(settings: &Settings) -> Dyssect {
        let Settings { scaling, objectives, offloading, min_working_per_offloading } = *settings;
        let mut policy = Dyssect::with_scaling(scaling);
        (policy.objectives, policy.offloading) = (objectives, offloading);
        if min_working_per_offloading > 0 {
            policy.min_working_per_offloading = min_working_per_offloading;
        }
        policy
    }

    /// Compares what was predicted with what came of it, and learns.
    fn observe(&mut self, now: Time, load: &LoadSnapshot) {
        let rests = |lane: LaneId| load.rests(lane, now);
        for (lane, expected) in (0..).map(LaneId).zip(&self.expected) {
            for class in Class::ALL {
                let waits = load.class(lane, class).and_then(|class| class.waits);
                let expected = expected[class.index()].filter(|_| !rests(lane));
                let Some((predicted, waits)) = expected.zip(waits) else { continue };
                let (measured, samples) = (waits.tail, waits.samples);
                let (at, log) = (now, &mut self.log);
                log.add(Prediction { at, lane, class, predicted, measured, samples });
            }
        }
        learn(&mut self.corrections, load, &self.objectives, rests);
    }

    /// Predicts what comes of a plan.
    fn expect(&mut self, load: &LoadSnapshot, plan: &Plan) {
        self.expected.clear();
        let Ok(after) = load.after(plan) else { return };
        let all = QueueFigures::of(load, load.active());
        for lane in (0..load.lanes().len() as u16).map(LaneId) {
            let works = after.lanes()[lane.index()].state != LaneState::Parked;
            let figures = QueueFigures::of(load, std::iter::once(lane)).or(all);
            self.expected.push(Class::ALL.map(|class| {
                let factor = self.corrections.factor(lane.index(), class);
                let model = figures.filter(|_| works)?.model(&self.objectives, class, factor)?;
                Duration::try_from_secs_f64(model.wait(after.load(lane))).ok()
            }));
        }
    }

    /// Whether the bounds allow what runs now, and there are shards for as many lanes as they demand.
    fn fits_bounds(&self, load: &LoadSnapshot) -> bool {
        let (working, offloading) = (load.active().count(), load.offloading().count());
        let bounds = load.bounds();
        if load.shards().len() < bounds.min {
            return false;
        }
        let lanes = (bounds.min..=bounds.max).contains(&(working + offloading));
        lanes && offloading <= self.offloading
    }

    /// Bounds first, as other policies meet them: flows come home, then lanes are woken or parked.
    fn within_bounds(&mut self, now: Time, load: &LoadSnapshot) -> Plan {
        self.counts = None;
        let mut plan = match scaling::within_bounds(load) {
            Some(change) if !change.park.is_empty() => parking(now, load, change),
            Some(change) => {
                Plan { wake: change.wake, why: change.why.into_iter().collect(), ..Plan::default() }
            }
            None => self.fallback.plan(now, load),
        };
        if !load.offloads().is_none() {
            plan.offloads = Some(Offloads::none(load.lanes().len(), load.shards().len()));
        }
        plan
    }

    fn solve(&mut self, now: Time, load: &LoadSnapshot, situation: &Situation) -> Plan {
        let mut why = Vec::new();
        for &class in &situation.out_of_reach {
            let limit = self.objectives.of(class).unwrap_or_default();
            why.push(Reason::OutOfReach { class, limit });
        }
        let present = situation.previous.counts();
        let long = now >= self.long_due || self.missed || self.counts.is_none();
        if long {
            self.set_counts(now, load, situation, &mut why);
        }
        let counts = self.counts.unwrap_or(present);
        let mut answer = self.short(load, situation, counts, &mut why);
        if !long && answer.as_ref().is_some_and(|(_, left)| !left.is_empty()) {
            // These lanes do not do: more of them, now.
            self.set_counts(now, load, situation, &mut why);
            let counts = self.counts.unwrap_or(present);
            answer = self.short(load, situation, counts, &mut why);
        }
        if long && answer.is_none() {
            answer = self.prepare(load, situation, counts, &mut why);
        }
        let Some((assignment, left)) = answer else {
            return Plan { why, ..Plan::default() };
        };
        self.missed = !left.is_empty();
        self.name_missed(load, situation, &left, &mut why);
        let mut plan = self.changes(load, situation, &assignment);
        if !plan.moves.is_empty()
            && let Some(took) = load.rewrite()
        {
            if now < self.rewrite_due {
                why.push(Reason::RewriteCosts { took });
                return Plan { why, ..Plan::default() };
            }
            self.rewrite_due = now + took * self.rewrite_one_in;
        }
        plan.why = why;
        plan
    }
}

#[cfg(test)]
mod tests;
