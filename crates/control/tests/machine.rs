//! What a configuration refers to on a machine: interfaces, cores and files.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use rheostat_base::CoreId;
use rheostat_control::{Config, CoreState, FileId, Machine, NoListener, Overrides};

use crate::registry;

/// A machine with the interface `eth0` and the cores 0 to 3, of which the process may use two; whose files `a` and `b`
/// are one.
struct Small;

impl Machine for Small {
    fn has_interface(&self, name: &str) -> Option<bool> {
        Some(name == "eth0")
    }

    fn core(&self, core: CoreId) -> Option<CoreState> {
        Some(match core.0 {
            0..2 => CoreState::Usable,
            2..4 => CoreState::Masked,
            _ => CoreState::Absent,
        })
    }

    fn usable_cores(&self) -> String {
        "0-1".to_owned()
    }

    fn file(&self, path: &Path) -> Option<FileId> {
        let name = path.file_name()?.to_str()?;
        let inode = if name.starts_with('b') { 'a' } else { name.chars().next()? };
        Some(FileId::Inode { device: 1, inode: inode.into() })
    }

    fn why_not_listen(&self, at: SocketAddr) -> Option<NoListener> {
        let is_address = !at.ip().is_loopback();
        let reason =
            if is_address { format!("{at} is not here") } else { format!("{at} is in use") };
        (is_address || at.port() == 80).then_some(NoListener { is_address, reason })
    }
}

/// What is wrong with a configuration on that machine, without pictures.
fn mistakes(text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    fs::write(&file, text).unwrap();
    match Config::load_for(&file, &Overrides::default(), &Small, &registry::all()) {
        Ok(_) => Vec::new(),
        Err(rheostat_control::LoadError::Wrong(report)) => {
            report.findings().iter().map(|finding| finding.message().to_owned()).collect()
        }
        Err(error) => panic!("{error}"),
    }
}

fn device(kind: &str) -> String {
    let device = "[[device]]\nname = \"wire\"\ninside = [\"10.0.0.0/8\"]";
    format!("chain = {{ functions = [\"firewall\"] }}\n{device}\n{kind}\n")
}

#[test]
fn interfaces_and_cores_that_are_not_there_are_refused() {
    let live =
        |interface: &str| device(&format!("kind = \"af_packet\"\ninterface = \"{interface}\""));
    assert_eq!(mistakes(&format!("{}[workers]\ncores = \"0-1\"", live("eth0"))), [""; 0]);
    assert_eq!(
        mistakes(&format!("{}[workers]\ncores = \"1-4\"", live("eth1"))),
        [
            "there is no interface `eth1` for device `wire`",
            "this machine has no core 4",
            "this process may not use cores 2,3",
        ]
    );
    // A TAP interface is made by the run.
    assert_eq!(mistakes(&device("kind = \"tap\"\ninterface = \"tap7\"")), [""; 0]);
}

#[test]
fn files_are_compared_by_what_they_are() {
    let captures = |input: &str, output: &str| {
        device(&format!("kind = \"pcap\"\ninput = \"{input}\"\noutput = \"{output}\""))
    };
    assert_eq!(mistakes(&captures("a.pcap", "c.pcap")), [""; 0]);
    assert_eq!(
        mistakes(&captures("a.pcap", "b.pcap")),
        ["`b.pcap` would be read and overwritten: `a.pcap` is the same file"]
    );
}

#[test]
fn services_over_the_kernels_sockets_have_ports_and_addresses_that_are_free() {
    let service = |address: &str, port: u16| {
        let device = "[[device]]\nname = \"lan\"\nkind = \"host\"";
        mistakes(&format!(
            "{device}\naddress = {address}\n[serve]\nservice = \"echo\"\nport = {port}\n"
        ))
    };
    assert_eq!(service("[\"127.0.0.1\", \"::1\"]", 81), [""; 0]);
    assert_eq!(service("[\"127.0.0.1\", \"::1\"]", 80), ["127.0.0.1:80 is in use"]);
    assert_eq!(service("[\"::1\", \"192.0.2.1\"]", 81), ["192.0.2.1:81 is not here"]);
}
