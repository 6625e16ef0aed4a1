//! Vacations: what the model of Metronome says of them, and a simulation of workers, lanes and sleeps to hold it
//! against where a machine has too few cores.

mod arrivals;
mod model;
mod row;
mod simulation;

pub use arrivals::Spacing;
pub use model::{EqualTimeouts, backup_wins, kolmogorov_smirnov, mean_at_high_load};
pub use row::VacationRow;
pub use simulation::{
    Departure, Interference, Interval, LaneResult, MOST_SAMPLES, Policy, Simulation,
    SimulationResult,
};

#[cfg(test)]
mod tests;
