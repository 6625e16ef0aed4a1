//! What the kernel states about XDP on an interface, and about its NAPI instances (`linux/netdev.h`: the generic netlink family
//! `netdev`, since Linux 6.3).

mod napi;

use std::io;

use crate::netlink::{DUMP, NetlinkSocket, attribute, attributes, find, request};

pub use napi::{Napi, NapiSettings, napis, set_napi};

/// `GENL_ID_CTRL` and what its messages have (`linux/genetlink.h`).
const CONTROL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_A_DEV_XDP_ZC_MAX_SEGS: u16 = 4;

/// Bytes of generic netlink's header (`struct genlmsghdr`).
const HEADER: usize = 4;

/// What XDP can do on an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpFeatures {
    /// The driver runs programs itself (native XDP), and can redirect.
    pub native: bool,
    /// AF_XDP sockets without copies.
    pub zero_copy: bool,
    /// Packets in several buffers, which jumbo frames need.
    pub segments: bool,
}

/// Asks the kernel about the interface of this index.
///
/// # Errors
/// [`io::ErrorKind::NotFound`] where the kernel does not know the question, or the interface.
pub fn xdp_features(index: u32) -> io::Result<XdpFeatures> {
    let netdev = Netdev::open()?;
    let asked = [(NETDEV_A_DEV_IFINDEX, &index.to_ne_bytes()[..])];
    let answer = netdev.ask(NETDEV_CMD_DEV_GET, 0, &asked)?;
    let answer = answer.first().ok_or(io::ErrorKind::InvalidData)?;
    Ok(features(answer))
}

fn features(answer: &[u8]) -> XdpFeatures {
    const BASIC: u64 = 1;
    const REDIRECT: u64 = 2;
    const ZERO_COPY: u64 = 8;
    const RECEIVE_SEGMENTS: u64 = 32;
    let mut flags = 0;
    let mut zero_copy_segments = 1;
    for (kind, value) in attributes(answer) {
        match (kind, value.len()) {
            (NETDEV_A_DEV_XDP_FEATURES, 8) => {
                flags = u64::from_ne_bytes(value.try_into().expect("eight bytes"));
            }
            (NETDEV_A_DEV_XDP_ZC_MAX_SEGS, 4) => {
                zero_copy_segments = u32::from_ne_bytes(value.try_into().expect("four bytes"));
            }
            _ => {}
        }
    }
    XdpFeatures {
        native: flags & (BASIC | REDIRECT) == BASIC | REDIRECT,
        zero_copy: flags & ZERO_COPY != 0,
        segments: flags & RECEIVE_SEGMENTS != 0 || zero_copy_segments > 1,
    }
}

/// A socket to the family.
struct Netdev {
    socket: NetlinkSocket,
    family: u16,
}

impl Netdev {
    /// Needs no privileges.
    fn open() -> io::Result<Netdev> {
        let control = Netdev { socket: NetlinkSocket::generic()?, family: CONTROL };
        let answer = control.ask(CTRL_CMD_GETFAMILY, 0, &[(CTRL_ATTR_FAMILY_NAME, b"netdev\0")])?;
        let id = answer.iter().find_map(|answer| find(answer, CTRL_ATTR_FAMILY_ID));
        let id = id.and_then(|value| Some(u16::from_ne_bytes(value.try_into().ok()?)));
        Ok(Netdev { family: id.ok_or(io::ErrorKind::InvalidData)?, ..control })
    }

    /// Sends a request and returns the attributes of each answer: one, those of a dump, or none for an acknowledgement.
    fn ask(&self, command: u8, flags: u16, asked: &[(u16, &[u8])]) -> io::Result<Vec<Vec<u8>>> {
        let mut body = vec![command, 1, 0, 0];
        body.extend(asked.iter().flat_map(|(kind, value)| attribute(*kind, value)));
        let mut answers =
            self.socket.ask(&request(self.family, flags, 0, &body), flags & DUMP != 0)?;
        for answer in &mut answers {
            answer.drain(..HEADER.min(answer.len()));
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_and_a_cut_answer_is_no_panic() {
        let mut answer = attribute(NETDEV_A_DEV_IFINDEX, &3_u32.to_ne_bytes());
        answer.extend(attribute(NETDEV_A_DEV_XDP_FEATURES, &0b10_1111_u64.to_ne_bytes()));
        let all = XdpFeatures { native: true, zero_copy: true, segments: true };
        assert_eq!(features(&answer), all);
        for end in 0..answer.len() {
            assert_eq!(features(&answer[..end]), XdpFeatures::default());
        }
        for generic in [1_u64, 2, 4] {
            let generic = attribute(NETDEV_A_DEV_XDP_FEATURES, &generic.to_ne_bytes());
            assert_eq!(features(&generic), XdpFeatures::default());
        }
    }

    #[test]
    fn a_driver_without_the_flag_takes_packets_in_several_buffers_if_it_says_so() {
        let of = |segments: u32| attribute(NETDEV_A_DEV_XDP_ZC_MAX_SEGS, &segments.to_ne_bytes());
        assert!(!features(&of(1)).segments);
        assert!(features(&of(2)).segments);
    }

    #[test]
    fn the_loopback_interface_has_no_native_xdp() {
        match xdp_features(1) {
            Ok(features) => assert!(!features.zero_copy, "{features:?}"),
            Err(error) => println!("not run: this kernel does not answer ({error})"),
        }
    }
}
