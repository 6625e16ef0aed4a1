//! Whether a run would take the interface by which this machine, or the person at its terminal, is reached.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use rheostat_capture::Filter;
use rheostat_control::config::device::live::Access;
use rheostat_control::config::{DeviceConfig, DeviceKind};
use rheostat_control::{Config, kernel_addresses};
use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport};
use thiserror::Error;

/// What would end when a run attaches to an interface.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum CutOff {
    /// The connection one works over.
    #[error(
        "device `{device}` would take the packets of {interface}, over which your ssh connection from {client} comes: it \
         would end now. Use another interface, leave that connection to the kernel (`leave` of the device), or add \
         --force, perhaps with --for 60s"
    )]
    Ssh { device: String, interface: String, client: IpAddr },
    /// The machine's own way to other networks.
    #[error(
        "device `{device}` would take all packets of {interface}, the interface of this machine's default route: connections of \
         its other programs would end. Use another interface, leave their packets to the kernel (`take` or `leave` of the \
         device), or add --force, perhaps with --for 60s"
    )]
    DefaultRoute { device: String, interface: String },
}

/// A connection of ssh: the client's end and this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Session {
    client: SocketAddr,
    server: SocketAddr,
}

/// How this machine is reached.
#[derive(Clone, Debug, Default)]
struct Reach {
    /// The interfaces of default routes.
    default_routes: Vec<String>,
    /// The connections of ssh that this process was started over.
    sessions: Vec<Session>,
}

/// An interface that a run would take packets from.
struct Taken<'c> {
    device: &'c str,
    interface: &'c str,
    filter: &'c Filter,
}

/// What would end if `config` ran on this machine now. A service beside the kernel takes its own ports alone.
pub(crate) fn cut_off(config: &Config) -> Option<CutOff> {
    if config.serve.as_ref().is_some_and(|serve| serve.beside_kernel) {
        return None;
    }
    let taken: Vec<_> = config.devices.iter().filter_map(taken).collect();
    if taken.is_empty() {
        return None;
    }
    let reach = Reach::of_this_machine();
    // An interface that does not say what addresses it has is refused for other reasons.
    let has = |interface: &str, address| {
        let addresses = kernel_addresses(interface).unwrap_or_default();
        addresses.iter().any(|(own, _)| *own == address)
    };
    reach.lost_by(&taken, has)
}

/// The interface of a device whose packets the kernel does not get.
fn taken(device: &DeviceConfig) -> Option<Taken<'_>> {
    let DeviceKind::Live(live) = &device.kind else { return None };
    match live.access {
        Access::AfXdp { .. } | Access::AfPacket { exclusive: true } => {}
        Access::AfPacket { exclusive: false } | Access::Tap => return None,
    }
    let interface = live.interface.as_deref()?;
    Some(Taken { device: &device.name, interface, filter: &live.filter })
}

impl Reach {
    fn of_this_machine() -> Reach {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let v4 = read("/proc/net/route");
        let v6 = read("/proc/net/ipv6_route");
        let default_routes = default_routes_v4(&v4).chain(default_routes_v6(&v6));
        let default_routes = default_routes.map(str::to_owned).collect();
        Reach { default_routes, sessions: sessions() }
    }

    /// What is lost when these interfaces are taken; `has` says whether an interface has an address.
    fn lost_by(&self, taken: &[Taken<'_>], has: impl Fn(&str, IpAddr) -> bool) -> Option<CutOff> {
        for Taken { device, interface, filter } in taken {
            let (device, interface) = ((*device).to_owned(), (*interface).to_owned());
            for session in &self.sessions {
                if has(&interface, session.server.ip()) && filter.takes(&session.segment()) {
                    let client = session.client.ip();
                    return Some(CutOff::Ssh { device, interface, client });
                }
            }
            if filter.takes_all() && self.default_routes.contains(&interface) {
                return Some(CutOff::DefaultRoute { device, interface });
            }
        }
        None
    }
}

impl Session {
    /// A segment as the client sends it.
    fn segment(&self) -> Vec<u8> {
        let ports = (self.client.port(), self.server.port());
        let transport = Transport::Tcp(TcpHeader { ports, ..TcpHeader::default() });
        let (from, to) = (self.client.ip(), self.server.ip());
        FrameBuilder::new(from, to, transport, Payload::Bytes(b""))
            .with_ethernet(Ethernet { source: [2; 6], destination: [4; 6], vlan: None })
            .to_vec()
    }

    /// Reads SSH_CONNECTION of ssh(1): the client's address and port, then the server's.
    fn parse(text: &str) -> Option<Session> {
        let mut fields = text.split_ascii_whitespace();
        let mut end = || {
            // A link-local address has its interface behind it.
            let address = fields.next()?.split('%').next()?.parse::<IpAddr>().ok()?;
            Some(SocketAddr::new(address, fields.next()?.parse().ok()?))
        };
        let (client, server) = (end()?, end()?);
        Some(Session { client, server })
    }
}

/// The connections of ssh in the environments of this process and those that started it: sudo(8) keeps its own from its child.
fn sessions() -> Vec<Session> {
    let mut sessions = Vec::new();
    let mut process = Some("self".to_owned());
    while let Some(number) = process {
        let folder = Path::new("/proc").join(&number);
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        let variables = environment.split(|byte| *byte == 0);
        let values = variables.filter_map(|variable| variable.strip_prefix(b"SSH_CONNECTION="));
        let found = values.filter_map(|value| Session::parse(std::str::from_utf8(value).ok()?));
        sessions.extend(found);
        process = parent(&fs::read_to_string(folder.join("status")).unwrap_or_default());
    }
    sessions
}

/// The parent of a process by its `status` (proc(5)).
fn parent(status: &str) -> Option<String> {
    let number = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim();
    (number != "0").then(|| number.to_owned())
}

/// The interfaces of default routes in `/proc/net/route`.
fn default_routes_v4(table: &str) -> impl Iterator<Item = &str> {
    table.lines().skip(1).filter_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let is_default = *fields.get(1)? == "00000000" && *fields.get(7)? == "00000000";
        is_default.then_some(fields[0])
    })
}

/// The interfaces of default routes in `/proc/net/ipv6_route`, where unreachable ones are on `lo`.
fn default_routes_v6(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let interface = *fields.get(9)?;
        let is_default = fields[0].bytes().all(|digit| digit == b'0') && fields[1] == "00";
        (is_default && interface != "lo").then_some(interface)
    })
}

#[cfg(test)]
mod tests {
    use rheostat_capture::Match;

    use super::*;

    const V4: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                      eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                      eth1\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n\
                      tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n";
    const V6: &str = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                      fe800000000000000000000000000001 00000400 00000001 00000000 00000003     eth2\n\
                      fd000000000000000000000000000000 08 00000000000000000000000000000000 00 \
                      00000000000000000000000000000000 00000400 00000001 00000000 00000001     eth3\n\
                      00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                      00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    #[test]
    fn default_routes_are_those_without_a_prefix() {
        assert_eq!(default_routes_v4(V4).collect::<Vec<_>>(), ["eth0"]);
        assert_eq!(default_routes_v6(V6).collect::<Vec<_>>(), ["eth2"]);
        assert_eq!(default_routes_v4("").count() + default_routes_v6("x y").count(), 0);
    }

    fn reach() -> Reach {
        let session = Session::parse("192.0.2.7 50000 198.51.100.1 22").unwrap();
        Reach { default_routes: vec!["eth0".into()], sessions: vec![session] }
    }

    fn lost(interface: &str, filter: &Filter) -> Option<CutOff> {
        let taken = Taken { device: "lan", interface, filter };
        let own: IpAddr = "198.51.100.1".parse().unwrap();
        reach().lost_by(&[taken], |interface, address| interface == "eth1" && address == own)
    }

    #[test]
    fn the_interface_of_the_ssh_connection_is_found_unless_its_packets_are_left() {
        let all = Filter::default();
        assert!(matches!(lost("eth1", &all), Some(CutOff::Ssh { .. })));
        assert_eq!(lost("eth2", &all), None);
        let ssh = Match { protocol: Some(6), port: Some(22), ..Match::default() };
        let without = Filter { leave: vec![ssh.clone()], ..Filter::default() };
        assert_eq!(lost("eth1", &without), None);
        let only = Filter { take: vec![ssh], ..Filter::default() };
        assert!(matches!(lost("eth1", &only), Some(CutOff::Ssh { .. })));
    }

    #[test]
    fn the_interface_of_the_default_route_is_found_where_all_packets_are_taken() {
        assert!(matches!(lost("eth0", &Filter::default()), Some(CutOff::DefaultRoute { .. })));
        let dns = Match { port: Some(53), ..Match::default() };
        assert_eq!(lost("eth0", &Filter { take: vec![dns], ..Filter::default() }), None);
    }

    #[test]
    fn both_versions_of_ip_are_read() {
        let session = Session::parse("fe80::1%eth0 50000 fe80::2%eth0 22").unwrap();
        assert_eq!(session.client, "[fe80::1]:50000".parse().unwrap());
        assert!(session.segment().len() > 54);
        for broken in ["", "192.0.2.7", "192.0.2.7 x 198.51.100.1 22", "a 1 b 2"] {
            assert_eq!(Session::parse(broken), None);
        }
    }

    #[test]
    fn a_process_has_a_parent_but_for_the_first() {
        assert_eq!(parent("Name:\trheo\nPPid:\t42\n"), Some("42".into()));
        assert_eq!(parent("PPid:\t0\n"), None);
        assert_eq!(parent(""), None);
    }
}
