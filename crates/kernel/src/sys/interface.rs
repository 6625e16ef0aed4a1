//! Network interfaces of the machine: their index, address and size of packets (netdevice(7)).
#![allow(unsafe_code)]

use std::ffi::{CString, c_char};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

/// Structures of `linux/ethtool.h` that consist of integers.
///
/// # Safety
/// The kernel writes no more bytes for the command in its first word than the structure has, and any
/// bits are a value of it.
pub(super) unsafe trait Query {}

/// An interface by its name. The name, and not the index, is what stays when an interface is made anew.
#[derive(Debug)]
pub struct Interface {
    name: CString,
    socket: OwnedFd,
}

impl Interface {
    /// Names an interface, which need not exist.
    ///
    /// # Errors
    /// When the name holds a zero byte, or the process may have no more descriptors.
    pub fn new(name: &str) -> io::Result<Interface> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        Ok(Interface { name: CString::new(name)?, socket })
    }

    /// Its index.
    ///
    /// # Errors
    /// When there is no such interface. So for all others.
    pub fn index(&self) -> io::Result<u32> {
        let name = self.name.to_str().map_err(io::Error::other)?;
        Ok(netdevice::name_to_index(&self.socket, name)?)
    }

    /// The largest packet it carries, without the Ethernet header.
    ///
    /// # Errors
    /// As [`Interface::index`].
    pub fn mtu(&self) -> io::Result<u32> {
        let mut request = self.request()?;
        // SAFETY: `SIOCGIFMTU` reads the name and writes `ifru_mtu`, which any bits are valid for.
        let mtu = unsafe {
            self.ask(libc::SIOCGIFMTU, &raw mut request)?;
            request.ifr_ifru.ifru_mtu
        };
        Ok(mtu.try_into().unwrap_or(0))
    }

    /// Its address on the link; `None` where that is none of Ethernet.
    ///
    /// # Errors
    /// As [`Interface::index`].
    pub fn hardware_address(&self) -> io::Result<Option<[u8; 6]>> {
        let mut request = self.request()?;
        // SAFETY: `SIOCGIFHWADDR` reads the name and writes `ifru_hwaddr`, which any bits are valid for.
        let address = unsafe {
            self.ask(libc::SIOCGIFHWADDR, &raw mut request)?;
            request.ifr_ifru.ifru_hwaddr
        };
        let bytes = address.sa_data.first_chunk::<6>().map(|bytes| bytes.map(|byte| byte as u8));
        Ok(bytes.filter(|_| address.sa_family == libc::ARPHRD_ETHER))
    }

    /// Whether it is up.
    ///
    /// # Errors
    /// As [`Interface::index`].
    pub fn is_up(&self) -> io::Result<bool> {
        let mut request = self.request()?;
        // SAFETY: `SIOCGIFFLAGS` reads the name and writes `ifru_flags`, which any bits are valid for.
        let flags = unsafe {
            self.ask(libc::SIOCGIFFLAGS, &raw mut request)?;
            request.ifr_ifru.ifru_flags
        };
        Ok(i32::from(flags) & libc::IFF_UP != 0)
    }

    /// How many hardware queues receive: one where the driver does not say.
    ///
    /// # Errors
    /// As [`Interface::index`].
    pub fn receive_queues(&self) -> io::Result<u32> {
        match self.channels() {
            Ok(channels) => Ok(channels.now.max(1)),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
            Err(error) => Err(error),
        }
    }

    /// Puts it up, as `ip link set dev NAME up` does.
    ///
    /// # Errors
    /// Those of [`Interface::index`], and without CAP_NET_ADMIN.
    pub fn set_up(&self) -> io::Result<()> {
        let mut request = self.request()?;
        // SAFETY: `SIOCGIFFLAGS` reads the name and writes `ifru_flags`, which any bits are valid for; `SIOCSIFFLAGS` reads both.
        unsafe {
            self.ask(libc::SIOCGIFFLAGS, &raw mut request)?;
            request.ifr_ifru.ifru_flags |= libc::IFF_UP as i16;
            self.ask(libc::SIOCSIFFLAGS, &raw mut request)
        }
    }

    /// Asks the driver by `SIOCETHTOOL`.
    pub(super) fn ethtool(&self, query: &mut impl Query) -> io::Result<()> {
        let mut request = self.request()?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(query).cast();
        // SAFETY: the request points to a structure that lives during the call and has room for what the kernel writes (`Query`).
        unsafe { self.ask(libc::SIOCETHTOOL, &raw mut request) }
    }

    /// A request that names the interface.
    fn request(&self) -> io::Result<libc::ifreq> {
        // SAFETY: zeroes are valid for every field.
        let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
        let name = self.name.as_bytes();
        // One byte stays zero, to end the name.
        if name.len() >= request.ifr_name.len() || name.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name) {
            *to = *from as c_char;
        }
        Ok(request)
    }

    /// # Safety
    /// The request fits the command, and what it points to lives on and may be written.
    unsafe fn ask(&self, command: libc::c_ulong, request: *mut libc::ifreq) -> io::Result<()> {
        let descriptor = self.as_fd().as_raw_fd();
        // SAFETY: by the contract; the kernel fills the request that the pointer leads to.
        match unsafe { libc::ioctl(descriptor, command as _, request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_known() {
        let loopback = Interface::new("lo").unwrap();
        assert_eq!(loopback.index().unwrap(), 1);
        assert!(loopback.mtu().unwrap() >= 1_280);
        assert!(loopback.is_up().is_ok());
        assert_eq!(loopback.receive_queues().unwrap(), 1);
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let missing = Interface::new("no-such-link").unwrap();
        assert!(missing.index().is_err() && missing.mtu().is_err() && missing.is_up().is_err());
        assert!(missing.receive_queues().is_err());
        let long = Interface::new("a-name-of-more-than-fifteen-bytes").unwrap();
        assert_eq!(long.mtu().unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
