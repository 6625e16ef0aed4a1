//! A `rheo` with a function of its own, which limits the connections that each host opens, a service of its own, which counts, and
//! a kind of device and a scheduler of its own.

mod counter;
mod synlimit;

use std::process::ExitCode;

use rheostat::service::{DeviceRegistration, Opening, PacketDevice, InterfaceError};
use rheostat::tcp::{Queueing, SchedulerPlan, Split};

/// A kind of device of its own: packet sockets under another name.
fn wire(interface: &str, opening: &Opening<'_>) -> Result<PacketDevice, InterfaceError> {
    PacketDevice::open(opening.packet_sockets(interface), opening.pool)
}

/// A scheduler of its own: one lane, and application workers on all other cores.
fn front() -> SchedulerPlan {
    SchedulerPlan::dispatcher(Queueing::Ws, |cores| Split::new(1, cores.saturating_sub(1).max(1)))
}

fn main() -> ExitCode {
    rheostat::App::new()
        .named(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
        .shared_function::<synlimit::SynLimit>("synlimit")
        .application("counter", counter::Counter::new)
        .registered_device(DeviceRegistration::interface("wire", wire))
        .scheduler("front", front())
        .main()
}
