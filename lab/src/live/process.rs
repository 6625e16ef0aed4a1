//! A command `rheo` that runs in a namespace.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::LiveError;
use super::namespace::Namespace;

/// How long it may take to start, for which the kernel verifies its programs, and to end.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running `rheo`, killed when dropped.
#[derive(Debug)]
pub(crate) struct RheoProcess {
    child: Child,
    folder: tempfile::TempDir,
}

impl RheoProcess {
    /// Starts `rheo` in `namespace` with the arguments that `arguments` makes; it may put files for them into the folder that it
    /// is given. The process may use the cores that the calling thread may.
    pub(crate) fn start(
        namespace: &Namespace,
        rheo: &Path,
        arguments: impl FnOnce(&Path) -> Result<Vec<String>, LiveError>,
    ) -> Result<RheoProcess, LiveError> {
        let folder = tempfile::Builder::new()
            .prefix("rheo-bench-")
            .tempdir()
            .map_err(|error| LiveError::file("a temporary folder", error))?;
        let create = |name: &str| {
            File::create(folder.path().join(name)).map_err(|error| LiveError::file(name, error))
        };
        let arguments = arguments(folder.path())?;
        let child = namespace
            .command(rheo)
            .args(&arguments)
            .stdin(Stdio::null())
            .stdout(create("out")?)
            .stderr(create("log")?)
            .spawn()
            .map_err(|error| LiveError::Command {
                command: format!("{} {}", rheo.display(), arguments.join(" ")),
                message: error.to_string(),
            })?;
        Ok(RheoProcess { child, folder })
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it; its standard output.
    pub(crate) fn stop(mut self) -> Result<String, LiveError> {
        let pid = Pid::from_child(&self.child);
        let _ = kill_process(pid, Signal::TERM);
        let end = Instant::now() + TIMEOUT;
        while Instant::now() < end {
            if let Ok(Some(status)) = self.child.try_wait() {
                if status.success() {
                    return Ok(self.output());
                }
                return Err(self.failed(&status.to_string()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(self.failed("nothing: it does not end"))
    }

    /// Waits until `is_ready`, which is asked again and again.
    pub(crate) fn wait_until(&mut self, is_ready: impl Fn(&Self) -> bool) -> Result<(), LiveError> {
        let end = Instant::now() + TIMEOUT;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(self.failed(&status.to_string()));
            }
            if is_ready(self) {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(self.failed("nothing: it does not start"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What it has written to standard output.
    pub(crate) fn output(&self) -> String {
        self.said("out")
    }

    /// What it wrote to one of its files.
    fn said(&self, name: &str) -> String {
        let said = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        said.trim().to_owned()
    }

    fn failed(&self, status: &str) -> LiveError {
        let said = format!("{}\n{}", self.said("log"), self.output());
        let tail: Vec<&str> = said.trim().lines().rev().take(8).collect();
        let said = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
        LiveError::Rheo { status: status.to_owned(), said }
    }
}

impl Drop for RheoProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
