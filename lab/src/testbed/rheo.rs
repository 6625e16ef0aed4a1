//! A command `rheo` that runs in a namespace.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use super::error::TestbedError;
use super::namespace::Namespace;
use super::process::Process;

/// How long it may take to start, for which the kernel verifies its programs, and to end.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Lines of its output that an error has.
const LAST_LINES: usize = 8;

/// A running `rheo`, killed when dropped.
#[derive(Debug)]
pub(crate) struct RheoProcess {
    process: Process,
    folder: tempfile::TempDir,
}

impl RheoProcess {
    /// Starts `rheo` in `namespace` with the arguments that `arguments` makes; it may put files for them into the folder that it
    /// is given. The process may use the cores that the calling thread may.
    pub(crate) fn start(
        namespace: &Namespace,
        rheo: &Path,
        arguments: impl FnOnce(&Path) -> Result<Vec<String>, TestbedError>,
    ) -> Result<RheoProcess, TestbedError> {
        let folder = tempfile::Builder::new()
            .prefix("rheo-bench-")
            .tempdir()
            .map_err(|error| TestbedError::file("a temporary folder", error))?;
        let create = |name: &str| {
            File::create(folder.path().join(name)).map_err(|error| TestbedError::file(name, error))
        };
        let arguments = arguments(folder.path())?;
        let mut command = namespace.command(rheo);
        command.args(&arguments).stdin(Stdio::null()).stdout(create("out")?).stderr(create("log")?);
        let process = Process::start(&mut command).map_err(|error| TestbedError::Command {
            command: format!("{} {}", rheo.display(), arguments.join(" ")),
            message: error.to_string(),
        })?;
        Ok(RheoProcess { process, folder })
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it; its standard output.
    pub(crate) fn stop(mut self) -> Result<String, TestbedError> {
        self.process.terminate();
        let end = Instant::now() + TIMEOUT;
        while Instant::now() < end {
            match self.process.status() {
                Some(status) if status.success() => return Ok(self.output()),
                Some(status) => return Err(self.failed(&status.to_string())),
                None => thread::sleep(Duration::from_millis(20)),
            }
        }
        Err(self.failed("nothing: it does not end"))
    }

    /// Waits until `is_ready`, which is asked again and again.
    pub(crate) fn wait_until(
        &mut self,
        is_ready: impl Fn(&Self) -> bool,
    ) -> Result<(), TestbedError> {
        let end = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.process.status() {
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
        self.written("out")
    }

    /// What it wrote to one of its files.
    fn written(&self, name: &str) -> String {
        let text = fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        text.trim().to_owned()
    }

    fn failed(&self, status: &str) -> TestbedError {
        let text = format!("{}\n{}", self.written("log"), self.output());
        let lines: Vec<_> = text.trim().lines().collect();
        let output = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        TestbedError::Rheo { status: status.to_owned(), output }
    }
}

#[cfg(test)]
mod tests {
    //! Timed: devices.

    use rheostat_testkit::namespace::as_root;

    use super::*;

    fn start(script: &str) -> (RheoProcess, Namespace) {
        let namespace = Namespace::new("rheo").unwrap();
        let arguments = ["-c", script].map(String::from).to_vec();
        (RheoProcess::start(&namespace, "sh".as_ref(), |_| Ok(arguments)).unwrap(), namespace)
    }

    #[test]
    fn a_program_that_ends_too_early_is_an_error_with_its_last_lines() {
        if !as_root() {
            return;
        }
        let (mut process, _namespace) = start("seq 20; exit 3");
        let error = process.wait_until(|_| false).unwrap_err();
        let TestbedError::Rheo { status, output } = error else { panic!("{error}") };
        assert_eq!(status, "exit status: 3");
        assert_eq!(output, "13\n14\n15\n16\n17\n18\n19\n20");
    }

    #[test]
    fn a_program_that_ends_in_good_order_has_its_output() {
        if !as_root() {
            return;
        }
        let script = "trap 'echo over; exit 0' TERM; echo ready; while :; do sleep 0.01; done";
        let (mut process, _namespace) = start(script);
        process.wait_until(|process| process.output() == "ready").unwrap();
        assert_eq!(process.stop().unwrap(), "ready\nover");
    }
}
