//! The cases of each figure.

use std::sync::Arc;
use std::time::Duration;

use rheostat_kernel::sleep::SleepProfile;
use rheostat_run::poll::metronome::{Binding, Goal, MetronomeSettings, ModeRules, Timeouts};

use super::figure::VacationFigure;
use super::simulation::{Departure, Interference, Policy, Simulation};
use crate::datagrams::Spacing;

/// One run, measured or simulated.
#[derive(Clone, Debug)]
pub struct VacationCase {
    /// The figure that it is of.
    pub figure: VacationFigure,
    /// What distinguishes it from others of its figure that have the same workers, lanes, target and load.
    pub name: &'static str,
    /// What runs.
    pub setup: Simulation,
    /// Whether threads run it.
    pub is_real: bool,
    /// Whether a CPU-bound program runs on all cores beside the threads.
    pub is_disturbed: bool,
    /// What rows there are of it.
    pub rows: CaseRows,
}

/// What rows there are of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseRows {
    /// One of all.
    Whole,
    /// One of each lane.
    Lanes,
    /// One of each interval.
    Intervals,
}

/// What cases are made of.
#[derive(Clone, Debug)]
pub struct CaseTemplate {
    /// M of the figures that compare models with threads.
    pub workers: Vec<usize>,
    /// T_S and T_L where they are equal.
    pub timeout: Duration,
    /// ρ of these figures.
    pub loads: Vec<f64>,
    /// V̄ where timeouts adapt.
    pub targets: Vec<Duration>,
    /// The time of a packet.
    pub service: Duration,
    /// How long each case is measured.
    pub window: Duration,
    /// Everything random is drawn from it.
    pub seed: u64,
}

/// Before the measured part: workers calibrate their sleeps, and lanes find their timeouts.
const WARM_UP: Duration = Duration::from_millis(400);
/// What the dissertation's parameters are where a figure does not vary them.
const TARGET: Duration = Duration::from_micros(10);
const TARGET_OF_MANY_QUEUES: Duration = Duration::from_micros(15);
/// ρ at its line rate: B/(V + B) of Table 5.1.
const LINE_RATE: f64 = 0.53;
/// A ring of 1,024 descriptors holds what arrives in so long at 14.88 Mpps.
const RING: Duration = Duration::from_micros(69);
/// How late a program makes wake-ups on a core that it shares: a slice of Linux's scheduler.
const LATE: Duration = Duration::from_millis(3);
/// Steps up, and down, of a ramp.
const STEPS: u32 = 15;

const US: fn(u64) -> Duration = Duration::from_micros;

impl CaseTemplate {
    /// The cases of a figure. Simulated ones have no sleeps yet: [`Simulation::profile`] is exact.
    pub fn cases(&self, figure: VacationFigure) -> Vec<VacationCase> {
        match figure {
            VacationFigure::EQUAL_TIMEOUTS => self.equal_timeouts(),
            VacationFigure::DISTURBED => self.disturbed(),
            VacationFigure::BACKUP_WINS => self.backup_wins(),
            VacationFigure::JUMP => self.jump(),
            VacationFigure::TARGETS => self.by_target(),
            VacationFigure::WORKERS => self.by_workers(),
            VacationFigure::LATENCY => self.by_load(),
            VacationFigure::LONG_TIMEOUT => self.by_long_timeout(),
            VacationFigure::RAMP => self.ramp(),
            VacationFigure::QUEUES => self.by_queues(),
            VacationFigure::UNBALANCED => self.unbalanced(),
            VacationFigure::BINDING => self.by_binding(),
            VacationFigure::MANY_QUEUES => self.many_queues(),
            _ => Vec::new(),
        }
    }

    fn equal_timeouts(&self) -> Vec<VacationCase> {
        let each = self.workers.iter().flat_map(|workers| {
            self.loads.iter().flat_map(|load| {
                let setup = self.setup(*workers, &[*load], self.equal());
                [true, false]
                    .map(|is_real| self.case(VacationFigure::EQUAL_TIMEOUTS, &setup, is_real))
            })
        });
        each.collect()
    }

    fn equal(&self) -> MetronomeSettings {
        let timeouts = Timeouts::Fixed { short: self.timeout, long: self.timeout };
        MetronomeSettings { timeouts, ..adaptive(TARGET) }
    }

    fn disturbed(&self) -> Vec<VacationCase> {
        let load = self.loads.first().copied().unwrap_or(0.1);
        let each = self.workers.iter().map(|workers| {
            let setup = self.setup(*workers, &[load], self.equal());
            let case = self.case(VacationFigure::DISTURBED, &setup, true);
            VacationCase { is_disturbed: true, name: "beside a busy program", ..case }
        });
        each.collect()
    }

    fn backup_wins(&self) -> Vec<VacationCase> {
        let timeouts = Timeouts::Fixed { short: US(20), long: US(200) };
        let settings = MetronomeSettings { timeouts, ..adaptive(TARGET) };
        let case = |workers, is_real| {
            let setup = self.setup(workers, &[0.8], settings);
            self.case(VacationFigure::BACKUP_WINS, &setup, is_real)
        };
        vec![case(2, true), case(2, false), case(3, false), case(5, false)]
    }

    fn jump(&self) -> Vec<VacationCase> {
        let mut cases = Vec::new();
        for (workers, lanes, is_real) in [(2, 1, true), (3, 1, false), (2, 2, true), (6, 2, false)]
        {
            for target in &self.targets {
                // The original gives each queue threads of its own here.
                let settings = MetronomeSettings { binding: Binding::Static, ..adaptive(*target) };
                let setup = self.setup(workers, &vec![LINE_RATE; lanes], settings);
                let rate = setup.rates[0][0].1;
                let full = vec![(Duration::ZERO, 0.0), (WARM_UP, rate)];
                let setup = Simulation {
                    rates: vec![full; lanes],
                    descriptors: ring_for(rate),
                    spacing: Spacing::Constant,
                    ..setup
                };
                let name = if lanes == 1 { "one way" } else { "both ways" };
                cases.push(VacationCase {
                    name,
                    ..self.case(VacationFigure::JUMP, &setup, is_real)
                });
            }
        }
        cases
    }

    fn by_target(&self) -> Vec<VacationCase> {
        let mut cases = Vec::new();
        for load in [0.1, 0.5] {
            for target in &self.targets {
                for (workers, is_real) in [(2, true), (3, false)] {
                    let setup = self.setup(workers, &[load], adaptive(*target));
                    cases.push(self.case(VacationFigure::TARGETS, &setup, is_real));
                }
            }
        }
        cases
    }

    fn by_workers(&self) -> Vec<VacationCase> {
        let mut cases = Vec::new();
        // Beyond, a short pause of the machine makes lanes with threads fall behind for good.
        for load in [0.1, 0.5, 0.8] {
            for (workers, is_real) in
                [(1, true), (2, true)].into_iter().chain((1..=7).map(|workers| (workers, false)))
            {
                let setup = self.setup(workers, &[load], adaptive(TARGET));
                cases.push(self.case(VacationFigure::WORKERS, &setup, is_real));
            }
        }
        cases
    }

    fn by_load(&self) -> Vec<VacationCase> {
        let mut cases = Vec::new();
        for (workers, is_real) in [(1, true), (2, true), (3, false)] {
            for load in [0.05, 0.2, 0.4, 0.6, 0.8] {
                let setup = self.setup(workers, &[load], adaptive(US(20)));
                cases.push(self.case(VacationFigure::LATENCY, &setup, is_real));
            }
        }
        cases
    }

    fn by_long_timeout(&self) -> Vec<VacationCase> {
        let mut cases = Vec::new();
        let real = [50, 200, 700].map(|long| (2, long, true));
        let simulated = [50, 100, 200, 300, 500, 700].map(|long| (3, long, false));
        for (workers, long, is_real) in real.into_iter().chain(simulated) {
            let timeouts = Timeouts::Adaptive { long: US(long), follows: true };
            let settings = MetronomeSettings { timeouts, ..adaptive(TARGET) };
            let setup = self.setup(workers, &[0.5], settings);
            cases.push(self.case(VacationFigure::LONG_TIMEOUT, &setup, is_real));
        }
        cases
    }

    fn ramp(&self) -> Vec<VacationCase> {
        let setup = self.setup(3, &[0.0], adaptive(TARGET));
        let step = self.window / (2 * STEPS + 1);
        let height = |step: u32| f64::from(step.min(2 * STEPS - step)) / f64::from(STEPS);
        let rate = |part: u32| (part * step, 0.9 * height(part) / self.service.as_secs_f64());
        let setup = Simulation {
            rates: vec![(0..=2 * STEPS).map(rate).collect()],
            interval: Some(step.max(Duration::from_nanos(1))),
            length: step * (2 * STEPS + 1),
            warm_up: Duration::ZERO,
            ..setup
        };
        vec![VacationCase {
            rows: CaseRows::Intervals,
            ..self.case(VacationFigure::RAMP, &setup, false)
        }]
    }

    fn by_queues(&self) -> Vec<VacationCase> {
        let mut cases = Vec::new();
        // Two lanes at ρ = 0.7: the same traffic on two, three and four.
        for lanes in 2..=4_usize {
            for workers in lanes..=8 {
                let loads = vec![1.4 / lanes as f64; lanes];
                let setup = self.setup(workers, &loads, adaptive(TARGET_OF_MANY_QUEUES));
                cases.push(self.case(VacationFigure::QUEUES, &setup, false));
            }
        }
        cases
    }

    fn unbalanced(&self) -> Vec<VacationCase> {
        let loads = [0.235, 0.53, 0.235].map(|share| 1.4 * share);
        let setup = self.setup(6, &loads, adaptive(TARGET_OF_MANY_QUEUES));
        vec![VacationCase {
            rows: CaseRows::Lanes,
            ..self.case(VacationFigure::UNBALANCED, &setup, false)
        }]
    }

    fn by_binding(&self) -> Vec<VacationCase> {
        let cases = [(Binding::Random, "random binding"), (Binding::Static, "static binding")];
        // By static binding, these two have lane 0.
        let interference = Some(Interference { workers: vec![0, 3], longest: LATE });
        let cases = cases.map(|(binding, name)| {
            let settings = MetronomeSettings { binding, ..adaptive(TARGET_OF_MANY_QUEUES) };
            let setup = self.setup(6, &[0.7; 3], settings);
            let descriptors = ring_for(setup.rates[0][0].1);
            let interference = interference.clone();
            let setup = Simulation { interference, descriptors, ..setup };
            VacationCase { name, ..self.case(VacationFigure::BINDING, &setup, false) }
        });
        cases.into()
    }

    fn many_queues(&self) -> Vec<VacationCase> {
        let each = [8, 12, 16].map(|lanes| {
            let setup = self.setup(2 * lanes, &vec![0.5; lanes], adaptive(TARGET_OF_MANY_QUEUES));
            self.case(VacationFigure::MANY_QUEUES, &setup, false)
        });
        each.into()
    }

    fn case(&self, figure: VacationFigure, setup: &Simulation, is_real: bool) -> VacationCase {
        let (setup, rows) = (setup.clone(), CaseRows::Whole);
        VacationCase { figure, name: "", setup, is_real, is_disturbed: false, rows }
    }

    /// Workers that share lanes of these loads.
    fn setup(&self, workers: usize, loads: &[f64], settings: MetronomeSettings) -> Simulation {
        let rate = |load: &f64| vec![(Duration::ZERO, load / self.service.as_secs_f64())];
        Simulation {
            workers,
            rates: loads.iter().map(rate).collect(),
            spacing: Spacing::Poisson,
            service: self.service,
            varied_service: false,
            departure: Departure::Burst,
            descriptors: 1_024,
            profile: Arc::new(SleepProfile::exact()),
            empty_poll: Duration::from_nanos(100),
            lost_try: Duration::from_nanos(50),
            policy: Policy::Metronome(settings),
            interference: None,
            length: WARM_UP + self.window,
            warm_up: WARM_UP,
            interval: None,
            seed: self.seed,
        }
    }
}

/// Descriptors for as long a time as the dissertation's ring is good for.
fn ring_for(rate: f64) -> usize {
    ((rate * RING.as_secs_f64()) as usize).next_power_of_two()
}

/// Timeouts that adapt, of lanes that stay in the mode `metronome`: the models are of that one.
fn adaptive(target: Duration) -> MetronomeSettings {
    let rules = ModeRules { idle_after: None, busy_on_miss: false };
    MetronomeSettings { goal: Goal::Vacation(target), rules, ..MetronomeSettings::default() }
}
