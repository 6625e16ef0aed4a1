//! Devices and their queues: the simulated NIC and captures.
