//! The run between the two hosts: a process of this program in the gateway's namespace.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::network::TriedNetwork;
use super::{delete_folder, end};

/// How long the run may take to start and to end.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(20);

/// Why there is no run between the hosts.
#[derive(Debug, Error)]
pub(crate) enum GatewayError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the gateway did not start: {0}")]
    Ended(String),
}

/// The run. Dropping it ends the run, and deletes its folder.
#[derive(Debug)]
pub(super) struct Gateway {
    child: Child,
    folder: PathBuf,
    program: PathBuf,
}

impl Gateway {
    /// Starts a run with this configuration, and waits until it answers.
    ///
    /// # Errors
    /// [`GatewayError::Ended`] with what the run printed.
    pub(super) fn start(network: &TriedNetwork, config: &str) -> Result<Gateway, GatewayError> {
        let folder = std::env::temp_dir().join(format!("rheo-try-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&folder)?;
        let made = Gateway::start_in(folder.clone(), network, config);
        if made.is_err() {
            delete_folder(&folder);
        }
        made
    }

    fn start_in(
        folder: PathBuf,
        network: &TriedNetwork,
        config: &str,
    ) -> Result<Gateway, GatewayError> {
        let program = std::env::current_exe()?;
        fs::write(folder.join("rheo.toml"), config)?;
        let log = File::create(folder.join("rheo.log"))?;
        let mut command = Command::new("ip");
        command.args(["netns", "exec", network.gateway()]).arg(&program).arg("run");
        command.arg(folder.join("rheo.toml")).arg("--control").arg(folder.join("rheo.sock"));
        // Ctrl-C is for the parent, which ends the run last.
        command.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn()?;
        let mut gateway = Gateway { child, folder, program };
        let start = Instant::now();
        while !gateway.command(&["status"]).output()?.status.success() {
            if !gateway.is_running() || start.elapsed() > PATIENCE {
                let log = fs::read_to_string(gateway.folder.join("rheo.log"))?;
                return Err(GatewayError::Ended(log.trim().to_owned()));
            }
            thread::sleep(GLANCE);
        }
        Ok(gateway)
    }

    /// A command of this program about the run.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--control").arg(self.socket());
        command.process_group(0).stdin(Stdio::null());
        command
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Ends the run in good order.
    pub(super) fn stop(&mut self) {
        let stopped = self.command(&["stop"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        let start = Instant::now();
        while stopped.is_ok() && self.is_running() && start.elapsed() < PATIENCE {
            thread::sleep(GLANCE);
        }
    }

    /// Where its files are.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn config(&self) -> PathBuf {
        self.folder.join("rheo.toml")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("rheo.sock")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        end(&mut self.child);
        let _ = self.child.wait();
        delete_folder(&self.folder);
    }
}
