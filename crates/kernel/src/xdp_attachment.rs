//! Which XDP program an interface has, and taking away one that no link holds (rtnetlink(7),
//! `linux/if_link.h`).

use std::io;

use crate::netlink::{ACKNOWLEDGE, NetlinkSocket, attribute, find, request, u32_at};

const GET_LINK: u16 = libc::RTM_GETLINK;
const SET_LINK: u16 = libc::RTM_SETLINK;
const NESTED: u16 = libc::NLA_F_NESTED as u16;

const XDP: u16 = libc::IFLA_XDP;
const XDP_FD: u16 = 1;
const XDP_FLAGS: u16 = 3;
/// The number of the program, whichever way it runs; the kernel leaves it out where there are several.
const XDP_PROGRAM: u16 = 4;

/// `XDP_FLAGS_SKB_MODE` and `XDP_FLAGS_DRV_MODE`.
const GENERIC_MODE: u32 = 2;
const DRIVER_MODE: u32 = 4;

/// Bytes of `struct ifinfomsg`.
const LINK: usize = 16;

/// The number of the program that an interface has, if it has one.
///
/// # Errors
/// When there is no interface of this index.
pub fn attached(interface: u32) -> io::Result<Option<u32>> {
    let answers = ask(GET_LINK, 0, interface, &[])?;
    let answer = answers.first().ok_or(io::ErrorKind::UnexpectedEof)?;
    let xdp = find(answer.get(LINK..).unwrap_or_default(), XDP);
    Ok(xdp.and_then(|xdp| u32_at(find(xdp, XDP_PROGRAM)?, 0)))
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
    ask(SET_LINK, ACKNOWLEDGE, interface, &xdp).map(drop)
}

fn ask(kind: u16, flags: u16, interface: u32, attributes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    // Family and kind, both unspecified; the interface; no flags to be changed.
    let mut body = vec![0; LINK];
    body[4..8].copy_from_slice(&interface.to_ne_bytes());
    body.extend(attributes);
    NetlinkSocket::open(0)?.ask(&request(kind, flags, 0, &body), false)
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
