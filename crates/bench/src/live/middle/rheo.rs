//! `rheo run` over AF_XDP, on all cores but the source's.

use std::fs::{self, File};
use std::path::Path as FilePath;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rheostat_base::CoreSet;
use rustix::process::{Pid, Signal, kill_process};

use crate::live::error::LiveError;
use crate::live::path::Path;
use crate::live::wires::{LAN, SINK_ADDRESS, WAN, Wires};

/// How long it may take to start, for which the kernel verifies its programs, and to end.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running `rheo`, killed when dropped.
#[derive(Debug)]
pub(crate) struct Rheo {
    child: Child,
    folder: tempfile::TempDir,
}

impl Rheo {
    pub(super) fn start(
        path: Path,
        wires: &Wires,
        flows: u32,
        rheo: &FilePath,
    ) -> Result<Rheo, LiveError> {
        let folder = tempfile::Builder::new()
            .prefix("rheo-bench-")
            .tempdir()
            .map_err(|error| LiveError::file("a temporary folder", error))?;
        let config = folder.path().join("config.toml");
        let create = |name: &str| {
            File::create(folder.path().join(name)).map_err(|error| LiveError::file(name, error))
        };
        fs::write(&config, configuration(path, flows))
            .map_err(|error| LiveError::file("config.toml", error))?;
        let child = wires
            .middle
            .command(rheo)
            .arg("run")
            .arg(&config)
            .args(["--json", "--lanes", "1"])
            .stdin(Stdio::null())
            .stdout(create("out")?)
            .stderr(create("log")?)
            .spawn()
            .map_err(|error| LiveError::Command {
                command: format!("{} run", rheo.display()),
                message: error.to_string(),
            })?;
        let mut rheo = Rheo { child, folder };
        rheo.wait_until_ready(wires)?;
        Ok(rheo)
    }

    /// The process.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends it; its summary.
    pub(super) fn stop(mut self) -> Result<String, LiveError> {
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, Signal::TERM);
        let end = Instant::now() + TIMEOUT;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                if status.success() {
                    return Ok(self.said("out"));
                }
                return Err(self.failed(&status.to_string()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(self.failed("nothing: it does not end"))
    }

    /// It is ready once both interfaces have its programs.
    fn wait_until_ready(&mut self, wires: &Wires) -> Result<(), LiveError> {
        let end = Instant::now() + TIMEOUT;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failed(&status.to_string()));
            }
            if wires.has_program(LAN) && wires.has_program(WAN) {
                // Programs are attached last but for the first poll.
                thread::sleep(Duration::from_millis(200));
                return Ok(());
            }
            if Instant::now() > end {
                return Err(self.failed("nothing: it does not start"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What it wrote to one of its files.
    fn said(&self, name: &str) -> String {
        let said = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        said.trim().to_owned()
    }

    fn failed(&self, status: &str) -> LiveError {
        let said = format!("{}\n{}", self.said("log"), self.said("out"));
        let tail: Vec<&str> = said.trim().lines().rev().take(8).collect();
        let said = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
        LiveError::Rheo { status: status.to_owned(), said }
    }
}

impl Drop for Rheo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The core of the lane: the last, as the source has the first.
fn core() -> u16 {
    let available = CoreSet::available();
    available.iter().flat_map(CoreSet::cores).last().map_or(0, |core| core.0)
}

/// One lane that sleeps when there is nothing to do, so that idle time is counted as idle. The NAT maps
/// as Linux does, by remote endpoints, too.
fn configuration(path: Path, flows: u32) -> String {
    let device = |name: &str, side: &str, address: &str| {
        format!(
            "[[device]]\nname = \"{name}\"\nkind = \"af_xdp\"\ninterface = \"{name}\"\nside = \"{side}\"\n{address}\n"
        )
    };
    let rest = format!(
        "[workers]\ncores = \"{}\"\n\n[state]\nflows = {}\n\n[polling]\npolicy = \"interrupt\"\n",
        core(),
        2 * flows
    );
    if path == Path::RheoForward {
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
