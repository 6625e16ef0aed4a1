//! AF_XDP devices on real interfaces: pairs of virtual Ethernet devices in a network namespace of each
//! test's own. Needs root, and is only run with `RHEO_ROOT_TESTS=1`; prints when it is not.

mod busy_poll;
mod claimants;
mod crossing;
mod jumbo;
mod lanes;
mod lifecycle;
mod ordered;
mod refused;
mod rig;
