//! Vacations: models of Metronome, and what comes of them: with threads on this machine, and in a simulation of workers,
//! lanes and sleeps where a machine has too few cores. Both run the policies of the runtime.

mod arrivals;
mod bench;
mod cases;
mod expectation;
mod figure;
mod measurement;
mod model;
mod observation;
mod row;
mod simulation;
mod table;

pub use crate::datagrams::Spacing;
pub use bench::VacationBench;
pub use cases::{CaseRows, CaseTemplate, VacationCase};
pub use figure::{UnknownFigure, VacationFigure};
pub use measurement::Measurement;
pub use model::{
    EqualTimeouts, backup_wins, kolmogorov_smirnov, kolmogorov_smirnov_of_bins, mean_at_high_load,
    mean_latency_in_bursts, mean_latency_of_original,
};
pub use observation::{LaneObservation, Observation, Vacations};
pub use row::VacationRow;
pub use simulation::{
    Departure, Interference, Interval, LaneResult, MOST_SAMPLES, Policy, Simulation,
    SimulationResult,
};

#[cfg(test)]
mod tests;
