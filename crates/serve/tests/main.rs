//! Services in lanes, against clients made of the same protocol core, in virtual time.

mod blocking;
mod bounds;
mod captures;
mod connecting;
mod conversations;
mod dispatcher;
mod fragments;
mod http;
mod http_conformance;
mod listing;
mod member_failures;
mod moves;
mod odd_segments;
mod paths;
mod relaying;
mod replies;
mod resp;
mod resp_clients;
mod rig;
mod shared_dispatchers;
mod sharing;
mod sockets;
mod syn_floods;
mod times;
mod tracing;
