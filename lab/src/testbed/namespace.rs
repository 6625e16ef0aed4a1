//! Network namespaces that last as long as an experiment, and virtual cables between them.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::error::TestbedError;

/// How long the kernel may take to take a cable up.
const TIMEOUT: Duration = Duration::from_secs(60);
/// From one look at a cable to the next.
const LOOK: Duration = Duration::from_millis(10);

/// A namespace of this process, deleted with its interfaces when dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// A new one, whose name contains the process and `role`.
    pub(crate) fn new(role: &str) -> Result<Namespace, TestbedError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("rheo-bench-{}-{number}-{role}", std::process::id());
        run("ip", &["netns", "add", &name], "")?;
        Ok(Namespace { name })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `ip` with these words in the namespace, and returns its output.
    pub(crate) fn ip(&self, words: &str) -> Result<String, TestbedError> {
        let mut arguments = vec!["-n", &self.name];
        arguments.extend(words.split(' '));
        run("ip", &arguments, "")
    }

    /// Runs a command in the namespace, with `input` as its standard input, and returns its output.
    pub(crate) fn exec(&self, words: &str, input: &str) -> Result<String, TestbedError> {
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
    pub(crate) fn enter<T>(&self, inside: impl FnOnce() -> T) -> Result<T, TestbedError> {
        let failed = |error: io::Error| TestbedError::Enter { name: self.name.clone(), error };
        let home = File::open("/proc/thread-self/ns/net").map_err(failed)?;
        let there = File::open(format!("/run/netns/{}", self.name)).map_err(failed)?;
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(there.as_fd(), network).map_err(|errno| failed(errno.into()))?;
        let outcome = inside();
        move_into_link_name_space(home.as_fd(), network).map_err(|errno| failed(errno.into()))?;
        Ok(outcome)
    }

    /// Whether an XDP program is on an interface of the namespace.
    pub(crate) fn has_program(&self, interface: &str) -> bool {
        self.link(interface).is_ok_and(|link| link.contains("prog/xdp"))
    }

    /// One line about an interface.
    fn link(&self, interface: &str) -> Result<String, TestbedError> {
        self.ip(&format!("-o link show dev {interface}"))
    }

    /// Waits until the kernel has taken an interface up, which it does some time after both ends of its cable were put up.
    /// Until then it drops all that is sent there.
    fn await_link(&self, interface: &str) -> Result<(), TestbedError> {
        let end = Instant::now() + TIMEOUT;
        while !self.link(interface)?.contains(" state UP ") {
            if Instant::now() > end {
                let (name, interface) = (self.name.clone(), interface.to_owned());
                return Err(TestbedError::Down { name, interface });
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // A namespace that stays does no harm to the next: names are not used twice.
        let _ = run("ip", &["netns", "del", &self.name], "");
    }
}

/// One end of a virtual cable.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamespaceEnd<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) interface: &'a str,
    /// Its hardware address; the kernel draws one where there is none.
    pub(crate) mac: Option<&'a str>,
    /// Features of the interface that are switched off, as ethtool names them.
    pub(crate) without: &'a [&'a str],
}

/// Lays a virtual cable, up at both ends and silent: IPv6 is off, so that the kernel sends nothing by itself. It is gone with
/// the namespace of either end.
pub(crate) fn lay(near: NamespaceEnd<'_>, far: NamespaceEnd<'_>) -> Result<(), TestbedError> {
    let address =
        |end: NamespaceEnd<'_>| end.mac.map(|mac| format!(" address {mac}")).unwrap_or_default();
    near.namespace.ip(&format!(
        "link add {}{} type veth peer name {}{} netns {}",
        near.interface,
        address(near),
        far.interface,
        address(far),
        far.namespace.name()
    ))?;
    for NamespaceEnd { namespace, interface, without, .. } in [near, far] {
        namespace.exec(&format!("sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1"), "")?;
        if !without.is_empty() {
            let off: String = without.iter().map(|feature| format!(" {feature} off")).collect();
            namespace.exec(&format!("ethtool -K {interface}{off}"), "")?;
        }
        namespace.ip(&format!("link set {interface} up"))?;
    }
    near.namespace.await_link(near.interface)?;
    far.namespace.await_link(far.interface)
}

/// Runs a command to its end, and returns its output, which the error has where it fails.
fn run(program: &str, arguments: &[&str], input: &str) -> Result<String, TestbedError> {
    let failed = |message: String| TestbedError::Command {
        command: format!("{program} {}", arguments.join(" ")),
        message,
    };
    let not_run = |error: io::Error| failed(error.to_string());
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_run)?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // A command that reads nothing closes its end; that is no error.
        thread::spawn(move || io::Write::write_all(&mut stdin, input.as_bytes()));
    }
    let output = child.wait_with_output().map_err(not_run)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let message = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    Err(failed(text(message).trim().to_owned()))
}

#[cfg(test)]
mod tests {
    //! Timed: devices.

    use std::path::PathBuf;

    use rheostat_testkit::namespace::as_root;

    use super::*;

    #[test]
    fn a_cable_is_up_and_silent_and_gone_with_a_namespace_of_its_ends() {
        if !as_root() {
            return;
        }
        let (one, other) = (Namespace::new("one").unwrap(), Namespace::new("other").unwrap());
        let mac = "02:00:00:00:00:07";
        let near =
            NamespaceEnd { namespace: &one, interface: "lan", mac: Some(mac), without: &["gro"] };
        lay(near, NamespaceEnd { namespace: &other, interface: "eth", mac: None, without: &[] })
            .unwrap();
        let link = one.link("lan").unwrap();
        assert!(link.contains(mac) && link.contains(" state UP "), "{link}");
        assert!(!one.has_program("lan"));
        let addresses = [&one, &other].map(|namespace| namespace.ip("addr show").unwrap());
        assert!(addresses.iter().all(|text| !text.contains("inet6")), "{addresses:?}");
        let features = one.exec("ethtool -k lan", "").unwrap();
        assert!(features.contains("generic-receive-offload: off"), "{features}");
        let place = PathBuf::from(format!("/run/netns/{}", other.name()));
        assert!(place.exists());
        drop(other);
        assert!(!place.exists());
        // The kernel removes what was in it some time after.
        while one.link("lan").is_ok() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_command_that_fails_is_named_with_its_output() {
        let failed = |arguments: &[&str]| run("sh", arguments, "").unwrap_err().to_string();
        assert_eq!(
            failed(&["-c", "echo x; echo y >&2; exit 1"]),
            "`sh -c echo x; echo y >&2; exit 1`: y"
        );
        assert_eq!(failed(&["-c", "echo x; exit 1"]), "`sh -c echo x; exit 1`: x");
        let missing = run("/nonexistent/program", &[], "").unwrap_err();
        assert!(matches!(missing, TestbedError::Command { .. }), "{missing}");
    }

    #[test]
    fn a_command_gets_its_input() {
        assert_eq!(run("cat", &[], "whole\n").unwrap(), "whole\n");
    }
}
