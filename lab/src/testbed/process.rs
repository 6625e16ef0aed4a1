//! A program that runs beside the experiment.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process};

/// A process, killed by its id when dropped. It may use the cores that the thread which started it may.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> io::Result<Process> {
        Ok(Process { child: command.spawn()? })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process itself, for its pipes.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its status, once it has ended.
    pub(crate) fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Requests its end.
    pub(crate) fn terminate(&mut self) {
        // Once its status is read, its id may be that of another process.
        if self.status().is_none() {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
    }

    /// Waits for its end, however long that takes; its status, and its standard output where that is a pipe.
    pub(crate) fn finish(mut self) -> io::Result<(ExitStatus, String)> {
        let mut bytes = Vec::new();
        if let Some(mut output) = self.child.stdout.take() {
            output.read_to_end(&mut bytes)?;
        }
        Ok((self.child.wait()?, String::from_utf8_lossy(&bytes).into_owned()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Neither does anything to a process whose status was read.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    //! Timed: processes.

    use std::path::PathBuf;
    use std::process::Stdio;

    use super::*;

    fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        Process::start(command.args(["-c", script]).stdout(Stdio::piped())).expect("a shell")
    }

    #[test]
    fn a_process_is_gone_when_dropped() {
        let process = shell("exec sleep 600");
        let place = PathBuf::from(format!("/proc/{}", process.id()));
        assert!(place.exists());
        drop(process);
        assert!(!place.exists());
    }

    #[test]
    fn the_output_of_a_process_that_ends_is_whole() {
        let (status, output) = shell("echo first; echo last; exit 3").finish().unwrap();
        assert_eq!((status.code(), output.as_str()), (Some(3), "first\nlast\n"));
    }

    #[test]
    fn a_process_ends_on_request() {
        let mut process = shell("exec sleep 600");
        process.terminate();
        assert!(!process.finish().unwrap().0.success());
    }
}
