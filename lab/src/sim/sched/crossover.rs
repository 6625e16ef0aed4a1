//! From which cost of a lock on one queue for all is not the best any more.

use rheostat_tcp::sched::{Queueing, Scheduler, SchedulerName};

use super::costs::RequestCosts;
use super::estimate::Precision;
use super::meter::quantile_us;
use super::trial::Setting;

/// Locks are searched up to this.
const MOST_NS: f64 = 10_000.0;
/// Steps of the search: each halves what is left, and 5 ns of 10 us are enough.
const STEPS: u32 = 11;
/// By how much another has to be better.
const LEAD: f64 = 1.05;

/// The cost of a queue's lock, in nanoseconds for each time it is taken by another worker than the last, above which `inline-cfcfs` no
/// longer has the least p99.9 of the inline schedulers: one of the others is better by more than 5 %, which is how well percentiles are known.
/// Connection locks and steals change in proportion. 0 if it never has, and
/// 10,000 if it always has up to there.
///
/// All schedulers get the same requests at each step, so their difference is not chance.
pub(super) fn crossover_lock(setting: &Setting<'_>) -> f64 {
    let dfcfs = p999(setting, setting.costs, Queueing::Dfcfs);
    let wins = |lock_ns: f64| {
        let costs = setting.costs.with_lock(lock_ns);
        let own = p999(setting, &costs, Queueing::Cfcfs);
        own <= LEAD * dfcfs && own <= LEAD * p999(setting, &costs, Queueing::Ws)
    };
    if !wins(0.0) {
        return 0.0;
    }
    if wins(MOST_NS) {
        return MOST_NS;
    }
    let (mut low, mut high) = (0.0, MOST_NS);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if wins(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

fn p999(setting: &Setting<'_>, costs: &RequestCosts, queueing: Queueing) -> f64 {
    let name = SchedulerName::Inline(queueing);
    let workers = setting.scheduler.workers();
    let Ok(scheduler) = Scheduler::on_cores(name, workers) else { return f64::INFINITY };
    let setting = Setting { scheduler, costs, ..*setting };
    let estimate = setting.run(&Precision::fixed(20_000));
    quantile_us(&estimate.latencies.all(), 0.999)
}
