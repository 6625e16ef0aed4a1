//! A service at addresses that the kernel has, too.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::{fs, io};

use rheostat_capture::Endpoints;
use rheostat_control::{Config, kernel_addresses};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use thiserror::Error;

use super::NotLive;

/// Why a service cannot stand beside the kernel.
#[derive(Debug, Error)]
pub(crate) enum BesideKernelError {
    #[error("{0}")]
    NotLive(#[from] NotLive),
    #[error("the kernel does not tell the addresses of `{interface}`: {source}")]
    Addresses { interface: String, source: io::Error },
    #[error(
        "interface `{interface}` does not have {address}, and a service beside the kernel is reached at the kernel's addresses: {has}"
    )]
    NotTheKernels { interface: String, address: IpAddr, has: String },
    #[error(
        "{endpoint} cannot be taken from the kernel: {source} (`ss -tlnp` shows the program that listens there)"
    )]
    PortTaken { endpoint: SocketAddr, source: io::Error },
    #[error(
        "port {port} of `source_ports` is one that the kernel gives to its own connections: choose ports outside of net.ipv4.ip_local_port_range, or add them to net.ipv4.ip_local_reserved_ports"
    )]
    EphemeralPort { port: u16 },
}

/// The ports that the kernel gives to connections of its own, and those of them that it leaves out (ip(7)).
const EPHEMERAL: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const RESERVED: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// The ports of a service beside the kernel.
#[derive(Debug, Default)]
pub(super) struct OwnPorts {
    /// The packets that its device takes: those that concern the service, and no others. None if the service is not beside the kernel.
    pub(super) endpoints: Endpoints,
    /// Keep the ports from other programs until they are dropped.
    pub(super) kept: Vec<OwnedFd>,
}

/// Takes the ports of a service beside the kernel from the kernel.
///
/// # Errors
/// [`BesideKernelError`] when the interface does not have an address of the service, or the kernel uses a port.
pub(super) fn own_ports(config: &Config) -> Result<OwnPorts, BesideKernelError> {
    let Some(serve) = config.serve.as_ref().filter(|serve| serve.beside_kernel) else {
        return Ok(OwnPorts::default());
    };
    let [device] = config.devices.as_slice() else { return Err(NotLive.into()) };
    let interface = device.facts().interface.ok_or(NotLive)?;
    let addresses: Vec<_> = device.addresses.iter().map(|own| own.address).collect();
    check_addresses(&interface, &addresses)?;
    let mut ports: Vec<_> = serve.ports.iter().map(|port| *port..=*port).collect();
    let listened = endpoints(&addresses, &serve.ports);
    let kept = listened.map(reserve).collect::<Result<_, _>>()?;
    let opens = serve.application.facts().opens;
    if let Some(range) = opens.and_then(|opens| opens.source_ports) {
        check_source_ports(&range)?;
        let free: Vec<_> = range.clone().filter(|port| !serve.ports.contains(port)).collect();
        endpoints(&addresses, &free).try_for_each(|endpoint| reserve(endpoint).map(drop))?;
        ports.push(range);
    }
    Ok(OwnPorts { endpoints: Endpoints { addresses, ports }, kept })
}

fn endpoints<'a>(addresses: &'a [IpAddr], ports: &'a [u16]) -> impl Iterator<Item = SocketAddr> {
    let at = |address: &'a IpAddr| ports.iter().map(|port| SocketAddr::new(*address, *port));
    addresses.iter().flat_map(at)
}

fn check_addresses(interface: &str, wanted: &[IpAddr]) -> Result<(), BesideKernelError> {
    let wrong = |source| BesideKernelError::Addresses { interface: interface.to_owned(), source };
    let has: Vec<_> = kernel_addresses(interface).map_err(wrong)?;
    let is_there = |address: &&IpAddr| has.iter().any(|(own, _)| own == *address);
    match wanted.iter().find(|address| !is_there(address)) {
        None => Ok(()),
        Some(&address) => Err(BesideKernelError::NotTheKernels {
            interface: interface.to_owned(),
            address,
            has: match has.is_empty() {
                true => "it has none".to_owned(),
                false => {
                    let list: Vec<_> = has.iter().map(|(own, _)| own.to_string()).collect();
                    format!("it has {}", list.join(", "))
                }
            },
        }),
    }
}

/// Takes a port from the kernel: no program can listen there, and no connection of the kernel gets it.
fn reserve(endpoint: SocketAddr) -> Result<OwnedFd, BesideKernelError> {
    let bound = || -> io::Result<OwnedFd> {
        let family = match endpoint {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // What is left of connections in TIME-WAIT is no obstacle, but a program that would listen there later is one.
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &endpoint)?;
        sockopt::set_socket_reuseaddr(&socket, false)?;
        Ok(socket)
    };
    bound().map_err(|source| BesideKernelError::PortTaken { endpoint, source })
}

/// Refuses ports that the kernel may give to a connection of its own.
fn check_source_ports(range: &RangeInclusive<u16>) -> Result<(), BesideKernelError> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    match conflict(range, &read(EPHEMERAL), &read(RESERVED)) {
        None => Ok(()),
        Some(port) => Err(BesideKernelError::EphemeralPort { port }),
    }
}

/// The first port of `range` that lies in the `ephemeral` one and is not `reserved`.
fn conflict(range: &RangeInclusive<u16>, ephemeral: &str, reserved: &str) -> Option<u16> {
    let mut bounds = ephemeral.split_whitespace().map(str::parse::<u16>);
    let (Some(Ok(first)), Some(Ok(last))) = (bounds.next(), bounds.next()) else { return None };
    let left_out: Vec<RangeInclusive<u16>> = reserved
        .trim()
        .split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .collect();
    range
        .clone()
        .find(|port| (first..=last).contains(port) && !left_out.iter().any(|r| r.contains(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_ports_are_none_that_the_kernel_gives_away() {
        let ephemeral = "32768\t60999\n";
        assert_eq!(conflict(&(20_000..=29_999), ephemeral, "\n"), None);
        assert_eq!(conflict(&(30_000..=40_000), ephemeral, ""), Some(32_768));
        assert_eq!(conflict(&(30_000..=40_000), ephemeral, "8080,32768-33000\n"), Some(33_001));
        assert_eq!(conflict(&(40_000..=40_000), ephemeral, "40000"), None);
        assert_eq!(conflict(&(1..=65_535), "", ""), None, "not known");
    }

    #[test]
    fn a_port_that_a_program_listens_at_is_refused_and_one_that_is_kept_cannot_be_listened_at() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = listener.local_addr().unwrap();
        let error = reserve(endpoint).unwrap_err().to_string();
        assert!(error.contains(&endpoint.to_string()), "{error}");
        drop(listener);
        let kept = reserve(endpoint).unwrap();
        assert!(std::net::TcpListener::bind(endpoint).is_err());
        drop(kept);
        assert!(std::net::TcpListener::bind(endpoint).is_ok());
    }
}
