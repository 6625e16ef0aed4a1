//! What queues and workers choose by: pure functions of queue lengths, shared by what runs and what simulates it.
//!
//! [`least_loaded_member`] and [`member_of_connection`] return where a request goes, [`choose_theft`] what an idle worker takes
//! from others, [`IdlePolicy`] whether it polls, pauses or sleeps, and [`members_to_wake`] how many sleepers are woken. Nothing
//! here allocates or reads a clock. Each takes time in proportion to the number of workers at most.

mod idle;
mod member;
mod theft;

pub use idle::{IdleAction, IdlePolicy, members_to_wake};
pub use member::{Outstanding, least_loaded_member, member_of_connection};
pub use theft::{Theft, choose_theft};
