//! Where the workers of a service run, as `--place` states it.

use std::fs;

use rheostat_base::placement::Siblings;
use rheostat_base::{CoreId, CoreSet, Topology};
use rheostat_control::Config;
use rheostat_control::config::{DeviceKind, ServeConfig};

use crate::failure::Failure;

/// Picks the cores of the workers, if a placement is given, and says which.
///
/// # Errors
/// [`Failure`] when the machine has no such places, or too few.
pub(super) fn place(config: &mut Config, serve: &ServeConfig) -> Result<(), Failure> {
    let Some(placement) = serve.place else { return Ok(()) };
    if placement.siblings == Siblings::Split {
        return Err(Failure::NoDispatcher { scheduler: serve.scheduler });
    }
    let available = CoreSet::available()?;
    let usable: Vec<CoreId> = match &config.workers.cores {
        Some(list) => list.cores().to_vec(),
        None => available.cores().to_vec(),
    };
    let topology = Topology::of_this_machine();
    let workers = config.workers.count.or(config.workers.lanes).map(usize::from);
    let placed = placement.resolve(&topology, &usable, device_node(config), workers)?;
    let names: Vec<_> = placed.network.iter().map(|core| core.0.to_string()).collect();
    let names = names.join(",");
    config.workers.cores = names.parse().ok();
    err!("placed by {placement}: workers on {names} of {}", describe(&topology));
    Ok(())
}

/// A machine in a few words, with what it cannot show.
fn describe(topology: &Topology) -> String {
    let cores = topology.cores();
    let threads = cores.iter().map(Vec::len).max().unwrap_or(0);
    let nodes = topology.nodes().len();
    let mut missing = Vec::new();
    if threads < 2 {
        missing.push("of sharing a core");
    }
    if nodes < 2 {
        missing.push("of far memory");
    }
    let missing = match missing.as_slice() {
        [] => String::new(),
        missing => format!("; effects {} do not arise here", missing.join(" and ")),
    };
    format!("{} cores, {threads} threads each at most, {nodes} nodes{missing}", cores.len())
}

/// The node that the device is next to, where the kernel says.
fn device_node(config: &Config) -> Option<u32> {
    let DeviceKind::Live(live) = &config.devices.first()?.kind else { return None };
    let interface = live.interface.as_ref()?;
    let path = format!("/sys/class/net/{interface}/device/numa_node");
    // -1 where it is not known.
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
