//! Services in lanes, against clients made of the same protocol core, in virtual time.

mod bounds;
mod connecting;
mod conversations;
mod fragments;
mod http;
mod listing;
mod moves;
mod paths;
mod relaying;
mod resp;
mod rig;
mod sockets;
