//! Connections face to face over a wire in virtual time, against a second implementation, and as scripts of segments.

mod clauses;
mod faults;
mod script;
mod second_implementation;
mod wire;
