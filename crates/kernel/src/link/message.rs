//! Messages about links (`struct ifinfomsg` of `<linux/rtnetlink.h>`). Numbers are in the machine's own byte
//! order. What does not fit its stated length is passed over.

use crate::netlink::attributes;

use super::LinkState;

// <linux/netlink.h> and <linux/rtnetlink.h>
const HEADER: usize = 16;
const BODY: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const OVERRUN: u16 = 4;
const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const DUMP: u16 = 0x301;
/// The links changed while they were listed (`NLM_F_DUMP_INTR`).
const DUMP_INTERRUPTED: u16 = 0x10;
/// The multicast group of links (`RTMGRP_LINK`).
pub(super) const GROUP: u32 = 1;

// <linux/if_link.h>
const ADDRESS: u16 = 1;
const NAME: u16 = 3;
const MTU: u16 = 4;
const PROPERTIES: u16 = 52;
const OTHER_NAME: u16 = 53;

// <linux/if.h>, <linux/if_arp.h>
const IS_UP: u32 = 1;
const IS_RUNNING: u32 = 0x40;
const ETHERNET: u16 = 1;

/// Something that the kernel reports about links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkMessage {
    /// A link is there, with these names, the main one first.
    There { names: Vec<String>, state: LinkState },
    /// The link of this index is gone.
    Gone(u32),
    /// The list of links is complete; whether nothing has changed meanwhile.
    Done { is_consistent: bool },
    /// The request failed, with this error number (errno(3)).
    Failed(i32),
    /// Messages were lost.
    Overrun,
}

/// A request for a list of all links.
pub(super) fn list_request() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + BODY);
    bytes.extend(((HEADER + BODY) as u32).to_ne_bytes());
    bytes.extend(GET_LINK.to_ne_bytes());
    bytes.extend(DUMP.to_ne_bytes());
    // Sequence number, sender, and a body that requests every kind of link.
    bytes.resize(HEADER + BODY, 0);
    bytes
}

/// The messages in `bytes`, which the kernel sent at once.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = LinkMessage> {
    let whole = std::iter::from_fn(move || {
        let length = u32_at(bytes, 0)? as usize;
        let message = bytes.get(..length).filter(|message| message.len() >= HEADER)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    });
    whole.filter_map(read)
}

fn read(message: &[u8]) -> Option<LinkMessage> {
    let (kind, flags) = (u16_at(message, 4)?, u16_at(message, 6)?);
    let body = message.get(HEADER..)?;
    match kind {
        DONE => Some(LinkMessage::Done { is_consistent: flags & DUMP_INTERRUPTED == 0 }),
        ERROR => match u32_at(body, 0)? as i32 {
            0 => None,
            error => Some(LinkMessage::Failed(error.wrapping_neg())),
        },
        OVERRUN => Some(LinkMessage::Overrun),
        NEW_LINK if is_about_link(body) => read_link(body),
        DELETE_LINK if is_about_link(body) => u32_at(body, 4).map(LinkMessage::Gone),
        _ => None,
    }
}

/// Bridges and wireless drivers report their own affairs with these messages, under a family of theirs: a
/// port that leaves its bridge is "deleted" there, and remains as an interface.
fn is_about_link(body: &[u8]) -> bool {
    body.first() == Some(&0)
}

fn read_link(body: &[u8]) -> Option<LinkMessage> {
    let (kind, index, flags) = (u16_at(body, 2)?, u32_at(body, 4)?, u32_at(body, 8)?);
    let is_up = flags & IS_UP != 0;
    let has_carrier = is_up && flags & IS_RUNNING != 0;
    let mut state = LinkState { index, mac: None, mtu: 0, is_up, has_carrier };
    let mut names = Vec::new();
    for (attribute, value) in attributes(body.get(BODY..)?) {
        match attribute {
            NAME => names.insert(0, text(value)),
            MTU => state.mtu = u32_at(value, 0)?,
            ADDRESS if kind == ETHERNET => state.mac = value.try_into().ok(),
            PROPERTIES => {
                let others = attributes(value).filter(|(inner, _)| *inner == OTHER_NAME);
                names.extend(others.map(|(_, name)| text(name)));
            }
            _ => {}
        }
    }
    Some(LinkMessage::There { names, state })
}

fn text(value: &[u8]) -> String {
    let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
pub(super) mod tests {
    use crate::netlink::attribute;

    use super::*;

    fn message(kind: u16, family: u8, index: u32, flags: u32, attributes: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEADER + BODY + attributes.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend([family, 0]);
        bytes.extend(ETHERNET.to_ne_bytes());
        bytes.extend(index.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(attributes);
        bytes
    }

    #[test]
    fn a_link_has_all_its_names_and_its_state() {
        let others = attribute(OTHER_NAME, b"uplink\0");
        let parts = [
            attribute(NAME, b"wan\0"),
            attribute(MTU, &1_280_u32.to_ne_bytes()),
            attribute(ADDRESS, &[2, 0, 0, 0, 0, 7]),
            attribute(PROPERTIES | 0x8000, &others),
        ];
        let bytes = message(NEW_LINK, 0, 5, IS_UP | IS_RUNNING, &parts.concat());
        let state = LinkState {
            index: 5,
            mac: Some([2, 0, 0, 0, 0, 7]),
            mtu: 1_280,
            is_up: true,
            has_carrier: true,
        };
        let names = vec!["wan".to_owned(), "uplink".to_owned()];
        let read: Vec<_> = messages(&bytes).collect();
        assert_eq!(read, [LinkMessage::There { names, state }]);
    }

    #[test]
    fn a_port_that_leaves_its_bridge_is_not_gone() {
        const BRIDGE: u8 = 7;
        assert_eq!(messages(&message(DELETE_LINK, BRIDGE, 5, 0, &[])).count(), 0);
        let gone: Vec<_> = messages(&message(DELETE_LINK, 0, 5, 0, &[])).collect();
        assert_eq!(gone, [LinkMessage::Gone(5)]);
    }

    #[test]
    fn impossible_lengths_end_the_reading() {
        let mut bytes = message(NEW_LINK, 0, 5, 0, &attribute(NAME, b"wan\0"));
        for length in [0_u32, 3, 15, 1 << 30] {
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            assert_eq!(messages(&bytes).count(), 0, "{length}");
        }
        for length in [0_u16, 3, 200] {
            let [a, b] = length.to_ne_bytes();
            assert_eq!(attributes(&[a, b, 3, 0, 9, 9]).count(), 0, "{length}");
        }
    }
}
