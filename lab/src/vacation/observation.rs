//! What was seen of vacations, whether measured or simulated.

use std::time::Duration;

use super::model::{kolmogorov_smirnov, kolmogorov_smirnov_of_bins};
use super::simulation::{Simulation, SimulationResult};

/// The vacations of one lane, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Vacations {
    /// One by one.
    Each(Vec<f64>),
    /// Pairs of the largest vacation of a bin and how many it has, ascending.
    Binned(Vec<(f64, u64)>),
}

impl Vacations {
    /// The Kolmogorov-Smirnov distance from a law with this P(V > x).
    pub fn distance(&self, survival: impl Fn(f64) -> f64) -> f64 {
        match self {
            Vacations::Each(samples) => kolmogorov_smirnov(samples, survival),
            Vacations::Binned(bins) => kolmogorov_smirnov_of_bins(bins, survival),
        }
    }
}

/// One lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaneObservation {
    /// Packets per second that arrived.
    pub rate: f64,
    /// The share of the time in which a worker worked on its packets.
    pub rho: f64,
    /// The mean vacation in seconds.
    pub vacation_mean: f64,
    /// E\[V²\] in seconds².
    pub vacation_mean_square: f64,
    /// Vacations.
    pub vacations: u64,
    /// Of these, those that another worker ended than the one that had left.
    pub won_by_other: u64,
    /// Tries of its lock.
    pub tries: u64,
    /// Tries that found it taken.
    pub lost_tries: u64,
    /// The mean busy period in seconds.
    pub busy_mean: f64,
}

/// What was seen in the part of a case that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The lanes.
    pub lanes: Vec<LaneObservation>,
    /// The vacations of lane 0.
    pub vacations: Vacations,
    /// The mean time of a packet's processing, in seconds.
    pub service: f64,
    /// Packets found at the end of a vacation (N_V), where they were counted.
    pub found: Option<f64>,
    /// The mean latency in seconds; none without packets, as the next two.
    pub latency_mean: Option<f64>,
    /// The median.
    pub latency_p50: Option<f64>,
    /// What all but one in a hundred do not exceed.
    pub latency_p99: Option<f64>,
    /// Packets that left.
    pub packets: u64,
    /// CPU time of all workers ÷ (time × lanes).
    pub cpu_share: f64,
    /// Packets lost ÷ packets that arrived.
    pub loss: f64,
    /// How long threads were ready without a core, and what the hypervisor took; where it was measured.
    pub disturbance: Option<(Duration, Duration)>,
}

impl Observation {
    /// What a simulation of this setup came to.
    pub fn simulated(setup: &Simulation, result: &SimulationResult) -> Observation {
        let seconds = setup.length.saturating_sub(setup.warm_up).as_secs_f64();
        let lanes = result.lanes.iter().map(|lane| LaneObservation {
            rate: (lane.packets + lane.lost) as f64 / seconds,
            rho: lane.packets as f64 * setup.service.as_secs_f64() / seconds,
            vacation_mean: lane.vacation_mean(),
            vacation_mean_square: lane.vacation_mean_square(),
            vacations: lane.vacation_count,
            won_by_other: lane.won_by_other,
            tries: lane.tries,
            lost_tries: lane.lost_tries,
            busy_mean: lane.busy_sum / lane.vacation_count.max(1) as f64,
        });
        let packets: u64 = result.lanes.iter().map(|lane| lane.packets).sum();
        let found: u64 = result.lanes.iter().map(|lane| lane.found).sum();
        let vacations: u64 = result.lanes.iter().map(|lane| lane.vacation_count).sum();
        let quantile = |q| result.latencies.quantile(q).map(|nanos| nanos as f64 / 1e9);
        Observation {
            lanes: lanes.collect(),
            vacations: Vacations::Each(result.lanes[0].vacations.clone()),
            service: setup.service.as_secs_f64(),
            found: Some(found as f64 / vacations.max(1) as f64),
            latency_mean: (packets > 0).then_some(result.latency_mean),
            latency_p50: quantile(0.5),
            latency_p99: quantile(0.99),
            packets,
            cpu_share: result.cpu_share,
            loss: result.loss(),
            disturbance: None,
        }
    }

    /// The mean over all lanes.
    pub fn mean(&self, of: impl Fn(&LaneObservation) -> f64) -> f64 {
        self.lanes.iter().map(of).sum::<f64>() / self.lanes.len().max(1) as f64
    }

    /// The sum over all lanes.
    pub fn sum(&self, of: impl Fn(&LaneObservation) -> u64) -> f64 {
        self.lanes.iter().map(of).sum::<u64>() as f64
    }
}
