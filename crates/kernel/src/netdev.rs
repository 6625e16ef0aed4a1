//! What the kernel states about XDP on an interface, and about its NAPI instances (`linux/netdev.h`: the generic netlink family
//! `netdev`, since Linux 6.3).

mod napi;

use std::io;
use std::os::fd::OwnedFd;

use crate::netlink::{attribute, attributes};
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

pub use napi::set_napi;
pub use napi::{Napi, NapiSettings, napis};

/// `GENL_ID_CTRL` and what its messages have (`linux/genetlink.h`).
const CONTROL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_A_DEV_XDP_ZC_MAX_SEGS: u16 = 4;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// `NLM_F_ROOT | NLM_F_MATCH`: all that there are.
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Bytes of netlink's header.
const HEADER: usize = 16;
/// Bytes of netlink's header and generic netlink's.
const HEADERS: usize = 20;

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
    socket: OwnedFd,
    family: u16,
}

impl Netdev {
    /// Needs no privileges.
    fn open() -> io::Result<Netdev> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(GENERIC))?;
        let control = Netdev { socket, family: CONTROL };
        let answer = control.ask(CTRL_CMD_GETFAMILY, 0, &[(CTRL_ATTR_FAMILY_NAME, b"netdev\0")])?;
        let mut attributes = answer.iter().flat_map(|answer| attributes(answer));
        let id = attributes.find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
        let id = id.and_then(|(_, value)| Some(u16::from_ne_bytes(value.try_into().ok()?)));
        Ok(Netdev { family: id.ok_or(io::ErrorKind::InvalidData)?, ..control })
    }

    /// Sends a request and returns the attributes of each answer: one, those of a dump, or none for an acknowledgement.
    fn ask(&self, command: u8, flags: u16, asked: &[(u16, &[u8])]) -> io::Result<Vec<Vec<u8>>> {
        let message = message(self.family, command, flags, asked);
        sendto(&self.socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let (mut answers, mut buffer) = (Vec::new(), vec![0; 32 << 10]);
        loop {
            let (length, _) = recv(&self.socket, buffer.as_mut_slice(), RecvFlags::empty())?;
            if take_answers(&buffer[..length], flags & NLM_F_DUMP != 0, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// A request with these attributes.
fn message(family: u16, command: u8, flags: u16, asked: &[(u16, &[u8])]) -> Vec<u8> {
    let mut message = Vec::with_capacity(64);
    message.extend([0; 4]);
    message.extend(family.to_ne_bytes());
    message.extend((NLM_F_REQUEST | flags).to_ne_bytes());
    // Sequence number and port: one request is open at a time, and the kernel assigns the port.
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    for (kind, value) in asked {
        message.extend(attribute(*kind, value));
    }
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message
}

/// Takes the messages of one datagram. Returns whether it was the last: a dump ends with a message of its own, which states an
/// error if the dump is not whole.
fn take_answers(
    mut datagram: &[u8],
    is_dump: bool,
    answers: &mut Vec<Vec<u8>>,
) -> io::Result<bool> {
    let mut is_last = !is_dump;
    while !datagram.is_empty() {
        let header: [u8; 6] = *datagram.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let body = datagram.get(HEADER..length).ok_or(io::ErrorKind::InvalidData)?;
        match u16::from_ne_bytes([header[4], header[5]]) {
            NLMSG_ERROR | NLMSG_DONE => {
                let code = body.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
                match i32::from_ne_bytes(*code) {
                    0 => is_last = true,
                    code => return Err(io::Error::from_raw_os_error(code.saturating_neg())),
                }
            }
            _ => answers.push(body.get(HEADERS - HEADER..).unwrap_or_default().to_vec()),
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(is_last)
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
    fn a_dump_ends_with_its_last_message_and_an_error_is_one() {
        let part = |kind: u16, body: &[u8]| {
            let mut bytes = message(0, 0, 0, &[]);
            bytes.truncate(16);
            bytes.extend(body);
            let length = bytes.len() as u32;
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let answer = |value: u8| [vec![0; 4], attribute(1, &[value])].concat();
        let two = [part(0x20, &answer(1)), part(0x20, &answer(2))].concat();
        let mut answers = Vec::new();
        assert!(!take_answers(&two, true, &mut answers).unwrap(), "the end is still to come");
        assert_eq!(answers, [attribute(1, &[1]), attribute(1, &[2])]);
        assert!(take_answers(&part(NLMSG_DONE, &[0; 4]), true, &mut answers).unwrap());
        assert!(take_answers(&part(NLMSG_ERROR, &[0; 4]), false, &mut answers).unwrap());
        assert_eq!(answers.len(), 2, "neither is an answer");
        let refused = part(NLMSG_ERROR, &(-libc::EPERM).to_ne_bytes());
        let error = take_answers(&refused, false, &mut answers).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        for end in 1..refused.len() {
            assert!(take_answers(&refused[..end], false, &mut answers).is_err(), "cut at {end}");
        }
        let broken_off = part(NLMSG_DONE, &(-libc::EINTR).to_ne_bytes());
        let error = take_answers(&broken_off, true, &mut answers).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINTR), "not all of the dump came");
    }

    #[test]
    fn a_message_shorter_than_its_header_is_an_error() {
        for length in 0..HEADER as u32 {
            let mut bytes = message(0x20, 0, 0, &[]);
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            assert!(take_answers(&bytes, true, &mut Vec::new()).is_err(), "{length}");
        }
    }

    #[test]
    fn the_loopback_interface_has_no_native_xdp() {
        match xdp_features(1) {
            Ok(features) => assert!(!features.zero_copy, "{features:?}"),
            Err(error) => println!("not run: this kernel does not answer ({error})"),
        }
    }
}
