//! Connections face to face over a wire in virtual time, against a second implementation, and as scripts of segments.

mod faults;
mod second_implementation;
mod wire;
