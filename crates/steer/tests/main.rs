//! Packet sets, policies and dispatchers.

mod dispatch_statistics;
mod load;
mod packet_sets;
mod policy_optimum;
mod policy_properties;
mod policy_scaling;
mod policy_statistics;
