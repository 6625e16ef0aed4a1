//! Whether XDP is native on an interface, found out by attaching a program.

use std::sync::Arc;

use rheostat_base::DeviceId;
use rheostat_capture::Filter;
use rheostat_io::backend::bpf::{AttachMode, ProgramConfig, XdpProgram};
use rheostat_steer::{HashKey, HashOptions, Orientation, Steering};

/// Attaches the program that a run attaches, after telling it to let every packet pass, and detaches it
/// again; otherwise why it cannot be attached.
pub(super) fn attaches_natively(interface: u32) -> Result<(), String> {
    let orientation = vec![Orientation::Inside];
    let steering = Steering::new(&HashKey::MICROSOFT, 128, 128, orientation)
        .map_err(|error| error.to_string())?;
    let config = ProgramConfig {
        steering: Arc::new(steering),
        device: DeviceId(0),
        hashing: HashOptions::default(),
        queues: 1,
        filter: Filter::default(),
    };
    let mut program = XdpProgram::load(&config).map_err(|error| error.to_string())?;
    // No socket is registered, and from here on no packet is even looked at.
    drop(program.stop());
    program.attach(interface, AttachMode::Native).map_err(|error| error.to_string())?;
    Ok(())
}
