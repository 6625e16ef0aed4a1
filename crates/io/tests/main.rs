//! Devices as their users see them.

mod af_packet;
mod af_xdp;
mod answering;
mod bpf_xdp;
mod capture_device;
mod capture_reader;
mod faulty_device;
mod impaired_device;
mod ordered_departures;
mod pcapng_writer;
mod pumped_nic;
mod shared_queue;
mod sim_nic;
mod support;
mod tap;
mod traces;
