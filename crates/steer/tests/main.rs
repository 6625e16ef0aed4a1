//! Packet sets, policies and dispatchers.

mod dispatch_statistics;
mod dyssect_instances;
mod dyssect_optimum;
mod dyssect_properties;
mod load;
mod packet_sets;
mod policy_optimum;
mod policy_properties;
mod policy_scaling;
mod policy_statistics;
