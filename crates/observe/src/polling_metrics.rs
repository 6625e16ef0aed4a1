//! How a run polls, in the summary: modes, tries, sleeps and vacations.

use std::fmt;
use std::time::Duration;

use rheostat_run::poll::metronome::Mode;
use rheostat_run::{LanePolling, PollingSample, WorkerPolling};
use serde::{Deserialize, Serialize};

/// How a run polls. The fields are those of `polling` in the JSON summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PollingMetrics {
    /// The policy: busy, interrupt, metronome or step-sleep.
    pub policy: String,
    /// The workers, in order.
    pub workers: Vec<WorkerMetrics>,
    /// The lanes, in order.
    pub lanes: Vec<LanePollingMetrics>,
    /// What keeps sleeps from taking the time that the policy requests; left out where nothing does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What one worker did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerMetrics {
    /// Tries of lanes' locks; none where lanes are bound to workers.
    pub tries: u64,
    /// Tries that found the lane taken by another worker.
    pub lost_tries: u64,
    /// Times that it woke up: from sleeps of a chosen length, and from waiting for an interrupt.
    pub wake_ups: u64,
    /// Of these, those from waiting for an interrupt.
    pub blocks: u64,
    /// Spins in place of sleeps that would have been too short.
    pub spins: u64,
}

/// How one lane was polled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanePollingMetrics {
    /// The present mode: busy, metronome or interrupt.
    pub mode: String,
    /// Seconds in busy mode.
    pub busy_seconds: f64,
    /// Seconds in metronome mode.
    pub metronome_seconds: f64,
    /// Seconds in interrupt mode.
    pub interrupt_seconds: f64,
    /// Tries of its lock.
    pub tries: u64,
    /// Tries that found it taken.
    pub lost_tries: u64,
    /// The target vacation in microseconds; `null` where there is none.
    pub target_us: Option<f64>,
    /// Vacations in metronome mode.
    pub vacations: u64,
    /// Of these, those that another worker ended than the one that had polled the lane last.
    #[serde(default)]
    pub won_by_other: u64,
    /// Their mean; `null` without any, as the next two.
    pub vacation_us_mean: Option<f64>,
    /// The median.
    pub vacation_us_p50: Option<f64>,
    /// What all but one in a hundred do not exceed.
    pub vacation_us_p99: Option<f64>,
    /// The histogram: pairs of the largest vacation of a bin in microseconds, and how many it has. Left out without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vacation_us: Vec<(f64, u64)>,
}

impl PollingMetrics {
    /// The metrics of a sample; none of a run that has no workers.
    pub fn of(sample: &PollingSample) -> Option<PollingMetrics> {
        (!sample.workers.is_empty()).then(|| PollingMetrics {
            policy: sample.policy.to_owned(),
            workers: sample.workers.iter().map(WorkerMetrics::of).collect(),
            lanes: sample.lanes.iter().map(LanePollingMetrics::of).collect(),
            warnings: sample.warnings.clone(),
        })
    }
}

impl WorkerMetrics {
    fn of(worker: &WorkerPolling) -> WorkerMetrics {
        let WorkerPolling { tries, lost, sleeps, spins, blocks } = *worker;
        WorkerMetrics { tries, lost_tries: lost, wake_ups: sleeps + blocks, blocks, spins }
    }
}

impl LanePollingMetrics {
    fn of(lane: &LanePolling) -> LanePollingMetrics {
        let spent = |mode: Mode| lane.spent[mode as usize].as_secs_f64();
        let us = |nanos: u64| nanos as f64 / 1e3;
        let vacations = &lane.vacations;
        let known = |nanos| (vacations.count > 0).then(|| us(nanos));
        LanePollingMetrics {
            mode: lane.mode.to_string(),
            busy_seconds: spent(Mode::Busy),
            metronome_seconds: spent(Mode::Metronome),
            interrupt_seconds: spent(Mode::Interrupt),
            tries: lane.tries,
            lost_tries: lane.lost,
            target_us: lane.target.map(|target: Duration| target.as_secs_f64() * 1e6),
            vacations: vacations.count,
            won_by_other: lane.won_by_other,
            vacation_us_mean: known(vacations.mean),
            vacation_us_p50: known(vacations.p50),
            vacation_us_p99: known(vacations.p99),
            vacation_us: vacations.bins.iter().map(|(nanos, count)| (us(*nanos), *count)).collect(),
        }
    }
}

/// Lines for people, of policies that have something to report.
impl fmt::Display for PollingMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |count: fn(&WorkerMetrics) -> u64| self.workers.iter().map(count).sum::<u64>();
        let (tries, lost) = (sum(|worker| worker.tries), sum(|worker| worker.lost_tries));
        write!(f, "polling   {}: {} wake-ups", self.policy, sum(|worker| worker.wake_ups))?;
        if tries > 0 {
            let share = lost as f64 * 100.0 / tries as f64;
            write!(f, ", {tries} tries of lanes ({share:.1} % lost)")?;
        }
        writeln!(f)?;
        for (number, lane) in self.lanes.iter().enumerate() {
            let Some(mean) = lane.vacation_us_mean else { continue };
            let all = lane.busy_seconds + lane.metronome_seconds + lane.interrupt_seconds;
            let share = |seconds: f64| if all > 0.0 { seconds * 100.0 / all } else { 0.0 };
            writeln!(
                f,
                "          lane {number:<4} busy {:.0} %, metronome {:.0} %, interrupt {:.0} %; vacation {mean:.1} us \
                 on average, p99 {:.1} us, target {:.1} us",
                share(lane.busy_seconds),
                share(lane.metronome_seconds),
                share(lane.interrupt_seconds),
                lane.vacation_us_p99.unwrap_or_default(),
                lane.target_us.unwrap_or_default(),
            )?;
        }
        for warning in &self.warnings {
            writeln!(f, "          {warning}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rheostat_run::Vacations;

    use super::*;

    fn sample() -> PollingSample {
        let spent = [Duration::ZERO, Duration::from_secs(3), Duration::from_secs(1)];
        let vacations =
            Vacations { count: 2, mean: 10_000, p50: 9_000, p99: 11_000, bins: vec![(11_000, 2)] };
        let target = Some(Duration::from_micros(10));
        let lane = LanePolling {
            mode: Mode::Interrupt,
            spent,
            tries: 40,
            lost: 4,
            target,
            vacations,
            won_by_other: 1,
        };
        let worker = WorkerPolling { tries: 40, lost: 4, sleeps: 30, spins: 1, blocks: 5 };
        let warnings = vec!["sleeps are long".to_owned()];
        PollingSample { policy: "metronome", lanes: vec![lane], workers: vec![worker], warnings }
    }

    #[test]
    fn modes_tries_and_vacations_are_told() {
        let metrics = PollingMetrics::of(&sample()).unwrap();
        let json = serde_json::to_value(&metrics).unwrap();
        assert_eq!(json["policy"], "metronome");
        assert_eq!(json["workers"][0]["wake_ups"], 35);
        let lane = &json["lanes"][0];
        assert_eq!((&lane["mode"], &lane["interrupt_seconds"]), (&"interrupt".into(), &1.0.into()));
        assert_eq!(lane["vacation_us"][0], serde_json::json!([11.0, 2]));
        assert_eq!((&lane["vacations"], &lane["won_by_other"]), (&2.into(), &1.into()));
        let text = metrics.to_string();
        assert!(text.contains("35 wake-ups, 40 tries of lanes (10.0 % lost)"), "{text}");
        assert!(text.ends_with("sleeps are long\n"), "{text}");
        assert!(text.contains("metronome 75 %, interrupt 25 %; vacation 10.0 us"), "{text}");
        let read: PollingMetrics = serde_json::from_value(json).unwrap();
        assert_eq!(read, metrics);
    }

    #[test]
    fn a_run_without_workers_has_no_figures_of_polling() {
        assert_eq!(PollingMetrics::of(&PollingSample::default()), None);
    }
}
