//! Services in lanes, against clients made of the same protocol core, in virtual time.

mod bounds;
mod conversations;
mod http;
mod moves;
mod resp;
mod rig;
