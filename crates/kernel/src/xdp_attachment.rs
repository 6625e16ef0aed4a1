//! Which XDP program an interface has, and taking away one that no link holds (rtnetlink(7),
//! `linux/if_link.h`).

use std::io;

use crate::netlink::{attribute, attributes};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

const GET_LINK: u16 = libc::RTM_GETLINK;
const SET_LINK: u16 = libc::RTM_SETLINK;
const ERROR: u16 = libc::NLMSG_ERROR as u16;
const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
const ACKNOWLEDGE: u16 = libc::NLM_F_ACK as u16;
const NESTED: u16 = libc::NLA_F_NESTED as u16;

const XDP: u16 = libc::IFLA_XDP;
const XDP_FD: u16 = 1;
const XDP_FLAGS: u16 = 3;
/// The number of the program, whichever way it runs; the kernel leaves it out where there are several.
const XDP_PROGRAM: u16 = 4;

/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE`.
const GENERIC_MODE: u32 = 2;
const DRIVER_MODE: u32 = 4;

/// Bytes of `struct nlmsghdr`, and of `struct ifinfomsg`.
const HEADER: usize = 16;
const LINK: usize = 16;

/// The number of the program that an interface has, if it has one.
///
/// # Errors
/// When there is no interface of this index.
pub fn attached(interface: u32) -> io::Result<Option<u32>> {
    let answer = ask(&message(GET_LINK, REQUEST, interface, &[]))?;
    let attributes = answer.get(HEADER + LINK..).unwrap_or_default();
    let program = find(attributes, XDP).and_then(|xdp| find(xdp, XDP_PROGRAM));
    Ok(program.and_then(|id| id.first_chunk()).map(|id| u32::from_ne_bytes(*id)))
}

/// Takes the program away from an interface, whichever it is, that runs in generic mode, or in the
/// driver.
///
/// # Errors
/// Among others `EBUSY` when a link holds it.
pub fn detach(interface: u32, is_generic: bool) -> io::Result<()> {
    let flags = if is_generic { GENERIC_MODE } else { DRIVER_MODE };
    let mut inner = attribute(XDP_FD, &(-1_i32).to_ne_bytes());
    inner.extend(attribute(XDP_FLAGS, &flags.to_ne_bytes()));
    let xdp = attribute(XDP | NESTED, &inner);
    ask(&message(SET_LINK, REQUEST | ACKNOWLEDGE, interface, &xdp)).map(drop)
}

fn message(kind: u16, flags: u16, interface: u32, attributes: &[u8]) -> Vec<u8> {
    let len = (HEADER + LINK + attributes.len()) as u32;
    let mut message = Vec::with_capacity(len as usize);
    message.extend(len.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // The number of the message, and whose it is: neither matters on a socket of our own.
    message.extend([0; 8]);
    // Family and kind, both unspecified; the interface; no flags to be changed.
    message.extend([0; 4]);
    message.extend(interface.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(attributes);
    message
}

/// The value of the first attribute of a kind.
fn find(bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
}

/// Sends a request and waits for the one message that answers it.
fn ask(request: &[u8]) -> io::Result<Vec<u8>> {
    // The protocol of routing sockets is number 0.
    let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    send(&socket, request, SendFlags::empty())?;
    let mut answer = vec![0; 64 * 1024];
    let (len, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
    answer.truncate(len);
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    let code = answer.get(HEADER..).and_then(|rest| rest.first_chunk());
    match (kind, code.map(|code| i32::from_ne_bytes(*code))) {
        (Some(ERROR), Some(0)) => Ok(answer),
        (Some(ERROR), Some(code)) => Err(io::Error::from_raw_os_error(-code)),
        (Some(_), _) => Ok(answer),
        (None, _) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_no_program() {
        assert_eq!(attached(1).unwrap(), None);
        assert!(attached(0x7fff_fff0).is_err());
    }
}
