//! Has the kernel find the link addresses of neighbours.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};

use rheostat_base::DeviceId;
use rheostat_ip::Resolver;
use rheostat_kernel::InterfaceLink;

/// Where nobody listens (RFC 863). A host may report that the port is unreachable; the report goes to the kernel.
const DISCARD: u16 = 9;

/// Sends an empty datagram to a neighbour, for which the kernel has to find its link address. It asks only for those that it
/// does not know. A request over netlink would take a privilege that a run has given up by then.
#[derive(Debug)]
pub struct KernelResolver {
    v4: UdpSocket,
    /// Where the kernel has IPv6.
    v6: Option<UdpSocket>,
    /// The kernel's numbers of the interfaces.
    interfaces: HashMap<DeviceId, u32>,
}

impl KernelResolver {
    /// One for the devices on interfaces of these names.
    ///
    /// # Errors
    /// [`io::Error`] when there is no such interface, or there can be no socket.
    pub fn new(
        devices: impl IntoIterator<Item = (String, DeviceId)>,
    ) -> io::Result<KernelResolver> {
        let v4 = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let v6 = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).ok();
        for socket in [Some(&v4), v6.as_ref()].into_iter().flatten() {
            socket.set_nonblocking(true)?;
        }
        let number = |(name, device): (String, _)| Ok((device, InterfaceLink::index_of(&name)?));
        let interfaces = devices.into_iter().map(number).collect::<io::Result<_>>()?;
        Ok(KernelResolver { v4, v6, interfaces })
    }
}

impl Resolver for KernelResolver {
    fn look_for(&self, device: DeviceId, neighbour: IpAddr) {
        let (socket, to) = match neighbour {
            IpAddr::V4(v4) => (Some(&self.v4), SocketAddr::from((v4, DISCARD))),
            IpAddr::V6(v6) => {
                // Addresses of a link mean something on it only.
                let scope = match v6.is_unicast_link_local() {
                    true => self.interfaces.get(&device).copied().unwrap_or_default(),
                    false => 0,
                };
                (self.v6.as_ref(), SocketAddrV6::new(v6, DISCARD, 0, scope).into())
            }
        };
        if let Some(socket) = socket {
            // What cannot be sent, as without a route, finds nobody: the stack gives up in time.
            let _ = socket.send_to(&[], to);
        }
    }
}
