//! The policy `dyssect`: control on two timescales (Algorithm 5.1 of the thesis).

use std::time::Duration;

use rheostat_base::{LaneId, Time};

use super::super::balancing::parking;
use super::super::{
    Class, HeavyFlow, Load, LoadSnapshot, LocalSearch, Move, MoveReason, Objectives, Offloads,
    Plan, Policy, Prediction, PredictionLog, Reason, Scaling, SquaredLoad, pick_flows, scaling,
};
use super::correction::Corrections;
use super::queue_model::{QueueFigures, learn, limit};
use super::trend::Trend;
use super::{
    BalanceGoal, Budget, Constraint, Counts, FlowAssignment, LaneLimit, LaneRole, LaneSetting,
    Model, Problem, ShardDemand, Violation, balance, fewest_changes, fewest_lanes, violations,
};
use crate::policy::LaneState;

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

/// A lane with this much load is taken for full.
const FULL: Load = Load::from_percent(97);

/// What a plan is made from.
struct Situation {
    demands: Vec<ShardDemand>,
    previous: FlowAssignment,
    working: LaneLimit,
    offloading: LaneLimit,
    /// Classes whose objectives no load would meet.
    out_of_reach: Vec<Class>,
}

impl Situation {
    /// `None` where there is no shard to plan for.
    fn of(policy: &Dyssect, load: &LoadSnapshot) -> Option<Situation> {
        if load.shards().is_empty() {
            return None;
        }
        let by = (&policy.objectives, &policy.corrections);
        let working: Vec<LaneId> = load.active().collect();
        let mut offloading: Vec<LaneId> = load.offloading().collect();
        if QueueFigures::of(load, offloading.iter().copied()).is_none() {
            offloading.clone_from(&working);
        }
        let highest = policy.highest.min(Load::FULL);
        let (working, no_priority) = limit(load, by, (&working, &Class::ALL), highest);
        let (offloading, no_regular) = limit(load, by, (&offloading, &[Class::Regular]), highest);
        let mut out_of_reach: Vec<Class> = no_priority.into_iter().chain(no_regular).collect();
        out_of_reach.dedup();
        let demands = demands(load, policy.offloading > 0);
        Some(Situation { demands, previous: previous(load), working, offloading, out_of_reach })
    }

    /// The problem on `lanes` lanes, with loads and capacities times these factors.
    fn problem(&self, policy: &Dyssect, lanes: usize, growth: f64, room: Load) -> Option<Problem> {
        let grown = |load: Load| Load::from_share(load.share() * growth).unwrap_or(Load::MAX);
        let demand = |demand: &ShardDemand| {
            let load = grown(demand.load);
            ShardDemand { load, may_leave: grown(demand.may_leave).min(load) }
        };
        let limit = |limit: LaneLimit| {
            let wait = limit.wait.map(|wait| {
                let objective = wait.objective.mul_f64(room.share());
                super::WaitModel { objective, ..wait }
            });
            LaneLimit { wait, highest: limit.highest }
        };
        let setting = LaneSetting {
            lanes,
            working: limit(self.working),
            offloading: limit(self.offloading),
            min_working_per_offloading: policy.min_working_per_offloading.max(1),
        };
        Problem::new(self.demands.iter().map(demand).collect(), setting).ok()
    }
}

/// The work of each shard. What lanes do for none of their shards, such as handing flows over, is spread over these by
/// their load: it goes with them. A full lane drops what it cannot do, so that its shards need more than they were seen to
/// take; a quarter more is assumed, and the next plan sees whether that was enough.
fn demands(load: &LoadSnapshot, may_leave: bool) -> Vec<ShardDemand> {
    let mut sums = vec![Load::ZERO; load.lanes().len()];
    for shard in load.shards() {
        sums[shard.owner.index()] += shard.load;
    }
    let leaving = load.may_leave().into_iter();
    let demands = load.shards().iter().zip(leaving).map(|(shard, leaving)| {
        let lane = shard.owner.index();
        let other = load.lanes()[lane].other;
        let own = shard.load.nanos_per_second();
        let full = load.load(shard.owner) >= FULL;
        let seen = shard.load + other.part(own, sums[lane].nanos_per_second());
        let load = if full { seen + seen.part(1, 4) } else { seen };
        ShardDemand { load, may_leave: if may_leave { leaving.min(load) } else { Load::ZERO } }
    });
    demands.collect()
}

/// What there is.
fn previous(load: &LoadSnapshot) -> FlowAssignment {
    let role = |state| match state {
        LaneState::Active => LaneRole::Working,
        LaneState::Offloading => LaneRole::Offloading,
        LaneState::Parked => LaneRole::Idle,
    };
    FlowAssignment {
        roles: load.lanes().iter().map(|lane| role(lane.state)).collect(),
        home: load.shards().iter().map(|shard| shard.owner).collect(),
        links: load.offloads().links.clone(),
        offloaded: load.offloads().shares.clone(),
    }
}

impl Dyssect {
    /// The policy for lanes that may be loaded as `scaling` states. Its target limits each lane, not only their mean.
    pub fn with_scaling(scaling: Scaling) -> Dyssect {
        let Scaling { target, reserve, keep } = scaling;
        let fallback = LocalSearch { scaling, ..LocalSearch::default() };
        Dyssect { highest: target, reserve, keep, fallback, ..Dyssect::default() }
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

    /// The long period: how many lanes there should be.
    fn set_counts(
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

    /// The short period: an assignment with these numbers of lanes, and what it violates; `None` if all stays as it is.
    fn short(
        &self,
        load: &LoadSnapshot,
        situation: &Situation,
        counts: Counts,
        why: &mut Vec<Reason>,
    ) -> Option<(FlowAssignment, Vec<Violation>)> {
        let lanes = load.lanes().len();
        let exact = situation.problem(self, lanes, 1.0, Load::FULL)?;
        let (model, previous) = (Model::FewestChanges(counts), &situation.previous);
        let before = violations(&exact, model, previous);
        let budget = Budget::steps(self.steps);
        if let Goal::Balance(price) = self.goal {
            let goal = BalanceGoal { target: load.mean(), price };
            let answer = balance(&exact, previous, counts, goal, budget).ok()?;
            why.push(Reason::Changes { changes: answer.changes.total(), bound: None });
            let left = violations(&exact, model, &answer.assignment);
            return Some((answer.assignment, left));
        }
        if before.is_empty() {
            let working = situation.working.transient();
            why.push(Reason::WithinObjectives { most: working, highest: highest(load) });
            return None;
        }
        // With some room to spare if that is possible.
        let room = Load::FULL.saturating_sub(self.margin);
        let spare = situation.problem(self, lanes, 1.0 / room.share(), room);
        let spare = spare.and_then(|spare| fewest_changes(&spare, previous, counts, budget).ok());
        let feasible = spare.filter(|answer| answer.violations.is_empty());
        let answer = match feasible {
            Some(mut answer) => {
                // Loads were raised, and what leaves with them.
                for leaves in &mut answer.assignment.offloaded {
                    *leaves = leaves.times(room);
                }
                answer
            }
            None => fewest_changes(&exact, previous, counts, budget).ok()?,
        };
        let left = violations(&exact, model, &answer.assignment);
        if excess(&left) >= excess(&before) {
            why.push(Reason::NoFewerViolations { violations: before.len(), cut: answer.is_cut });
            return Some((previous.clone(), before));
        }
        why.push(Reason::Changes { changes: answer.value, bound: answer.bound });
        Some((answer.assignment, left))
    }

    /// Names objectives that are missed on all lanes there are, and flows that no lane could take.
    fn name_missed(
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

    /// The assignment as a plan.
    fn changes(
        &self,
        load: &LoadSnapshot,
        situation: &Situation,
        assignment: &FlowAssignment,
    ) -> Plan {
        let previous = &situation.previous;
        let lanes = || (0..load.lanes().len() as u16).map(LaneId);
        let role = |lane: &LaneId| assignment.roles[lane.index()];
        let was = |lane: &LaneId| previous.roles[lane.index()];
        let most = situation.working.transient();
        let why = |from: LaneId| match role(&from) {
            LaneRole::Working => MoveReason::Objective { load: load.load(from), most },
            LaneRole::Idle | LaneRole::Offloading => MoveReason::Parking,
        };
        let shards =
            (0..).map(rheostat_base::ShardId).zip(previous.home.iter().zip(&assignment.home));
        let moved = shards.filter(|(_, (from, to))| from != to);
        let moves =
            moved.map(|(shard, (from, to))| Move { shard, from: *from, to: *to, why: why(*from) });
        let begins = |lane: &LaneId| role(lane) == LaneRole::Working && was(lane) != role(lane);
        let ends = |lane: &LaneId| role(lane) == LaneRole::Idle && was(lane) == LaneRole::Working;
        let links = assignment.links != previous.links;
        let shares = of_whole_flows(load, assignment);
        let pairs = shares.iter().zip(&previous.offloaded);
        let more = pairs.clone().map(|(now, then)| now.saturating_sub(*then)).sum::<Load>();
        let less = pairs.map(|(now, then)| then.saturating_sub(*now)).sum::<Load>();
        // Flows that come and go cost, too: a fluctuation moves none.
        let noise = Load::FULL.times(self.margin);
        let offloads = (links || more + less > noise)
            .then(|| Offloads { links: assignment.links.clone(), shares: shares.clone() });
        Plan {
            moves: moves.collect(),
            wake: lanes().filter(begins).collect(),
            park: lanes().filter(ends).collect(),
            offloads,
            why: Vec::new(),
        }
    }
}

/// What leaves each shard when each working lane hands over whole flows: the model spreads what leaves a lane over all of
/// its shards, but a shard's part of it is often less than its heaviest flow. So flows are picked by lane, and what leaves a
/// shard are its picked flows.
fn of_whole_flows(load: &LoadSnapshot, assignment: &FlowAssignment) -> Vec<Load> {
    let mut leaving = vec![Load::ZERO; load.lanes().len()];
    for (home, offloaded) in assignment.home.iter().zip(&assignment.offloaded) {
        leaving[home.index()] += *offloaded;
    }
    let mut shares = vec![Load::ZERO; load.shards().len()];
    for (lane, leaving) in (0..).map(LaneId).zip(leaving) {
        let of_lane = |flow: &&HeavyFlow| assignment.home[flow.shard.index()] == lane;
        let flows: Vec<&HeavyFlow> = load.heavy().iter().filter(of_lane).collect();
        let loads: Vec<Load> = flows.iter().map(|flow| flow.load).collect();
        for picked in pick_flows(&loads, leaving) {
            shares[flows[picked].shard.index()] += flows[picked].load;
        }
    }
    shares
}

/// The most loaded lane's load.
fn highest(load: &LoadSnapshot) -> Load {
    load.active().chain(load.offloading()).map(|lane| load.load(lane)).max().unwrap_or_default()
}

/// How much is violated, where more of one thing may be less of another: first whether lanes are full, then structure, then
/// objectives.
fn excess(violations: &[Violation]) -> [f64; 3] {
    let mut excess = [0.0; 3];
    for violation in violations {
        let kind = match violation.constraint {
            Constraint::WorkingBelowFull | Constraint::OffloadingBelowFull => 0,
            Constraint::WorkingWait | Constraint::OffloadingWait => 2,
            _ => 1,
        };
        excess[kind] += violation.excess.min(1e9);
    }
    excess
}

#[cfg(test)]
mod tests;
