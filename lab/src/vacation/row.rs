//! One line of results: vacations and latencies, measured or simulated, beside models.

use std::time::Duration;

use rheostat_kernel::sleep::SleepProfile;
use rheostat_measure::rounding::{rounded, to_thousandths};
use rheostat_run::poll::metronome::LaneService;
use serde::{Deserialize, Serialize};

use super::cases::{CaseRows, VacationCase};
use super::expectation::Expectation;
use super::model::{mean_latency_in_bursts, mean_latency_of_original};
use super::observation::{LaneObservation, Observation};
use super::simulation::Interval;

/// Lost tries are to be at most this share where workers are as many as lanes, or up to twice as many.
const LOST_TRIES: f64 = 0.1;

/// Vacations of one case, or of a part of it. Times in microseconds; means over all lanes. `null` is what was not
/// measured, or what a model does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VacationRow {
    /// The figure, table, equation or section of the dissertation that the row is of.
    pub figure: String,
    /// What distinguishes the case; often nothing.
    pub case: String,
    /// Whether this was simulated; else threads ran it.
    pub simulated: bool,
    /// M.
    pub workers: usize,
    /// N.
    pub lanes: usize,
    /// The lane, of a row of one.
    pub lane: Option<usize>,
    /// When the interval began, of a row of one, in milliseconds.
    pub at_ms: Option<f64>,
    /// V̄; of fixed timeouts T_S.
    pub target_us: f64,
    /// T_L.
    pub long_us: Option<f64>,
    /// Packets per second that arrived at a lane.
    pub rate_pps: f64,
    /// The share of the time in which a lane worked on packets.
    pub rho: f64,
    /// The mean vacation.
    pub mean_us: f64,
    /// The same by the model, with the measured distribution of sleeps.
    pub model_us: Option<f64>,
    /// The Kolmogorov-Smirnov distance between the vacations of lane 0 and the model's.
    pub ks: Option<f64>,
    /// Vacations of one lane.
    pub vacations: u64,
    /// The mean busy period (B).
    pub busy_us: f64,
    /// Packets found at the end of a vacation (N_V).
    pub found: Option<f64>,
    /// Tries of locks.
    pub tries: u64,
    /// Lost tries ÷ tries.
    pub lost_tries: f64,
    /// Whether they are within the aim of 10 %, where timeouts adapt and workers are as many as lanes or up to twice as
    /// many.
    pub lost_tries_in_aim: Option<bool>,
    /// Vacations that another worker ended than the one that had left ÷ vacations.
    pub won_by_other: f64,
    /// The same by the model, with the measured distribution of sleeps.
    pub won_model: Option<f64>,
    /// The same by equation 4.2.7, corrected: for exact sleeps, and at high load.
    pub won_equation: Option<f64>,
    /// The mean latency.
    pub latency_mean_us: Option<f64>,
    /// By the queue with vacations, from the measured moments of V.
    pub latency_model_us: Option<f64>,
    /// The same where packets of a burst leave together, as lanes send them.
    pub latency_burst_us: Option<f64>,
    /// By the dissertation's formula (5.2.1), from the measured mean of V.
    pub latency_paper_us: Option<f64>,
    /// The median latency.
    pub latency_p50_us: Option<f64>,
    /// What the latencies of all but one packet in a hundred do not exceed.
    pub latency_p99_us: Option<f64>,
    /// CPU time of all workers ÷ (time × lanes); what the simulated NIC takes to write packets included.
    pub cpu_share: f64,
    /// Packets lost ÷ packets that arrived.
    pub loss: Option<f64>,
    /// How long threads of the process were ready without a core, in milliseconds; real rows only, as the next.
    pub run_delay_ms: Option<f64>,
    /// What the hypervisor took from all cores, in milliseconds.
    pub steal_ms: Option<f64>,
}

/// Microseconds, to the nanosecond.
fn us(seconds: f64) -> f64 {
    to_thousandths(1e6 * seconds)
}

/// A share, to a millionth.
fn share(share: f64) -> f64 {
    rounded(share, 1e6)
}

impl VacationRow {
    /// The rows of a case: one of all lanes, or one of each. None of the policies without vacations, and of those whose
    /// rows are of intervals.
    pub fn of(case: &VacationCase, profile: &SleepProfile, seen: &Observation) -> Vec<VacationRow> {
        match case.rows {
            CaseRows::Whole => VacationRow::whole(case, profile, seen).into_iter().collect(),
            CaseRows::Lanes => {
                let lanes = seen.lanes.iter().enumerate();
                lanes
                    .filter_map(|(n, lane)| VacationRow::lane(case, profile, seen, (n, lane)))
                    .collect()
            }
            CaseRows::Intervals => Vec::new(),
        }
    }

    fn whole(
        case: &VacationCase,
        profile: &SleepProfile,
        seen: &Observation,
    ) -> Option<VacationRow> {
        let service = service(seen, seen.mean(|lane| lane.rate));
        let expected = Expectation::new(&case.setup, profile, &service)?;
        let mean = seen.mean(|lane| lane.vacation_mean);
        let square = seen.mean(|lane| lane.vacation_mean_square);
        let tries = seen.sum(|lane| lane.tries);
        let lost_tries = seen.sum(|lane| lane.lost_tries) / tries.max(1.0);
        let (workers, lanes) = (case.setup.workers, seen.lanes.len());
        let has_aim = (lanes..=2 * lanes).contains(&workers) && !expected.is_fixed;
        let vacations = seen.sum(|lane| lane.vacations);
        let ms = |time: Duration| to_thousandths(1e3 * time.as_secs_f64());
        let has_packets = seen.latency_mean.is_some();
        let latency = |of: f64| has_packets.then(|| us(of));
        Some(VacationRow {
            target_us: us(expected.target.as_secs_f64()),
            long_us: Some(us(expected.long.as_secs_f64())),
            rate_pps: service.rate.round(),
            rho: share(seen.mean(|lane| lane.rho)),
            mean_us: us(mean),
            model_us: Some(us(expected.mean())),
            ks: Some(share(seen.vacations.distance(|x| expected.survival(x)))),
            vacations: (vacations / lanes as f64) as u64,
            busy_us: us(seen.mean(|lane| lane.busy_mean)),
            found: seen.found.map(share),
            tries: tries as u64,
            lost_tries: share(lost_tries),
            lost_tries_in_aim: has_aim.then_some(lost_tries <= LOST_TRIES),
            won_by_other: share(seen.sum(|lane| lane.won_by_other) / vacations.max(1.0)),
            won_model: Some(share(expected.won_by_other())),
            won_equation: expected.won_by_equation.map(share),
            latency_mean_us: seen.latency_mean.map(us),
            latency_model_us: latency(service.mean_latency(mean, square)),
            latency_burst_us: latency(mean_latency_in_bursts(&service, mean, square)),
            latency_paper_us: latency(mean_latency_of_original(&service, mean)),
            latency_p50_us: seen.latency_p50.map(us),
            latency_p99_us: seen.latency_p99.map(us),
            cpu_share: share(seen.cpu_share),
            loss: Some(share(seen.loss)),
            run_delay_ms: seen.disturbance.map(|(delay, _)| ms(delay)),
            steal_ms: seen.disturbance.map(|(_, steal)| ms(steal)),
            ..VacationRow::named(case)
        })
    }

    fn lane(
        case: &VacationCase,
        profile: &SleepProfile,
        seen: &Observation,
        (number, lane): (usize, &LaneObservation),
    ) -> Option<VacationRow> {
        let service = service(seen, lane.rate);
        let expected = Expectation::new(&case.setup, profile, &service)?;
        Some(VacationRow {
            lane: Some(number),
            target_us: us(expected.target.as_secs_f64()),
            long_us: Some(us(expected.long.as_secs_f64())),
            rate_pps: lane.rate.round(),
            rho: share(lane.rho),
            mean_us: us(lane.vacation_mean),
            model_us: Some(us(expected.mean())),
            vacations: lane.vacations,
            busy_us: us(lane.busy_mean),
            tries: lane.tries,
            lost_tries: share(lane.lost_tries as f64 / lane.tries.max(1) as f64),
            won_by_other: share(lane.won_by_other as f64 / lane.vacations.max(1) as f64),
            won_model: Some(share(expected.won_by_other())),
            cpu_share: share(seen.cpu_share),
            ..VacationRow::named(case)
        })
    }

    /// The rows of the intervals of a case whose rows are of these.
    pub fn of_course(case: &VacationCase, course: &[Interval]) -> Vec<VacationRow> {
        let (CaseRows::Intervals, Some(length)) = (case.rows, case.setup.interval) else {
            return Vec::new();
        };
        let lanes = case.setup.rates.len() as f64;
        let service = LaneService::default();
        let expected = Expectation::new(&case.setup, &case.setup.profile, &service);
        let seconds = length.as_secs_f64();
        let rows = (0_u32..).zip(course).map(|(number, interval)| VacationRow {
            at_ms: Some(to_thousandths(1e3 * seconds * f64::from(number))),
            target_us: expected.as_ref().map_or(0.0, |e| us(e.target.as_secs_f64())),
            long_us: expected.as_ref().map(|e| us(e.long.as_secs_f64())),
            rate_pps: (interval.packets as f64 / seconds / lanes).round(),
            rho: share(
                interval.packets as f64 * case.setup.service.as_secs_f64() / seconds / lanes,
            ),
            mean_us: us(interval.vacation_sum / interval.vacations.max(1) as f64),
            vacations: interval.vacations,
            busy_us: us(interval.busy_sum / interval.vacations.max(1) as f64),
            cpu_share: share(interval.cpu / seconds / lanes),
            ..VacationRow::named(case)
        });
        rows.collect()
    }

    /// A row that has nothing but the names of its case.
    fn named(case: &VacationCase) -> VacationRow {
        VacationRow {
            figure: case.figure.to_string(),
            case: case.name.to_owned(),
            simulated: !case.is_real,
            workers: case.setup.workers,
            lanes: case.setup.rates.len(),
            ..VacationRow::default()
        }
    }
}

/// What models get of a lane at which so many packets arrive per second: work takes the same time for each.
fn service(seen: &Observation, rate: f64) -> LaneService {
    LaneService { rate, mean: seen.service, mean_square: seen.service * seen.service }
}

#[cfg(test)]
mod tests;
