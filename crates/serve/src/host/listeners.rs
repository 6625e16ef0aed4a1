//! Listeners of a lane, and how those of all lanes are opened.

use std::io;
use std::net::{SocketAddr, TcpListener};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};

use super::HostError;

/// Handshakes that are complete and not accepted yet; the kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 4_096;

/// The listeners of one lane: one for each address.
#[derive(Debug, Default)]
pub(super) struct Listeners(pub(super) Vec<TcpListener>);

impl Listeners {
    /// Whether one could listen there.
    pub(super) fn check(address: SocketAddr) -> Result<(), HostError> {
        open_socket(address, false).map(drop).map_err(|source| error(address, source))
    }

    /// Listeners at `addresses` for `lanes` lanes. The kernel spreads connections over them by their hash. Returns the addresses with
    /// the ports that the kernel picked.
    pub(super) fn open(
        addresses: &[SocketAddr],
        lanes: usize,
    ) -> Result<(Vec<Listeners>, Vec<SocketAddr>), HostError> {
        let mut of_lanes: Vec<_> = (0..lanes).map(|_| Listeners::default()).collect();
        let mut bound = Vec::with_capacity(addresses.len());
        for address in addresses {
            let wrong = |source| error(*address, source);
            // Without SO_REUSEPORT: another program's listener is an error, and no partner.
            let alone = open_socket(*address, false).map_err(wrong)?;
            let address = alone.local_addr().map_err(wrong)?;
            match &mut of_lanes[..] {
                [lane] => {
                    listen(&alone, BACKLOG).map_err(|errno| wrong(errno.into()))?;
                    lane.0.push(alone);
                }
                lanes => {
                    drop(alone);
                    for lane in lanes {
                        let socket = open_socket(address, true).map_err(wrong)?;
                        listen(&socket, BACKLOG).map_err(|errno| wrong(errno.into()))?;
                        lane.0.push(socket);
                    }
                }
            }
            bound.push(address);
        }
        Ok((of_lanes, bound))
    }
}

/// A socket that is bound, and does not listen yet.
fn open_socket(address: SocketAddr, is_shared: bool) -> io::Result<TcpListener> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    if address.is_ipv6() {
        // `[::]` and `0.0.0.0` are listened at apart.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    // Connections in TIME-WAIT are no obstacle; a listener is.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if is_shared {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    bind(&socket, &address)?;
    Ok(TcpListener::from(socket))
}

fn error(address: SocketAddr, source: io::Error) -> HostError {
    match Errno::from_io_error(&source) {
        Some(Errno::ADDRINUSE) => HostError::InUse(address),
        Some(Errno::ADDRNOTAVAIL) => HostError::NoSuchAddress(address),
        Some(Errno::ACCESS | Errno::PERM) => HostError::NotPermitted(address),
        _ => HostError::Listen { address, source },
    }
}
