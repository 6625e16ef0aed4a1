//! Tap interfaces: what the kernel sends there, this process reads, and what it writes there, the
//! kernel receives (Documentation/networking/tuntap.rst).
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// A queue of a tap interface.
#[derive(Debug)]
pub(crate) struct TapQueue(File);

impl TapQueue {
    /// Attaches a queue to the interface called `name`, which is made if it does not exist. `%d` in a name
    /// stands for a number that the kernel chooses. Frames have a virtio header in front. Returns what the
    /// interface is called.
    pub(crate) fn attach(name: &str) -> io::Result<(TapQueue, String)> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        let queue = TapQueue(file);
        let mut request = request(name)?;
        let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_MULTI_QUEUE;
        request.ifr_ifru.ifru_flags = flags as i16;
        // SAFETY: the request is a whole `ifreq`, which the kernel reads and writes.
        unsafe { queue.ioctl(libc::TUNSETIFF as _, (&raw mut request).cast())? };
        // SAFETY: the kernel ends the name with a zero, and so did we.
        let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
        Ok((queue, name.to_string_lossy().into_owned()))
    }

    /// Sets what the kernel may leave undone: checksums, and cutting of TCP and, where it knows that,
    /// UDP.
    pub(crate) fn set_offload(&self) -> io::Result<()> {
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let udp = libc::TUN_F_USO4 | libc::TUN_F_USO6;
        self.offload(tcp | udp).or_else(|_| self.offload(tcp))
    }

    fn offload(&self, flags: libc::c_uint) -> io::Result<()> {
        // SAFETY: the argument is the flags themselves, not an address.
        unsafe { self.ioctl(libc::TUNSETOFFLOAD as _, flags as usize as *mut _) }
    }

    /// Lets a program choose the queue of each packet.
    pub(crate) fn set_steering(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let mut program: c_int = program.as_raw_fd();
        // SAFETY: the kernel reads a descriptor.
        unsafe { self.ioctl(libc::TUNSETSTEERINGEBPF as _, (&raw mut program).cast()) }
    }

    /// Lets a program say how much of each packet goes into its queue.
    pub(crate) fn set_filter(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        let mut program: c_int = program.as_raw_fd();
        // SAFETY: the kernel reads a descriptor.
        unsafe { self.ioctl(libc::TUNSETFILTEREBPF as _, (&raw mut program).cast()) }
    }

    /// Reads a frame with its header; `None` when there is none.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.0).read(buffer) {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes a frame with its header.
    pub(crate) fn write(&self, pieces: &[IoSlice<'_>]) -> io::Result<()> {
        (&self.0).write_vectored(pieces).map(drop)
    }

    /// # Safety
    /// `argument` is what the command takes, and an address in it may be read and written as the command
    /// does.
    unsafe fn ioctl(&self, command: libc::c_ulong, argument: *mut libc::c_void) -> io::Result<()> {
        // SAFETY: by the contract.
        match unsafe { libc::ioctl(self.0.as_raw_fd(), command as _, argument) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

impl AsFd for TapQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A request that names an interface.
fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: zeroes are valid for every field.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    // One byte stays zero, to end the name.
    if name.len() >= request.ifr_name.len() || name.is_empty() || name.contains('\0') {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = *from as c_char;
    }
    Ok(request)
}
