//! What models expect of a case.

use std::time::Duration;

use rheostat_kernel::sleep::SleepProfile;
use rheostat_run::poll::metronome::{
    Binding, Division, Goal, LaneService, MetronomeSettings, Timeouts, VacationLaw,
};

use super::model::{EqualTimeouts, backup_wins};
use super::simulation::{Policy, Simulation};

/// Quantiles of a sleep that models use.
const QUANTILES: usize = 500;
/// Longer than any vacation.
const ENDLESS: Duration = Duration::from_secs(3_600);

/// The distribution of V that a model has.
#[derive(Clone, Debug)]
enum Law {
    /// Of equal timeouts, at any load.
    Equal(EqualTimeouts),
    /// Of any others.
    General(VacationLaw),
}

/// What models expect of the vacations of a case whose lanes all have the same constant rate.
#[derive(Clone, Debug)]
pub(super) struct Expectation {
    /// V̄; T_S where timeouts are fixed.
    pub(super) target: Duration,
    /// T_L.
    pub(super) long: Duration,
    /// Whether both timeouts are fixed.
    pub(super) is_fixed: bool,
    law: Law,
    won_by_other: f64,
    /// The share by equation 4.2.7, corrected: with exact sleeps, and all mates in the long timeout.
    pub(super) won_by_equation: Option<f64>,
}

impl Expectation {
    /// That of Metronome on lanes with this service, whose sleeps are those of `profile`; `None` for other policies, and
    /// for a latency that no vacation allows.
    pub(super) fn new(
        setup: &Simulation,
        profile: &SleepProfile,
        service: &LaneService,
    ) -> Option<Expectation> {
        let Policy::Metronome(settings) = &setup.policy else { return None };
        let lanes = setup.rates.len();
        let division = match settings.binding {
            Binding::Random => Division::shared(setup.workers, lanes),
            Binding::Static => Division::bound(0, setup.workers, lanes),
        };
        let crew = division.workers_per_lane;
        let target = target(settings, service, crew, profile)?;
        let aim = aim(settings, service, crew, profile, target);
        let short = settings.timeouts.short(aim, crew, service.rho());
        let long = settings.timeouts.long(short);
        let sleeps = profile.durations(short, QUANTILES);
        let general =
            |sleeps: &[Duration]| VacationLaw::new(crew, service.rho(), short, long, sleeps);
        let whole = crew.fract() == 0.0;
        let (law, won_by_other) = if short == long && whole {
            let law = EqualTimeouts::new(crew as usize, &sleeps);
            let won = law.won_by_other();
            (Law::Equal(law), won)
        } else {
            // The survival function of the mates alone.
            let mates = general(&[ENDLESS]);
            let own: f64 = sleeps.iter().map(|sleep| mates.survival(sleep.as_secs_f64())).sum();
            (Law::General(general(&sleeps)), 1.0 - own / sleeps.len() as f64)
        };
        let equation = (crew - 1.0) * backup_wins(crew as usize, short, long);
        let won_by_equation = whole.then_some(equation);
        let is_fixed = matches!(settings.timeouts, Timeouts::Fixed { .. });
        Some(Expectation { target, long, is_fixed, law, won_by_other, won_by_equation })
    }

    /// E\[V\] in seconds.
    pub(super) fn mean(&self) -> f64 {
        match &self.law {
            Law::Equal(law) => law.mean(),
            Law::General(law) => law.mean(),
        }
    }

    /// P(V > x), `x` in seconds.
    pub(super) fn survival(&self, x: f64) -> f64 {
        match &self.law {
            Law::Equal(law) => law.survival(x),
            Law::General(law) => law.survival(x),
        }
    }

    /// The share of vacations that another worker ends than the one that left.
    pub(super) fn won_by_other(&self) -> f64 {
        self.won_by_other
    }
}

fn target(
    settings: &MetronomeSettings,
    service: &LaneService,
    crew: f64,
    profile: &SleepProfile,
) -> Option<Duration> {
    match (settings.goal, settings.timeouts) {
        (_, Timeouts::Fixed { short, .. }) => Some(short),
        (Goal::Vacation(target), _) => Some(target),
        (Goal::Latency(goal), timeouts) => goal.target_vacation(service, crew, timeouts, profile),
    }
}

/// The vacation that T_S is computed from: lanes that follow what they measure shorten it until the mean is the target.
fn aim(
    settings: &MetronomeSettings,
    service: &LaneService,
    crew: f64,
    profile: &SleepProfile,
    target: Duration,
) -> Duration {
    if !matches!(settings.timeouts, Timeouts::Adaptive { follows: true, .. }) {
        return target;
    }
    let mean = |aim: Duration| {
        let short = settings.timeouts.short(aim, crew, service.rho());
        let long = settings.timeouts.long(short);
        let sleeps = profile.durations(short, QUANTILES);
        VacationLaw::new(crew, service.rho(), short, long, &sleeps).mean()
    };
    let (mut least, mut most) = (target / 4, target);
    if mean(most) <= target.as_secs_f64() {
        return target;
    }
    while most - least > target / 1_000 {
        let middle = (most + least) / 2;
        if mean(middle) > target.as_secs_f64() { most = middle } else { least = middle }
    }
    least
}
