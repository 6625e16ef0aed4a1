//! Three network namespaces in a row: a host inside, the gateway, a host outside. Nothing of them is in the namespace of the caller.

use std::io;
use std::process::{Command, Output, Stdio};

use thiserror::Error;

/// The beginning of the names of all namespaces of `rheo try`; the process follows.
const PREFIX: &str = "rheo-try-";

/// A command that makes the network has failed.
#[derive(Debug, Error)]
pub(crate) enum NetworkError {
    #[error("cannot start `{program}`: {source}; it belongs to the package {package}")]
    Missing { program: String, package: &'static str, source: io::Error },
    #[error("`{command}` failed: {message}")]
    Failed { command: String, message: String },
}

/// The namespaces. Dropping it deletes them, with their interfaces.
#[derive(Debug)]
pub(super) struct TriedNetwork {
    inside: String,
    gateway: String,
    outside: String,
}

/// Commands behind the name of a namespace, where `IN`, `GW` and `OUT` stand for the three.
const COMMANDS: [&str; 21] = [
    "ip netns add IN",
    "ip netns add GW",
    "ip netns add OUT",
    "ip -n GW link add lan type veth peer name eth0 netns IN",
    "ip -n GW link add wan type veth peer name eth0 netns OUT",
    "ip -n IN link set lo up",
    "ip -n OUT link set lo up",
    "ip -n GW link set lo up",
    "ip -n GW link set lan up",
    "ip -n GW link set wan up",
    "ip -n IN link set eth0 up",
    "ip -n OUT link set eth0 up",
    "ip -n IN addr add 192.168.77.2/24 dev eth0",
    "ip -n OUT addr add 203.0.113.254/24 dev eth0",
    "ip -n IN addr add fd77::2/64 dev eth0 nodad",
    "ip -n OUT addr add 2001:db8:113::fe/64 dev eth0 nodad",
    "ip -n IN route add default via 192.168.77.1",
    "ip -n IN route add default via fd77::1",
    // Without a NAT, the host outside knows the way; IPv6 is never translated.
    "ip -n OUT route add 192.168.77.0/24 via 203.0.113.1",
    "ip -n OUT route add fd77::/64 via 2001:db8:113::1",
    "ip -n GW link show lan",
];

/// What lets packets be on the cable as they are sent: no checksum and no segment is left to an interface.
const OFFLOADS: [&str; 4] = [
    "ip netns exec IN ethtool -K eth0 tx off tso off gso off gro off",
    "ip netns exec OUT ethtool -K eth0 tx off tso off gso off gro off",
    "ip netns exec GW ethtool -K lan tx off tso off gso off gro off",
    "ip netns exec GW ethtool -K wan tx off tso off gso off gro off",
];

impl TriedNetwork {
    /// Makes the network of this process. Namespaces of earlier processes that ended without deleting them are deleted.
    ///
    /// # Errors
    /// [`NetworkError`] with the command that failed; nothing is left then.
    pub(super) fn make() -> Result<TriedNetwork, NetworkError> {
        delete_stale();
        let name = |part: &str| format!("{PREFIX}{}-{part}", std::process::id());
        let network =
            TriedNetwork { inside: name("in"), gateway: name("gw"), outside: name("out") };
        for command in COMMANDS {
            network.carry_out(command)?;
        }
        for command in OFFLOADS {
            // Without ethtool, the gateway completes checksums and cuts segments.
            let _ = network.carry_out(command);
        }
        Ok(network)
    }

    /// The namespace of the host inside.
    pub(super) fn inside(&self) -> &str {
        &self.inside
    }

    /// That of the gateway.
    pub(super) fn gateway(&self) -> &str {
        &self.gateway
    }

    /// That of the host outside.
    pub(super) fn outside(&self) -> &str {
        &self.outside
    }

    fn carry_out(&self, command: &str) -> Result<(), NetworkError> {
        let words: Vec<_> = command
            .split(' ')
            .map(|word| match word {
                "IN" => self.inside.as_str(),
                "GW" => self.gateway.as_str(),
                "OUT" => self.outside.as_str(),
                word => word,
            })
            .collect();
        let output = output_of(&words)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(NetworkError::Failed {
                command: words.join(" "),
                message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }
}

impl Drop for TriedNetwork {
    fn drop(&mut self) {
        for name in [&self.inside, &self.outside, &self.gateway] {
            delete(name);
        }
    }
}

fn output_of(words: &[&str]) -> Result<Output, NetworkError> {
    let (program, arguments) = (words[0], &words[1..]);
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    output.map_err(|source| NetworkError::Missing {
        program: program.to_owned(),
        package: "iproute2",
        source,
    })
}

/// Deletes a namespace, if it is there.
fn delete(name: &str) {
    let _ = output_of(&["ip", "netns", "delete", name]);
}

/// Deletes namespaces whose process has ended, and ends the gateways that were left in them.
fn delete_stale() {
    let Ok(output) = output_of(&["ip", "netns", "list"]) else { return };
    let list = String::from_utf8_lossy(&output.stdout);
    // A line is a name, and its number where it has one.
    for name in list.lines().filter_map(|line| line.split_whitespace().next()) {
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let Some(process) = process.and_then(|(number, _)| number.parse::<i32>().ok()) else {
            continue;
        };
        if is_running(process) {
            continue;
        }
        if let Ok(output) = output_of(&["ip", "netns", "pids", name]) {
            let left = String::from_utf8_lossy(&output.stdout);
            let left = left.split_whitespace().filter_map(|word| word.parse().ok());
            for left in left.filter_map(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(left, rustix::process::Signal::TERM);
            }
        }
        delete(name);
    }
}

fn is_running(process: i32) -> bool {
    let process = rustix::process::Pid::from_raw(process);
    process.is_some_and(|process| {
        rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH)
    })
}
