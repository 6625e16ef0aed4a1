//! The client against servers, good and bad.
//!
//! Timed: sockets, threads.

mod bad_servers;
mod good_servers;
mod server;
