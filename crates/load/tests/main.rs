//! The client against servers, good and bad.

mod bad_servers;
mod good_servers;
mod server;
