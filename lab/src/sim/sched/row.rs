//! One line of results.

use rheostat_measure::confidence::Median;
use rheostat_measure::record::{Column, TableRow, or_dash, to_three_digits};
use rheostat_measure::rounding::{to_ten_thousandths, to_thousandths};
use serde::{Deserialize, Serialize};

use super::estimate::SchedEstimate;
use super::meter::{SimLatencies, quantile_us};
use super::{Ideal, SchedBench, SchedCase};

/// A scheduler under a workload at a load. Times are in microseconds from a request's arrival until its reply has left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchedRow {
    /// Always: nothing here was measured on a machine.
    pub simulated: bool,
    /// The scheduler; `ideal-cfcfs` and `ideal-ps` exist in theory only.
    pub scheduler: String,
    /// The distribution of service times.
    pub workload: String,
    /// The share of what the cores could do if TCP and the application were all there is to do.
    pub load: f64,
    /// Cores.
    pub cores: u16,
    /// Requests that arrive per second.
    pub offered: f64,
    /// Replies that leave per second.
    pub throughput: f64,
    /// Replies that leave per second when more arrive than can be done.
    pub capacity: f64,
    /// Whether so many arrive. Then times grow with the length of the run.
    pub saturated: bool,
    /// The mean of what requests take beyond the application's work: TCP, locks, hand-offs and waits.
    pub mean_beyond_service_us: f64,
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The 99.99th percentile, if it was asked for.
    pub p9999_us: Option<f64>,
    /// The 99.9th percentile of short requests; `None` where there is one class.
    pub p999_short_us: Option<f64>,
    /// The 99.9th percentile of long requests.
    pub p999_long_us: Option<f64>,
    /// Half of the interval of 95 % of the last percentile by its value; `None` where it grows with the run.
    pub ci95: Option<f64>,
    /// The share of replies that waited for an earlier one of their connection.
    pub waited_for_order: f64,
    /// Nanoseconds that a queue's lock takes whose last holder was another worker.
    pub lock_ns: f64,
    /// The same from which on another inline scheduler is better than `inline-cfcfs` by more than 5 %, at this load; `None` but for `constant-1us`.
    pub crossover_lock_ns: Option<f64>,
    /// Requests simulated.
    pub requests: u64,
}

impl SchedRow {
    pub(super) fn of(
        bench: &SchedBench<'_>,
        case: &SchedCase,
        (load, offered, capacity): (f64, f64, f64),
        estimate: &SchedEstimate,
        saturated: bool,
    ) -> SchedRow {
        let all = estimate.latencies.all();
        let of_windows: Option<Vec<_>> =
            bench.window.map(|_| estimate.batches.iter().map(SimLatencies::all).collect());
        let at = |share| {
            to_thousandths(match &of_windows {
                None => quantile_us(&all, share),
                Some(windows) => {
                    Median::of(windows.iter().map(|one| quantile_us(one, share)).collect()).value
                }
            })
        };
        let classes = case.workload.has_classes().then_some(&estimate.latencies);
        let scheduler = match case.ideal {
            None => case.scheduler.name().to_string(),
            Some(Ideal::Central) => "ideal-cfcfs".to_owned(),
            Some(Ideal::Sharing) => "ideal-ps".to_owned(),
        };
        SchedRow {
            simulated: true,
            scheduler,
            workload: case.workload.to_string(),
            load,
            cores: bench.cores,
            offered: offered.round(),
            throughput: estimate.throughput.round(),
            capacity: capacity.round(),
            saturated,
            mean_beyond_service_us: to_thousandths(
                estimate.waits.iter().sum::<f64>() / 1e3 / estimate.waits.len().max(1) as f64,
            ),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            p9999_us: bench.full.then(|| at(0.9999)),
            p999_short_us: classes.map(|of| to_thousandths(quantile_us(&of.short, 0.999))),
            p999_long_us: classes.map(|of| to_thousandths(quantile_us(&of.long, 0.999))),
            ci95: (!saturated).then(|| to_ten_thousandths(estimate.margin)),
            waited_for_order: to_ten_thousandths(estimate.waited_for_order),
            lock_ns: to_thousandths(bench.costs.lock_ns()),
            crossover_lock_ns: None,
            requests: estimate.simulated,
        }
    }
}

impl TableRow for SchedRow {
    const COLUMNS: &'static [Column<SchedRow>] = &[
        Column::name("workload", 14, |row| &row.workload),
        Column::number("load", 4, 2, |row| row.load),
        Column::apart(Column::name("scheduler", 21, |row| &row.scheduler)),
        Column::number("krps", 9, 0, |row| row.throughput / 1e3),
        Column::number("capacity", 9, 0, |row| row.capacity / 1e3),
        Column::apart(Column::text("p50 us", 9, |row| row.us(row.p50_us))),
        Column::text("p99", 9, |row| row.us(row.p99_us)),
        Column::text("p99.9", 9, |row| row.us(row.p999_us)),
        Column::apart(Column::text("short", 9, |row| or_dash(row.p999_short_us, |us| row.us(us)))),
        Column::text("long", 9, |row| or_dash(row.p999_long_us, |us| row.us(us))),
        Column::text("95 %", 6, |row| or_dash(row.ci95, |by| format!("±{:.0} %", 100.0 * by))),
    ];
}

impl SchedRow {
    /// A time, if it does not grow with the run.
    fn us(&self, time: f64) -> String {
        if self.saturated { "grows".to_owned() } else { to_three_digits(time) }
    }

    /// What rows of a workload at a load come to, by these.
    pub fn verdicts(rows: &[SchedRow]) -> Vec<String> {
        groups(rows).map(|(workload, load)| verdict(rows, workload, load)).collect()
    }

    /// What `others` come to, which were simulated with other costs, where another scheduler is the best than by `rows`.
    pub fn other_verdicts(rows: &[SchedRow], others: &[SchedRow]) -> Vec<String> {
        let best = |rows, (workload, load)| {
            best_first(rows, workload, load).first().map(|row| row.scheduler.clone())
        };
        groups(others)
            .filter(|group| best(rows, *group) != best(others, *group))
            .map(|(workload, load)| verdict(others, workload, load))
            .collect()
    }
}

/// The workloads and loads of rows, each once.
fn groups(rows: &[SchedRow]) -> impl Iterator<Item = (&str, f64)> {
    let mut groups: Vec<(&str, f64)> = Vec::new();
    for row in rows {
        let group = (row.workload.as_str(), row.load);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups.into_iter()
}

/// The rows of real schedulers that can do the load, by p99.9.
fn best_first<'a>(rows: &'a [SchedRow], workload: &str, load: f64) -> Vec<&'a SchedRow> {
    let mut sound: Vec<&SchedRow> = rows
        .iter()
        .filter(|row| row.workload == workload && row.load == load && !row.saturated)
        .filter(|row| !row.scheduler.starts_with("ideal-"))
        .collect();
    sound.sort_by(|a, b| a.p999_us.total_cmp(&b.p999_us));
    sound
}

fn verdict(rows: &[SchedRow], workload: &str, load: f64) -> String {
    let mut text = match best_first(rows, workload, load).as_slice() {
        [] => format!("{workload} at {load:.2}: more than any of these schedulers can do"),
        [best] => format!(
            "{workload} at {load:.2}: {} alone can do it, p99.9 {} us",
            best.scheduler,
            to_three_digits(best.p999_us)
        ),
        [best, next, ..] => format!(
            "{workload} at {load:.2}: {} has the least p99.9, {} us; then {}, {} us",
            best.scheduler,
            to_three_digits(best.p999_us),
            next.scheduler,
            to_three_digits(next.p999_us)
        ),
    };
    let mut group = rows.iter().filter(|row| row.workload == workload && row.load == load);
    let with_crossover = group.find_map(|row| Some((row.crossover_lock_ns?, row.lock_ns)));
    if let Some((lock, lock_ns)) = with_crossover {
        text += &format!(
            "; of the inline ones cFCFS has it up to a lock of {lock:.0} ns, and the lock is {lock_ns:.0} ns"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::noise::Noise;
    use crate::sim::sched::{RequestCosts, SchedBench, SchedRow, Workload};

    #[test]
    fn other_verdicts_are_those_with_another_best_scheduler() {
        let costs = RequestCosts::thesis();
        let bench = SchedBench {
            schedulers: ["inline-dfcfs", "inline-cfcfs"].map(|name| name.parse().unwrap()).into(),
            workloads: vec!["constant-10us".parse::<Workload>().unwrap()],
            loads: vec![0.5, 2.0],
            ..SchedBench::new(2, &costs)
        };
        let rows = bench.run_without_crossover().unwrap();
        assert_eq!(SchedRow::other_verdicts(&rows, &rows), [""; 0]);
        let dear = costs.with_lock(1_000_000.0);
        let others = SchedBench { costs: &dear, ..bench }.run_without_crossover().unwrap();
        let [verdict] = &SchedRow::other_verdicts(&rows, &others)[..] else { panic!() };
        assert!(verdict.contains("at 0.50: inline-dfcfs alone"), "{verdict}");
    }

    #[test]
    fn a_pause_is_in_its_window_alone() {
        let costs = RequestCosts::thesis();
        let noise = Noise::of_gaps(&[200_000_000], 10_000_000_000, 0);
        let bench = SchedBench {
            schedulers: vec!["inline-dfcfs".parse().unwrap()],
            workloads: vec!["constant-10us".parse::<Workload>().unwrap()],
            loads: vec![0.3],
            noise: Some(&noise),
            ..SchedBench::new(2, &costs)
        };
        let p99_us = |window| {
            let rows = SchedBench { window, ..bench.clone() }.run_without_crossover().unwrap();
            rows[0].p99_us
        };
        // A pause of 200 ms in ten seconds, and windows of a tenth of a second.
        let (all, windows) = (p99_us(None), p99_us(Some(5_000)));
        assert!(all > 5_000.0 && windows < 100.0, "{all} {windows}");
    }
}
