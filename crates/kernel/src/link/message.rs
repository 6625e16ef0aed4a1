//! Messages about links (`struct ifinfomsg` of `<linux/rtnetlink.h>`). Numbers are in the machine's own byte
//! order. What does not fit its stated length is passed over.

use crate::netlink::{DUMP, attributes, request, text, u16_at, u32_at};

use super::LinkState;

// <linux/rtnetlink.h>
const BODY: usize = 16;
const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
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
pub(crate) enum LinkMessage {
    /// A link is there, with these names, the main one first.
    There { names: Vec<String>, state: LinkState },
    /// The link of this index is gone.
    Gone(u32),
}

/// A request for a list of all links.
pub(super) fn list_request() -> Vec<u8> {
    // The body requests every kind of link.
    request(GET_LINK, DUMP, 0, &[0; BODY])
}

/// Reads the body of a message of this kind; `None` if it states nothing about a link.
pub(crate) fn read(kind: u16, body: &[u8]) -> Option<LinkMessage> {
    match kind {
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

#[cfg(test)]
mod tests {
    use crate::netlink::attribute;

    use super::*;

    fn body(family: u8, index: u32, flags: u32, attributes: &[u8]) -> Vec<u8> {
        let mut bytes = vec![family, 0];
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
        let body = body(0, 5, IS_UP | IS_RUNNING, &parts.concat());
        let state = LinkState {
            index: 5,
            mac: Some([2, 0, 0, 0, 0, 7]),
            mtu: 1_280,
            is_up: true,
            has_carrier: true,
        };
        let names = vec!["wan".to_owned(), "uplink".to_owned()];
        assert_eq!(read(NEW_LINK, &body), Some(LinkMessage::There { names, state }));
    }

    #[test]
    fn a_port_that_leaves_its_bridge_is_not_gone() {
        const BRIDGE: u8 = 7;
        assert_eq!(read(DELETE_LINK, &body(BRIDGE, 5, 0, &[])), None);
        assert_eq!(read(DELETE_LINK, &body(0, 5, 0, &[])), Some(LinkMessage::Gone(5)));
    }

    #[test]
    fn a_message_that_was_cut_states_no_more_than_it_has() {
        let whole = body(0, 5, 0, &attribute(NAME, b"wan\0"));
        for end in 0..BODY {
            assert_eq!(read(NEW_LINK, &whole[..end]), None, "{end}");
        }
        let Some(LinkMessage::There { names, .. }) = read(NEW_LINK, &whole[..BODY + 6]) else {
            panic!("a link")
        };
        assert_eq!(names, [""; 0]);
    }
}
