//! What a network interface of this machine states about its link.

use std::io;

use crate::sys::interface::Interface;

/// An interface's end of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceLink {
    /// Its address there; `None` where the link is none of Ethernet.
    pub mac: Option<[u8; 6]>,
    /// The longest packet that it carries, without the link header.
    pub mtu: u32,
}

impl InterfaceLink {
    /// The kernel's number of the interface that has this name, or this alternative name of at most 15 bytes.
    ///
    /// # Errors
    /// What the operating system said: mostly that there is no such interface.
    pub fn index_of(interface: &str) -> io::Result<u32> {
        Interface::new(interface)?.index()
    }

    /// Asks the kernel about the interface of this name.
    ///
    /// # Errors
    /// What the operating system said: mostly that there is no such interface.
    pub fn of(interface: &str) -> io::Result<InterfaceLink> {
        let interface = Interface::new(interface)?;
        Ok(InterfaceLink { mac: interface.hardware_address()?, mtu: interface.mtu()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_a_length_and_no_address() {
        // The one interface that every machine has; its addresses are all zero and of a type of its own.
        let link = InterfaceLink::of("lo").unwrap();
        assert_eq!(link.mac, None);
        assert!(link.mtu >= 16_384, "{}", link.mtu);
        assert!(InterfaceLink::of("no-such-one").is_err());
    }
}
