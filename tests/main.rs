//! The whole system: chains in runs, held against captures, cases and each other.

mod aiming;
mod balancing;
mod blocking;
mod bridging;
mod cases;
mod deleting;
mod detecting;
mod equivalence;
mod exhaustion;
mod forwarding;
mod joint_shards;
mod layers;
mod links;
mod migration;
mod monitoring;
mod offloading;
mod policing;
mod rounds;
mod routing;
mod sabotage;
mod schedule;
mod shared_translation;
mod short_connections;
mod timed;
mod transactions;
mod translation;
