//! What the kernel states about XDP on an interface (`linux/netdev.h`: the generic netlink family `netdev`,
//! since Linux 6.3).

use std::io;

use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with,
};

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
const NLMSG_ERROR: u16 = 2;
/// Bytes of the headers of a message: netlink's and generic netlink's.
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
    let family = ask(CONTROL, CTRL_CMD_GETFAMILY, (CTRL_ATTR_FAMILY_NAME, b"netdev\0"))?;
    let family = attributes(&family).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
    let id = family.and_then(|(_, value)| Some(u16::from_ne_bytes(value.try_into().ok()?)));
    let id = id.ok_or(io::ErrorKind::InvalidData)?;
    let answer = ask(id, NETDEV_CMD_DEV_GET, (NETDEV_A_DEV_IFINDEX, &index.to_ne_bytes()))?;
    Ok(features(&answer))
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

/// Sends a request with one attribute and returns the attributes of the answer.
fn ask(family: u16, command: u8, (kind, value): (u16, &[u8])) -> io::Result<Vec<u8>> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(GENERIC))?;
    let mut message = Vec::with_capacity(64);
    message.extend([0; 4]);
    message.extend(family.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port: there is one request, and the kernel gives the port.
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend((4 + value.len() as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_ne_bytes());
    sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    let mut answer = vec![0; 16 << 10];
    let (length, _) = recv(&socket, answer.as_mut_slice(), RecvFlags::empty())?;
    answer.truncate(length);
    let kind = answer.get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    match kind {
        None => Err(io::ErrorKind::InvalidData.into()),
        Some(NLMSG_ERROR) => {
            let code = answer.get(16..20).and_then(|code| code.try_into().ok());
            Err(io::Error::from_raw_os_error(-code.map_or(-1, i32::from_ne_bytes)))
        }
        Some(_) => Ok(answer.split_off(HEADERS.min(answer.len()))),
    }
}

/// The attributes of a message, as far as they are whole.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header: [u8; 4] = *rest.first_chunk()?;
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        // The two high bits say how the value is to be read.
        let kind = u16::from_ne_bytes([header[2], header[3]]) & 0x3fff;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((4 + value.len() as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn flags_are_read_and_a_cut_answer_is_no_panic() {
        let mut answer = attribute(NETDEV_A_DEV_IFINDEX, &3_u32.to_ne_bytes());
        answer.extend(attribute(NETDEV_A_DEV_XDP_FEATURES, &0b10_1111_u64.to_ne_bytes()));
        let all = XdpFeatures { native: true, zero_copy: true, segments: true };
        assert_eq!(features(&answer), all);
        for end in 0..answer.len() {
            assert_eq!(features(&answer[..end]), XdpFeatures::default());
        }
        let generic = attribute(NETDEV_A_DEV_XDP_FEATURES, &1_u64.to_ne_bytes());
        assert_eq!(features(&generic), XdpFeatures::default());
    }

    #[test]
    fn the_loopback_interface_has_no_native_xdp() {
        match xdp_features(1) {
            Ok(features) => assert!(!features.zero_copy, "{features:?}"),
            Err(error) => println!("not run: this kernel does not answer ({error})"),
        }
    }
}
