//! The command as its users meet it.

mod balancing;
mod capture;
mod check;
mod control;
mod doctor;
mod explain;
mod generate;
mod instance;
mod privileges;
mod profile;
mod report;
mod seed;
