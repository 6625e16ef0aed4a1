//! A socket to a netlink family of the kernel.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, sendto,
    socket_with,
};

use super::message::{Content, Message};

/// Bytes that the kernel sends at once, at most: 32 KiB since Linux 4.4.
pub const LONGEST: usize = 32 * 1_024;
/// How long the kernel may take to answer a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The socket. It needs no privileges, and requests only what every user may read.
#[derive(Debug)]
pub struct NetlinkSocket(OwnedFd);

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes of messages.
    Messages(usize),
    /// Nothing in time, or nothing from the kernel.
    Nothing,
    /// Messages were lost, because they were not taken in time.
    Overrun,
}

impl NetlinkSocket {
    /// A socket to the family of routes that listens to `groups` (`RTMGRP_*` of `<linux/rtnetlink.h>`).
    ///
    /// # Errors
    /// Those of socket(2) and bind(2).
    pub fn open(groups: u32) -> io::Result<NetlinkSocket> {
        // No protocol: that of routes.
        NetlinkSocket::to_family(None, groups)
    }

    /// A socket to the generic family.
    pub(crate) fn generic() -> io::Result<NetlinkSocket> {
        NetlinkSocket::to_family(Some(GENERIC), 0)
    }

    fn to_family(family: Option<Protocol>, groups: u32) -> io::Result<NetlinkSocket> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, family)?;
        bind(&socket, &SocketAddrNetlink::new(0, groups))?;
        Ok(NetlinkSocket(socket))
    }

    /// Sends a request to the kernel.
    ///
    /// # Errors
    /// Those of sendto(2).
    pub fn send(&self, request: &[u8]) -> io::Result<()> {
        sendto(&self.0, request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// Sends a request and returns the bodies of the messages that answer it: one, all of a dump, or none of a mere
    /// acknowledgement. Nothing else may be under way on the socket.
    pub(crate) fn ask(&self, request: &[u8], is_dump: bool) -> io::Result<Vec<Vec<u8>>> {
        self.send(request)?;
        let (mut answers, mut buffer) = (Vec::new(), [0; LONGEST]);
        let start = Instant::now();
        while let Some(rest) = TIMEOUT.checked_sub(start.elapsed()) {
            match self.receive(&mut buffer, rest)? {
                Received::Messages(length) => {
                    if take_answers(&buffer[..length], is_dump, &mut answers)? {
                        return Ok(answers);
                    }
                }
                Received::Overrun => return Err(Errno::NOBUFS.into()),
                Received::Nothing => {}
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Takes what the kernel has sent, and waits for it as long as `timeout`. What other processes send
    /// is thrown away.
    ///
    /// # Errors
    /// Those of poll(2) and recvfrom(2), but for lost messages.
    pub fn receive(&self, buffer: &mut [u8; LONGEST], timeout: Duration) -> io::Result<Received> {
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(Received::Nothing),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = RecvFlags::DONTWAIT | RecvFlags::TRUNC;
        match recvfrom(&self.0, &mut buffer[..], flags) {
            Ok((_, length, _)) if length > LONGEST => Ok(Received::Overrun),
            Ok((_, length, from)) => {
                let from = from.and_then(|from| SocketAddrNetlink::try_from(from).ok());
                let is_kernel = from.is_some_and(|from| from.pid() == 0);
                Ok(if is_kernel { Received::Messages(length) } else { Received::Nothing })
            }
            Err(Errno::NOBUFS) => Ok(Received::Overrun),
            Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Nothing),
            Err(error) => Err(error.into()),
        }
    }
}

/// Takes the messages of one datagram. Returns whether it was the last: a dump ends with a message of its own.
fn take_answers(
    mut datagram: &[u8],
    is_dump: bool,
    answers: &mut Vec<Vec<u8>>,
) -> io::Result<bool> {
    let mut is_last = !is_dump;
    while !datagram.is_empty() {
        match Message::take(&mut datagram).ok_or(io::ErrorKind::InvalidData)?.content {
            Content::Part { body, .. } => answers.push(body.to_vec()),
            Content::Done { .. } | Content::Acknowledged => is_last = true,
            Content::Failed(error) => return Err(io::Error::from_raw_os_error(error)),
            Content::Overrun => return Err(Errno::NOBUFS.into()),
        }
    }
    Ok(is_last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::tests::message;
    use crate::netlink::message::{DUMP, request};

    #[test]
    fn a_dump_ends_with_its_last_message_and_an_error_is_one() {
        const ERROR: u16 = 2;
        const DONE: u16 = 3;
        let two = [message(0x20, 0, b"one"), message(0x20, 0, b"two")].concat();
        let mut answers = Vec::new();
        assert!(!take_answers(&two, true, &mut answers).unwrap(), "the end is still to come");
        assert_eq!(answers, [b"one", b"two"]);
        assert!(take_answers(&message(DONE, 0, &[0; 4]), true, &mut answers).unwrap());
        assert!(take_answers(&message(ERROR, 0, &[0; 4]), false, &mut answers).unwrap());
        assert_eq!(answers.len(), 2, "neither is an answer");
        let refused = message(ERROR, 0, &(-libc::EPERM).to_ne_bytes());
        let error = take_answers(&refused, false, &mut answers).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        for end in 1..refused.len() {
            assert!(take_answers(&refused[..end], false, &mut answers).is_err(), "cut at {end}");
        }
        let broken_off = message(DONE, 0, &(-libc::EINTR).to_ne_bytes());
        let error = take_answers(&broken_off, true, &mut answers).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINTR), "not all of the dump came");
    }

    #[test]
    fn the_kernel_reports_its_interfaces() {
        let socket = NetlinkSocket::open(0).expect("a socket, which needs no privileges");
        // RTM_GETLINK, and an empty `struct ifinfomsg`.
        socket.send(&request(18, DUMP, 0, &[0; 16])).unwrap();
        let mut buffer = [0; LONGEST];
        let received = socket.receive(&mut buffer, Duration::from_secs(5)).unwrap();
        let Received::Messages(length) = received else { panic!("{received:?}") };
        // RTM_NEWLINK, of the loopback interface first.
        assert_eq!(buffer[4..6], 16_u16.to_ne_bytes());
        assert!(buffer[..length].windows(3).any(|name| name == b"lo\0"));
        // And then nothing but the end of it.
        while let Received::Messages(_) = socket.receive(&mut buffer, Duration::ZERO).unwrap() {}
        assert_eq!(socket.receive(&mut buffer, Duration::ZERO).unwrap(), Received::Nothing);
    }
}
