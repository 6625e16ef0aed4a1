//! Shards change lanes while packets arrive. Whatever the schedule: nothing is lost but what is counted
//! as dropped, nothing leaves twice, flows keep their order, and each shard has one owner.

/// The service of the example, with its clients, which know what each answer must be.
#[path = "../examples/key_value"]
mod key_value {
    pub(crate) mod client;
    pub(crate) mod request;
    pub(crate) mod service;
}

pub(crate) mod equivalence;
pub(crate) mod late_table;
mod pauses;
pub(crate) mod schedule;
mod sent_log;
mod service;
mod service_on_threads;
mod simulation;
