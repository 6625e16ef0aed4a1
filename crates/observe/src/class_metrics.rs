//! What classes of traffic came to, beside what was asked for and predicted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rheostat_base::Histogram;
use rheostat_run::{ClassFigures, RunView};
use rheostat_steer::policy::Class;
use serde::{Deserialize, Serialize};

/// One class, over the whole run so far. Latencies are in microseconds, of sampled packets: those that devices know the arrival
/// of; `null` where there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassMetrics {
    /// The name of the class; `rest` for what no class matches.
    pub name: String,
    /// `priority` or `regular`.
    pub kind: String,
    /// Its packets, sampled or not.
    pub packets: u64,
    /// Its packets per second.
    pub rate: f64,
    /// How many packets latencies are known of.
    pub sampled: u64,
    /// What latencies are: `waiting` or `total`.
    pub on: String,
    /// Half of the packets had no longer one.
    pub latency_us_p50: Option<f64>,
    /// Nor had 99 %.
    pub latency_us_p99: Option<f64>,
    /// Nor had 99.5 %.
    pub latency_us_p995: Option<f64>,
    /// The percentile of the objectives, as a share of packets.
    pub percentile: f64,
    /// The latency at that percentile.
    pub latency_us: Option<f64>,
    /// What it should be at most; `null` where nothing is asked for.
    pub objective_us: Option<f64>,
    /// Whether it is; `null` where that is not known.
    pub met: Option<bool>,
    /// The wait that plans predicted at that percentile for packets of the kind, a mean over lanes and plans.
    pub predicted_us: Option<f64>,
}

impl ClassMetrics {
    /// The classes of a run, after so many seconds; none where they are not measured. `predicted` is by kind.
    pub fn of(
        view: &RunView,
        predicted: [Option<Duration>; Class::ALL.len()],
        seconds: f64,
    ) -> Vec<ClassMetrics> {
        let Some(classes) = view.classes() else { return Vec::new() };
        let (rules, objectives) = (&classes.rules, &classes.objectives);
        let all = figures(view, rules.rules().len() + 1);
        let us = |time: Duration| time.as_nanos() as f64 / 1e3;
        let metrics = |(rule, (packets, latency)): (usize, (u64, Histogram))| {
            let class = rules.class_of(rule);
            let at = |share| latency.quantile(share).map(|nanos| nanos as f64 / 1e3);
            let (measured, objective) = (at(objectives.percentile), objectives.of(class).map(us));
            ClassMetrics {
                name: rules.name_of(rule).to_owned(),
                kind: class.to_string(),
                packets,
                rate: if seconds > 0.0 { packets as f64 / seconds } else { 0.0 },
                sampled: latency.count(),
                on: objectives.latency.name().to_owned(),
                latency_us_p50: at(0.5),
                latency_us_p99: at(0.99),
                latency_us_p995: at(0.995),
                percentile: objectives.percentile,
                latency_us: measured,
                objective_us: objective,
                met: measured.zip(objective).map(|(measured, most)| measured <= most),
                predicted_us: predicted[class.index()].map(us),
            }
        };
        all.into_iter().enumerate().map(metrics).collect()
    }

    /// The latencies of each lane in nanoseconds, in the order of lanes; none where classes are not measured.
    pub fn latencies_by_lane(view: &RunView) -> Vec<Histogram> {
        let of_lane = |lane: &Arc<ClassFigures>| {
            let all = Histogram::new();
            lane.rules().for_each(|rule| all.add(&rule.latency));
            all
        };
        view.class_figures().iter().map(of_lane).collect()
    }

    /// The latencies of each class in nanoseconds, by the classes' names; none where classes are not measured.
    pub fn latencies(view: &RunView) -> Vec<(String, Histogram)> {
        let Some(classes) = view.classes() else { return Vec::new() };
        let all = figures(view, classes.rules.rules().len() + 1);
        let named = |(rule, (_, latency))| (classes.rules.name_of(rule).to_owned(), latency);
        all.into_iter().enumerate().map(named).collect()
    }
}

/// Packets and latencies by class, of all lanes.
fn figures(view: &RunView, classes: usize) -> Vec<(u64, Histogram)> {
    let mut all = vec![(0, Histogram::new()); classes];
    for lane in view.class_figures() {
        for ((packets, latency), of_lane) in all.iter_mut().zip(lane.rules()) {
            *packets += of_lane.packets;
            latency.add(&of_lane.latency);
        }
    }
    all
}

impl fmt::Display for ClassMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ClassMetrics { name, kind, packets, rate, on, .. } = self;
        write!(f, "{name} ({kind}): {packets} packets, {rate:.0} per second")?;
        match (self.latency_us_p50, self.latency_us_p99, self.latency_us_p995) {
            (Some(p50), Some(p99), Some(p995)) => {
                write!(f, "; {on} p50 {p50:.1}, p99 {p99:.1}, p99.5 {p995:.1} us")?;
            }
            _ => write!(f, "; {on} unknown")?,
        }
        if let Some(objective) = self.objective_us {
            let word = match self.met {
                Some(true) => "met",
                Some(false) => "missed",
                None => "not known to be met",
            };
            let percent = (self.percentile * 1e6).round() / 1e4;
            write!(f, "; objective {objective} us at {percent} % {word}")?;
        }
        match self.predicted_us {
            Some(predicted) => write!(f, ", predicted {predicted:.1} us"),
            None => Ok(()),
        }
    }
}
