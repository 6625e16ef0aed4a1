//! Pairs of interfaces, and hosts in network namespaces, for tests that run as root.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::namespace::shell;

/// How long the kernel may take to take a link up.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Runs `ip` with these words.
pub fn ip(words: &str) {
    let output = Command::new("ip").args(words.split(' ')).output().expect("ip is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {words}: {said}");
}

fn ip_or_not(words: &str) {
    let _ = Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status();
}

/// Waits until the kernel has taken these virtual cables up, which it does some time after both ends were put up. Until then
/// it drops what it is given to send there, without a word, and prints that they do not run.
///
/// # Panics
/// When one of them stays down.
pub fn await_links(names: &[&str]) {
    let start = Instant::now();
    for name in names {
        while !shell(&format!("ip -o link show dev {name}")).contains(" state UP ") {
            assert!(start.elapsed() < TIMEOUT, "{name} stays down");
            thread::sleep(Duration::from_millis(10));
        }
        // Changes nothing, and comes behind what the kernel does while it takes the link up.
        ip(&format!("link set dev {name} up"));
    }
}

/// Two interfaces that are each other's other end. Gone when dropped.
pub struct VethPair {
    /// The name of one end.
    pub a: String,
    /// The name of the other end.
    pub b: String,
}

impl VethPair {
    /// A pair whose names start with `rbpf` and `name`, up, silent and without addresses.
    pub fn new(name: &str) -> VethPair {
        let [a, b] = ["a", "b"].map(|end| format!("rbpf{name}{end}"));
        ip_or_not(&format!("link del {a}"));
        ip(&format!("link add {a} type veth peer name {b}"));
        for end in [&a, &b] {
            ip(&format!("link set dev {end} addrgenmode none"));
            ip(&format!("link set dev {end} up"));
        }
        await_links(&[&a, &b]);
        VethPair { a, b }
    }
}

impl Drop for VethPair {
    fn drop(&mut self) {
        ip_or_not(&format!("link del {}", self.a));
    }
}

/// A host in a namespace, on a link whose other end is here. Gone when dropped.
pub struct Host {
    namespace: String,
    /// The end of the link that is here.
    pub link: String,
}

impl Host {
    /// A host named so, with these addresses on its interface, and a neighbour at each of `neighbours`
    /// whose hardware address is `mac`.
    pub fn new(name: &str, addresses: &[&str], neighbours: &[&str], mac: &str) -> Host {
        let (namespace, link) = (format!("rbpf{name}"), format!("rbpf{name}0"));
        ip_or_not(&format!("netns del {namespace}"));
        ip_or_not(&format!("link del {link}"));
        ip(&format!("netns add {namespace}"));
        ip(&format!("link add {link} type veth peer name eth netns {namespace}"));
        ip(&format!("link set dev {link} addrgenmode none"));
        ip(&format!("link set dev {link} up"));
        let host = Host { namespace, link };
        host.ip("link set dev lo up");
        host.ip("link set dev eth up");
        await_links(&[&host.link]);
        for address in addresses {
            let quick = if address.contains(':') { " nodad" } else { "" };
            host.ip(&format!("addr add {address} dev eth{quick}"));
        }
        for neighbour in neighbours {
            host.ip(&format!("neigh replace {neighbour} lladdr {mac} dev eth nud permanent"));
        }
        host
    }

    /// Runs `ip` there.
    pub fn ip(&self, words: &str) {
        ip(&format!("-n {} {words}", self.namespace));
    }

    /// Starts Python there, with this program.
    pub fn python(&self, program: &str) -> Child {
        Command::new("ip")
            .args(["netns", "exec", &self.namespace, "/usr/bin/python3", "-c", program])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python is installed")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        ip_or_not(&format!("netns del {}", self.namespace));
        ip_or_not(&format!("link del {}", self.link));
    }
}
