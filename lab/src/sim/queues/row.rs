//! One line of results.

use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::to_ten_thousandths;
use serde::{Deserialize, Serialize};

use super::deterministic::{deterministic_p99, deterministic_wait};
use super::model::{markov_p99, markov_wait, pollaczek_khinchine};
use super::trial::Sojourn;
use super::{QueueSystem, RUNS, Service};

/// The 97.5th percentile of Student's t with [`RUNS`] - 1 = 19 degrees of freedom, by tables.
const T: f64 = 2.093;

/// A mean over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueueEstimate {
    /// The mean.
    pub value: f64,
    /// How far the true value is from it at most, with a confidence of 95 %.
    pub margin: f64,
}

impl QueueEstimate {
    /// The mean of one value per run, and by Student's t how far it may be off.
    fn of(values: impl Iterator<Item = f64>) -> QueueEstimate {
        let values: Vec<f64> = values.collect();
        let runs = f64::from(RUNS);
        let mean = values.iter().sum::<f64>() / runs;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let margin = T * (squares / (runs - 1.0) / runs).sqrt();
        QueueEstimate { value: to_ten_thousandths(mean), margin: to_ten_thousandths(margin) }
    }
}

/// Sojourn times, from arrival to departure, of one kind of queues at one load. All times are in mean service times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuesRow {
    /// Always: nothing here was measured on a machine.
    pub simulated: bool,
    /// In Kendall's notation: `4 x M/M/1`, `M/D/8`.
    pub model: String,
    /// `separate` (a queue for each server) or `shared` (one for all).
    pub queues: String,
    /// Servers.
    pub servers: u16,
    /// The distribution of service times: `markov`, `deterministic`, `bimodal`.
    pub service: String,
    /// The share of the time in which servers are busy.
    pub load: f64,
    /// The mean.
    pub mean: QueueEstimate,
    /// The same by the closed form (Pollaczek-Khinchine, Erlang C, Crommelin); `None` where there is none.
    pub mean_exact: Option<f64>,
    /// The time that all but one in a hundred packets stay within.
    pub p99: QueueEstimate,
    /// The same by the closed form, for deterministic service by Franx up to a load of 0.95; `None` where there is none.
    pub p99_exact: Option<f64>,
    /// The mean by that of separate queues with the same arrivals: the mean over runs. 1 in rows of separate queues.
    pub mean_by_separate: QueueEstimate,
    /// Likewise the 99th percentile.
    pub p99_by_separate: QueueEstimate,
}

impl QueuesRow {
    pub(super) fn of(
        system: QueueSystem,
        service: Service,
        (servers, load): (u16, f64),
        runs: &[Sojourn],
        separate: &[Sojourn],
    ) -> QueuesRow {
        let pairs = || runs.iter().zip(separate);
        let by = |figure: fn(&Sojourn) -> f64| {
            QueueEstimate::of(pairs().map(|(own, other)| figure(own) / figure(other)))
        };
        // The mean service time is known to be 1; what the drawn ones happen to be on average is left out.
        let mean: fn(&Sojourn) -> f64 = |run| 1.0 + run.wait;
        let of_p99: fn(&Sojourn) -> f64 = |run| run.p99;
        let letter = service.letter();
        let (model, in_queue) = match system {
            QueueSystem::Separate => (format!("{servers} x M/{letter}/1"), 1),
            QueueSystem::Shared => (format!("M/{letter}/{servers}"), servers),
        };
        let wait = mean_wait(service, in_queue, load);
        let tail = p99(service, in_queue, load);
        QueuesRow {
            simulated: true,
            model,
            queues: system.name().to_owned(),
            servers,
            service: service.name().to_owned(),
            load,
            mean: QueueEstimate::of(runs.iter().map(mean)),
            mean_exact: wait.map(|wait| to_ten_thousandths(1.0 + wait)),
            p99: QueueEstimate::of(runs.iter().map(of_p99)),
            p99_exact: tail.map(to_ten_thousandths),
            mean_by_separate: by(mean),
            p99_by_separate: by(of_p99),
        }
    }
}

/// The mean wait of `servers` servers with one queue, where it is known.
fn mean_wait(service: Service, servers: u16, load: f64) -> Option<f64> {
    match (service, servers) {
        (_, 1) => Some(pollaczek_khinchine(load, service.second_moment())),
        (Service::Markov, _) => Some(markov_wait(servers, load)),
        (Service::Deterministic, _) => deterministic_wait(servers, load),
        (Service::Bimodal, _) => None,
    }
}

/// The 99th percentile of the sojourn in one queue, where it is known.
fn p99(service: Service, servers: u16, load: f64) -> Option<f64> {
    match service {
        Service::Markov => Some(markov_p99(servers, load)),
        Service::Deterministic => deterministic_p99(servers, load),
        Service::Bimodal => None,
    }
}

/// A mean, and how far it may be off.
fn with_margin(of: QueueEstimate) -> String {
    format!("{:.2} ± {:.2}", of.value, of.margin)
}

impl TableRow for QueuesRow {
    const COLUMNS: &'static [Column<QueuesRow>] = &[
        Column::name("model", 10, |row| &row.model),
        Column::name("service", 13, |row| &row.service),
        Column::number("load", 4, 2, |row| row.load),
        Column::apart(Column::text("mean", 15, |row| with_margin(row.mean))),
        Column::known("exact", 7, 2, |row| row.mean_exact),
        Column::apart(Column::text("p99", 15, |row| with_margin(row.p99))),
        Column::known("exact", 7, 2, |row| row.p99_exact),
        Column::apart(Column::number("mean by", 7, 2, |row| row.mean_by_separate.value)),
        Column::number("p99 by", 7, 2, |row| row.p99_by_separate.value),
    ];
}
