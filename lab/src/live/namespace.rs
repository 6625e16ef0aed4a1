//! Network namespaces that last as long as a measurement.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, thread};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::LiveError;

/// A namespace of our own, deleted with its interfaces when dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    pub(crate) fn new(role: &str) -> Result<Namespace, LiveError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rheo-bench-{}-{number}-{role}", std::process::id());
        run("ip", &["netns", "add", &name], "")?;
        Ok(Namespace { name })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `ip` with these words, in the namespace.
    pub(crate) fn ip(&self, words: &str) -> Result<(), LiveError> {
        let mut arguments = vec!["-n", &self.name];
        arguments.extend(words.split(' '));
        run("ip", &arguments, "")
    }

    /// Runs a command in the namespace, with `input` as its standard input.
    pub(crate) fn exec(&self, words: &str, input: &str) -> Result<(), LiveError> {
        let mut arguments = vec!["netns", "exec", &self.name];
        arguments.extend(words.split(' '));
        run("ip", &arguments, input)
    }

    /// A command that will run in the namespace.
    pub(crate) fn command(&self, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Has the calling thread in the namespace while `inside` runs.
    pub(crate) fn enter<T>(&self, inside: impl FnOnce() -> T) -> Result<T, LiveError> {
        let failed = |error: io::Error| LiveError::Enter { name: self.name.clone(), error };
        let home = File::open("/proc/thread-self/ns/net").map_err(failed)?;
        let there = File::open(format!("/run/netns/{}", self.name)).map_err(failed)?;
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(there.as_fd(), network).map_err(|errno| failed(errno.into()))?;
        let outcome = inside();
        move_into_link_name_space(home.as_fd(), network).map_err(|errno| failed(errno.into()))?;
        Ok(outcome)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing can be done about a namespace that does not go.
        let _ = run("ip", &["netns", "del", &self.name], "");
    }
}

/// Runs a command to its end; its output is the error's.
fn run(program: &str, arguments: &[&str], input: &str) -> Result<(), LiveError> {
    let failed = |message: String| LiveError::Command {
        command: format!("{program} {}", arguments.join(" ")),
        message,
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // A command that reads nothing closes its end; that is no error.
        thread::spawn(move || io::Write::write_all(&mut stdin, input.as_bytes()));
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = if output.stderr.is_empty() { output.stdout } else { output.stderr };
    Err(failed(String::from_utf8_lossy(&said).trim().to_owned()))
}
