//! Services in lanes, against clients made of the same protocol core, in virtual time.

mod bounds;
mod captures;
mod conversations;
mod fragments;
mod http;
mod moves;
mod odd_segments;
mod paths;
mod resp;
mod rig;
