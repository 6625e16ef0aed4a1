//! The command as its users meet it.

mod balancing;
mod bench_solver;
mod bench_timers;
mod capture;
mod check;
mod configurations;
mod control;
mod devices;
mod doctor;
mod explain;
mod files;
mod generate;
mod instance;
mod instructions;
mod limits;
mod migrate;
mod offloading;
mod polling;
mod privileges;
mod processes;
mod profile;
mod queue_sharing;
mod report;
mod seed;
mod sim_queues;
mod vacation;
