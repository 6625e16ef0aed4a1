//! `rheo run` over AF_XDP, on all cores but the source's.

use std::path::Path as FilePath;
use std::time::Duration;
use std::{fs, thread};

use rheostat_base::CoreId;

use crate::live::error::LiveError;
use crate::live::path::LivePath;
use crate::live::wires::{LAN, SINK_ADDRESS, WAN, Wires};
use crate::testbed::{Cores, RheoProcess, TestbedError};

/// Starts it, and waits until both interfaces have its programs.
pub(super) fn start(
    path: LivePath,
    wires: &Wires,
    flows: u32,
    rheo: &FilePath,
) -> Result<RheoProcess, LiveError> {
    // The core of the lane: the last, as the source has the first.
    let config_text = configuration(path, flows, Cores::available()?.last());
    let mut process = RheoProcess::start(&wires.middle, rheo, |folder| {
        let config = folder.join("config.toml");
        fs::write(&config, config_text)
            .map_err(|error| TestbedError::file("config.toml", error))?;
        let config = config.display().to_string();
        Ok(["run", &config, "--json", "--lanes", "1"].map(String::from).to_vec())
    })?;
    process
        .wait_until(|_| [LAN, WAN].iter().all(|interface| wires.middle.has_program(interface)))?;
    // Programs are attached last but for the first poll.
    thread::sleep(Duration::from_millis(200));
    Ok(process)
}

/// One lane that sleeps when there is nothing to do, so that idle time is counted as idle. The NAT maps
/// as Linux does, by remote endpoints, too.
fn configuration(path: LivePath, flows: u32, core: CoreId) -> String {
    let device = |name: &str, side: &str, address: &str| {
        format!(
            "[[device]]\nname = \"{name}\"\nkind = \"af_xdp\"\ninterface = \"{name}\"\nside = \"{side}\"\n{address}\n"
        )
    };
    let rest = format!(
        "[workers]\ncores = \"{}\"\n\n[state]\nflows = {}\n\n[polling]\npolicy = \"interrupt\"\n",
        core.0,
        2 * flows
    );
    if path == LivePath::RheoForward {
        let devices = device(LAN, "inside", "") + &device(WAN, "outside", "");
        return format!("{devices}\n[chain]\nfunctions = []\n\n{rest}");
    }
    let devices = device(LAN, "inside", "address = [\"192.168.77.1/24\"]")
        + &device(WAN, "outside", "address = [\"203.0.113.1/24\"]");
    format!(
        "{devices}\n[[route]]\nto = \"0.0.0.0/0\"\nvia = \"{SINK_ADDRESS}\"\n\n[chain]\nfunctions = [\"nat\"]\n\n\
         [function.nat]\nexternal = [\"203.0.113.1\"]\nmapping = \"address-and-port-dependent\"\n\n{rest}"
    )
}
