//! A claim to an interface that other processes respect and that ends with the process that has it: a Unix
//! socket with an abstract name (unix(7)). Such names belong to the network namespace, as interfaces do, so
//! interfaces with one number in two namespaces are two claims.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A claim, until it is dropped.
#[derive(Debug)]
pub(crate) struct InterfaceLock {
    _socket: UnixDatagram,
}

impl InterfaceLock {
    /// Claims the interface of this number in the namespace of the calling thread.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] when it is claimed already.
    pub(crate) fn claim(index: u32) -> io::Result<InterfaceLock> {
        let name = format!("rheostat-interface-{index}");
        let address = SocketAddr::from_abstract_name(name)?;
        Ok(InterfaceLock { _socket: UnixDatagram::bind_addr(&address)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_one_claim_at_a_time() {
        // No interface has such a number.
        let index = 0x7fff_0000 + std::process::id() % 0x8000;
        let claim = InterfaceLock::claim(index).unwrap();
        assert!(InterfaceLock::claim(index + 1).is_ok());
        let second = InterfaceLock::claim(index).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        drop(claim);
        assert!(InterfaceLock::claim(index).is_ok());
    }
}
