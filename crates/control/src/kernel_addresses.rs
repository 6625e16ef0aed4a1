//! The addresses that the kernel has on an interface.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use rheostat_base::DeviceId;
use rheostat_ip::{KernelTables, Progress};
use rheostat_kernel::netlink::{LONGEST, NetlinkSocket, Received};
use rheostat_kernel::routing::Messages;

/// How long the kernel may take to answer a request.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The addresses of an interface now, with the lengths of their networks' prefixes.
///
/// # Errors
/// [`io::Error`] when the kernel does not say.
pub fn kernel_addresses(interface: &str) -> io::Result<Vec<(IpAddr, u8)>> {
    let mut tables = KernelTables::new([(interface.to_owned(), DeviceId(0))]);
    // Changes are not followed.
    let socket = NetlinkSocket::open(0)?;
    let mut buffer = [0; LONGEST];
    let mut progress = tables.restart();
    while !tables.is_complete() {
        if let Progress::Ask(request, sequence) = progress {
            socket.send(&request.bytes(sequence))?;
        }
        progress = match socket.receive(&mut buffer, TIMEOUT)? {
            Received::Messages(length) => {
                let taken = Messages::new(&buffer[..length]).map(|event| tables.take(event));
                taken
                    .filter(|progress| *progress != Progress::Wait)
                    .last()
                    .unwrap_or(Progress::Wait)
            }
            Received::Overrun => tables.restart(),
            Received::Nothing => return Err(io::ErrorKind::TimedOut.into()),
        };
    }
    Ok(tables.addresses().into_iter().map(|(_, address)| address).collect())
}
