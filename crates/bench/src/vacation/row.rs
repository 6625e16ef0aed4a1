//! One line of results: vacations and latencies, measured or simulated, beside what models say.

use std::time::Duration;

use rheostat_run::poll::metronome::{Division, Goal, LaneService, Timeouts, VacationLaw};
use serde::{Deserialize, Serialize};

use super::model::{EqualTimeouts, kolmogorov_smirnov};
use super::simulation::{Policy, Simulation, SimulationResult};

/// Quantiles of a sleep that models use.
const QUANTILES: usize = 500;

/// Vacations of one case. Times in microseconds; means over all lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VacationRow {
    /// M.
    pub workers: usize,
    /// N.
    pub lanes: usize,
    /// V̄; of fixed timeouts T_S.
    pub target_us: f64,
    /// λE\[S\] of a lane.
    pub rho: f64,
    /// The mean vacation.
    pub mean_us: f64,
    /// The same by the model, with the measured distribution of sleeps.
    pub model_us: f64,
    /// The Kolmogorov-Smirnov distance between the vacations of lane 0 and the model's.
    pub ks: f64,
    /// Lost tries ÷ tries.
    pub lost_tries: f64,
    /// Vacations of lane 0 that another worker ended than the one that had left ÷ vacations.
    pub won_by_other: f64,
    /// The mean latency.
    pub latency_mean_us: f64,
    /// By the queue with vacations, from the measured moments of V.
    pub latency_model_us: f64,
    /// By the dissertation's formula (5.2.1), from the measured mean of V.
    pub latency_paper_us: f64,
    /// CPU time of all workers ÷ (time × lanes).
    pub cpu_share: f64,
    /// Packets lost ÷ packets that arrived.
    pub loss: f64,
    /// Whether this was simulated.
    pub simulated: bool,
}

/// What the model says of the vacations of a case.
enum Model {
    Equal(EqualTimeouts),
    General(VacationLaw),
}

impl Model {
    fn mean(&self) -> f64 {
        match self {
            Model::Equal(law) => law.mean(),
            Model::General(law) => law.mean(),
        }
    }

    fn survival(&self, x: f64) -> f64 {
        match self {
            Model::Equal(law) => law.survival(x),
            Model::General(law) => law.survival(x),
        }
    }
}

impl VacationRow {
    /// The row of a simulation of Metronome whose lanes all have the same constant rate, and what came of it; `None` for
    /// other policies.
    pub fn simulated(setup: &Simulation, result: &SimulationResult) -> Option<VacationRow> {
        let Policy::Metronome(settings) = &setup.policy else { return None };
        let (lanes, rate) = (setup.rates.len(), setup.rates[0].first()?.1);
        let mean_service = setup.service.as_secs_f64();
        let spread = if setup.varied_service { 2.0 } else { 1.0 };
        let mean_square = spread * mean_service * mean_service;
        let service = LaneService { rate, mean: mean_service, mean_square };
        let crew = Division::shared(setup.workers, lanes).workers_per_lane;
        let target = match (settings.goal, settings.timeouts) {
            (_, Timeouts::Fixed { short, .. }) => short,
            (Goal::Vacation(target), _) => target,
            (Goal::Latency(goal), timeouts) => {
                goal.target_vacation(&service, crew, timeouts, &setup.profile)?
            }
        };
        let law = |aim: Duration| {
            let short = settings.timeouts.short(aim, crew, service.rho());
            let long = settings.timeouts.long(short);
            let sleeps = setup.profile.durations(short, QUANTILES);
            VacationLaw::new(crew, service.rho(), short, long, &sleeps)
        };
        // Lanes that follow what they measure shorten T_S until the mean is the target.
        let mut aim = target;
        if matches!(settings.timeouts, Timeouts::Adaptive { follows: true, .. }) {
            let mut least = target / 4;
            while aim - least > target / 1_000 {
                let middle = (aim + least) / 2;
                if law(middle).mean() > target.as_secs_f64() {
                    aim = middle
                } else {
                    least = middle
                }
            }
        }
        let short = settings.timeouts.short(aim, crew, service.rho());
        let long = settings.timeouts.long(short);
        let sleeps = setup.profile.durations(short, QUANTILES);
        let model = if short == long && crew.fract() == 0.0 {
            Model::Equal(EqualTimeouts::new(crew as usize, &sleeps))
        } else {
            Model::General(law(aim))
        };
        let over = |of: fn(&super::LaneResult) -> f64| {
            result.lanes.iter().map(of).sum::<f64>() / lanes as f64
        };
        let mean = over(super::LaneResult::vacation_mean);
        let square = over(super::LaneResult::vacation_mean_square);
        let us = |seconds: f64| 1e6 * seconds;
        let first = &result.lanes[0];
        Some(VacationRow {
            workers: setup.workers,
            lanes,
            target_us: us(target.as_secs_f64()),
            rho: service.rho(),
            mean_us: us(mean),
            model_us: us(model.mean()),
            ks: kolmogorov_smirnov(&first.vacations, |x| model.survival(x)),
            lost_tries: result.lost_tries(),
            won_by_other: first.won_by_other as f64 / first.vacation_count.max(1) as f64,
            latency_mean_us: us(result.latency_mean),
            latency_model_us: us(service.mean_latency(mean, square)),
            latency_paper_us: us(service.mean_latency_of_original(mean)),
            cpu_share: result.cpu_share,
            loss: result.loss(),
            simulated: true,
        })
    }

    /// The cases of the dissertation's Figure 4.3 (T_S = T_L = 50 µs, M = 2, 3, 5) at these occupancies of the one lane, and
    /// adaptive timeouts for targets of 10, 20 and 50 µs; `template` gives everything else.
    pub fn cases(template: &Simulation, rhos: &[f64]) -> Vec<Simulation> {
        let us = Duration::from_micros;
        let Policy::Metronome(settings) = &template.policy else { return Vec::new() };
        let fixed = Timeouts::Fixed { short: us(50), long: us(50) };
        let timeouts = [(settings.goal, fixed)]
            .into_iter()
            .chain([10, 20, 50].map(|target| (Goal::Vacation(us(target)), Timeouts::default())));
        let mut cases = Vec::new();
        for (goal, timeouts) in timeouts {
            for workers in [2, 3, 5] {
                for rho in rhos {
                    let mut settings = *settings;
                    (settings.goal, settings.timeouts) = (goal, timeouts);
                    cases.push(Simulation {
                        workers,
                        rates: vec![vec![(Duration::ZERO, rho / template.service.as_secs_f64())]],
                        policy: Policy::Metronome(settings),
                        ..template.clone()
                    });
                }
            }
        }
        cases
    }
}
