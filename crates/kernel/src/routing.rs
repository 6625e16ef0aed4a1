//! Interfaces, addresses, routes and neighbours as the kernel reports them (RFC 3549; rtnetlink(7)), and requests for them.
//! Messages that do not fit their stated length are left out, and unknown ones are passed over.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::link::message::{self, LinkMessage};
use crate::netlink::{Content, DUMP, Message, attributes, request, u16_at, u32_at};

// <linux/rtnetlink.h>
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const NEW_NEIGHBOUR: u16 = 28;
const DELETE_NEIGHBOUR: u16 = 29;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

/// What the socket listens to: links, neighbours, addresses and routes of both versions of IP (`RTMGRP_*`).
pub const GROUPS: u32 = 0x1 | 0x4 | 0x10 | 0x40 | 0x100 | 0x400;

/// A table to be told, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The interfaces.
    Links,
    /// Their addresses.
    Addresses,
    /// The routes.
    Routes,
    /// The neighbours.
    Neighbours,
}

impl Request {
    /// All, in the order in which they are to be requested.
    pub const ALL: [Request; 4] =
        [Request::Links, Request::Addresses, Request::Routes, Request::Neighbours];

    /// The request as it is sent, with this sequence number, which its answers have.
    pub fn bytes(self, sequence: u32) -> Vec<u8> {
        let (kind, body) = match self {
            Request::Links => (NEW_LINK + 2, 16),
            Request::Addresses => (NEW_ADDRESS + 2, 8),
            Request::Routes => (NEW_ROUTE + 2, 12),
            Request::Neighbours => (NEW_NEIGHBOUR + 2, 12),
        };
        // No family: all of them.
        request(kind, DUMP, sequence, &vec![0; body])
    }
}

/// A route of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelRoute {
    /// Where it leads.
    pub prefix: (IpAddr, u8),
    /// Of several to one prefix, the lowest is used.
    pub metric: u32,
    /// The kernel's number of the table.
    pub table: u32,
    /// The router, if there is one.
    pub gateway: Option<IpAddr>,
    /// The kernel's number of the interface.
    pub interface: u32,
}

/// Something that the kernel states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent {
    /// An interface is there, or has changed.
    Link {
        /// Its number.
        interface: u32,
        /// Its name.
        name: String,
        /// Whether it was put up (`ip link set … up`), with or without a carrier.
        is_up: bool,
    },
    /// An interface has gone.
    LinkGone(u32),
    /// An interface has an address, or no longer has it.
    Address {
        /// The interface.
        interface: u32,
        /// The address with the length of its network's prefix.
        address: (IpAddr, u8),
        /// Whether it is there.
        is_there: bool,
    },
    /// A route to unicast addresses is there, or no longer.
    Route {
        /// The route.
        route: KernelRoute,
        /// Whether it is there.
        is_there: bool,
    },
    /// The link address of a neighbour is known, or no longer.
    Neighbour {
        /// The interface.
        interface: u32,
        /// The neighbour.
        address: IpAddr,
        /// Its link address, while it can be relied on.
        mac: Option<[u8; 6]>,
        /// Whether an administrator has entered it.
        is_permanent: bool,
    },
    /// The answer to the request with this number is complete; whether it holds together.
    Done {
        /// The number.
        sequence: u32,
        /// Nothing has changed meanwhile.
        is_consistent: bool,
    },
    /// The request with this number failed, with this error number.
    Failed {
        /// The number.
        sequence: u32,
        /// As in errno(3).
        error: i32,
    },
    /// Messages were lost.
    Overrun,
}

/// The events of what was received at once.
#[derive(Clone, Debug)]
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    /// Reads `bytes`, which hold whole messages.
    pub fn new(bytes: &'a [u8]) -> Messages<'a> {
        Messages(bytes)
    }
}

impl Iterator for Messages<'_> {
    type Item = KernelEvent;

    fn next(&mut self) -> Option<KernelEvent> {
        loop {
            if let Some(event) = read(Message::take(&mut self.0)?) {
                return Some(event);
            }
        }
    }
}

/// The event of a message; `None` when it states nothing that counts here. The end of a dump states whether it is consistent; some
/// kernels mark each message of it, too.
fn read(message: Message<'_>) -> Option<KernelEvent> {
    let sequence = message.sequence;
    match message.content {
        Content::Done { is_consistent } => Some(KernelEvent::Done { sequence, is_consistent }),
        Content::Failed(error) => Some(KernelEvent::Failed { sequence, error }),
        Content::Overrun => Some(KernelEvent::Overrun),
        Content::Acknowledged => None,
        Content::Part { kind, body } => match kind {
            NEW_ADDRESS | DELETE_ADDRESS => read_address(body, kind == NEW_ADDRESS),
            NEW_ROUTE | DELETE_ROUTE => read_route(body, kind == NEW_ROUTE),
            NEW_NEIGHBOUR | DELETE_NEIGHBOUR => read_neighbour(body, kind == NEW_NEIGHBOUR),
            _ => message::read(kind, body).map(KernelEvent::from),
        },
    }
}

impl From<LinkMessage> for KernelEvent {
    fn from(message: LinkMessage) -> KernelEvent {
        match message {
            LinkMessage::There { names, state } => KernelEvent::Link {
                interface: state.index,
                name: names.into_iter().next().unwrap_or_default(),
                is_up: state.is_up,
            },
            LinkMessage::Gone(interface) => KernelEvent::LinkGone(interface),
        }
    }
}

/// `struct ifaddrmsg`.
fn read_address(body: &[u8], is_there: bool) -> Option<KernelEvent> {
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    let (&family, &length) = (body.first()?, body.get(1)?);
    let interface = u32_at(body, 4)?;
    let mut address = None;
    for (kind, value) in attributes(body.get(8..)?) {
        // On a link of two, the first is the other end's.
        if kind == LOCAL || (kind == ADDRESS && address.is_none()) {
            address = read_ip(family, value);
        }
    }
    Some(KernelEvent::Address { interface, address: (address?, length), is_there })
}

/// `struct rtmsg`.
fn read_route(body: &[u8], is_there: bool) -> Option<KernelEvent> {
    const UNICAST: u8 = 1;
    const CLONED: u32 = 0x200;
    const DESTINATION: u16 = 1;
    const INTERFACE: u16 = 4;
    const GATEWAY: u16 = 5;
    const PRIORITY: u16 = 6;
    const MULTIPATH: u16 = 9;
    const TABLE: u16 = 15;
    let [family, length, _, _, table, _, _, kind] = *body.first_chunk()?;
    if kind != UNICAST || u32_at(body, 8)? & CLONED != 0 {
        return None;
    }
    let mut route = KernelRoute {
        prefix: (any(family)?, length),
        metric: 0,
        table: table.into(),
        gateway: None,
        interface: 0,
    };
    for (kind, value) in attributes(body.get(12..)?) {
        match kind {
            DESTINATION => route.prefix.0 = read_ip(family, value)?,
            INTERFACE => route.interface = u32_at(value, 0)?,
            GATEWAY => route.gateway = Some(read_ip(family, value)?),
            PRIORITY => route.metric = u32_at(value, 0)?,
            TABLE => route.table = u32_at(value, 0)?,
            // Of several ways the first one: a flow keeps to one in any case.
            MULTIPATH => {
                // `struct rtnexthop`: its length, flags, and the interface.
                let length = usize::from(u16_at(value, 0)?);
                route.interface = u32_at(value, 4)?;
                let of_first = attributes(value.get(8..length)?);
                let gateway = of_first.filter(|(kind, _)| *kind == GATEWAY).last();
                route.gateway = gateway.and_then(|(_, value)| read_ip(family, value));
            }
            _ => {}
        }
    }
    let longest = if family == AF_INET { 32 } else { 128 };
    (length <= longest).then_some(KernelEvent::Route { route, is_there })
}

/// `struct ndmsg`.
fn read_neighbour(body: &[u8], is_there: bool) -> Option<KernelEvent> {
    const DESTINATION: u16 = 1;
    const LINK_ADDRESS: u16 = 2;
    /// Reachable, stale, delayed, being asked, permanent: states in which the address is known.
    const KNOWN: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x80;
    const PERMANENT: u16 = 0x80;
    let &family = body.first()?;
    let (interface, state) = (u32_at(body, 4)?, u16_at(body, 8)?);
    let find = |wanted: u16| {
        attributes(body.get(12..).unwrap_or_default()).find(|(kind, _)| *kind == wanted)
    };
    let address = read_ip(family, find(DESTINATION)?.1)?;
    let mac = find(LINK_ADDRESS).and_then(|(_, value)| value.try_into().ok());
    let mac = mac.filter(|_| is_there && state & KNOWN != 0);
    let is_permanent = is_there && state & PERMANENT != 0;
    Some(KernelEvent::Neighbour { interface, address, mac, is_permanent })
}

fn read_ip(family: u8, value: &[u8]) -> Option<IpAddr> {
    match family {
        AF_INET => <[u8; 4]>::try_from(value).ok().map(|octets| Ipv4Addr::from(octets).into()),
        AF_INET6 => <[u8; 16]>::try_from(value).ok().map(|octets| Ipv6Addr::from(octets).into()),
        _ => None,
    }
}

/// The address that a default route has.
fn any(family: u8) -> Option<IpAddr> {
    match family {
        AF_INET => Some(Ipv4Addr::UNSPECIFIED.into()),
        AF_INET6 => Some(Ipv6Addr::UNSPECIFIED.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::attribute;
    use crate::netlink::message_of_kind as message;

    /// A route of IPv4 in the main table.
    fn route_v4(
        prefix: ([u8; 4], u8),
        gateway: Option<[u8; 4]>,
        interface: u32,
        metric: u32,
    ) -> Vec<u8> {
        let mut body = vec![AF_INET, prefix.1, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        body.extend(attribute(1, &prefix.0));
        body.extend(attribute(4, &interface.to_ne_bytes()));
        body.extend(attribute(6, &metric.to_ne_bytes()));
        body.extend(gateway.map_or(vec![], |gateway| attribute(5, &gateway)));
        body
    }

    fn only(bytes: &[u8]) -> Option<KernelEvent> {
        let events: Vec<_> = Messages::new(bytes).collect();
        assert!(events.len() < 2, "{events:?}");
        events.into_iter().next()
    }

    #[test]
    fn routes_are_read_with_their_gateway() {
        let body = route_v4(([10, 0, 0, 0], 8), Some([192, 0, 2, 1]), 7, 100);
        let route = KernelRoute {
            prefix: ([10, 0, 0, 0].into(), 8),
            metric: 100,
            table: 254,
            gateway: Some([192, 0, 2, 1].into()),
            interface: 7,
        };
        let is_there = true;
        assert_eq!(only(&message(24, 0, &body)), Some(KernelEvent::Route { route, is_there }));
        let is_there = false;
        assert_eq!(only(&message(25, 0, &body)), Some(KernelEvent::Route { route, is_there }));
        // The default route has no destination; of two ways the first counts.
        let mut ways = [24_u16.to_ne_bytes(), [0, 0]].concat();
        ways.extend(9_u32.to_ne_bytes());
        ways.extend(attribute(5, &[192, 0, 2, 9]));
        ways.extend([0; 8]);
        ways.extend([8_u16.to_ne_bytes(), [0, 0]].concat());
        ways.extend(3_u32.to_ne_bytes());
        let mut body = vec![AF_INET, 0, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        body.extend(attribute(9, &ways));
        let Some(KernelEvent::Route { route, .. }) = only(&message(24, 0, &body)) else { panic!() };
        assert_eq!((route.prefix, route.interface), (([0, 0, 0, 0].into(), 0), 9));
        assert_eq!(route.gateway, Some([192, 0, 2, 9].into()));
        // A broadcast route leads to no next hop.
        body[7] = 3;
        assert_eq!(only(&message(24, 0, &body)), None);
    }

    #[test]
    fn links_addresses_and_neighbours_are_read() {
        let mut body = vec![0; 16];
        body[4] = 5;
        body.extend(attribute(3, b"eth0\0"));
        for is_up in [false, true] {
            let (interface, name) = (5, "eth0".to_owned());
            body[8] = u8::from(is_up);
            let link = KernelEvent::Link { interface, name, is_up };
            assert_eq!(only(&message(16, 0, &body)), Some(link));
        }
        assert_eq!(only(&message(17, 0, &body)), Some(KernelEvent::LinkGone(5)));

        let mut body = vec![AF_INET, 24, 0, 0, 5, 0, 0, 0];
        body.extend(attribute(1, &[192, 0, 2, 2]));
        body.extend(attribute(2, &[192, 0, 2, 1]));
        let (interface, address, is_there) = (5, ([192, 0, 2, 1].into(), 24), true);
        let expected = KernelEvent::Address { interface, address, is_there };
        assert_eq!(only(&message(20, 0, &body)), Some(expected));

        let mut body = vec![AF_INET6, 0, 0, 0, 5, 0, 0, 0, 0x80, 0, 0, 1];
        let host = Ipv6Addr::LOCALHOST;
        body.extend(attribute(1, &host.octets()));
        body.extend(attribute(2, &[2, 0, 0, 0, 0, 7]));
        let known = KernelEvent::Neighbour {
            interface: 5,
            address: host.into(),
            mac: Some([2, 0, 0, 0, 0, 7]),
            is_permanent: true,
        };
        assert_eq!(only(&message(28, 0, &body)), Some(known));
        // It has not answered: nothing to rely on.
        body[8] = 0x20;
        let Some(KernelEvent::Neighbour { mac, is_permanent, .. }) = only(&message(28, 0, &body))
        else {
            panic!()
        };
        assert_eq!((mac, is_permanent), (None, false));
    }

    #[test]
    fn requests_and_their_ends_have_numbers() {
        let bytes = Request::Routes.bytes(9);
        assert_eq!((u32_at(&bytes, 0), u16_at(&bytes, 4)), (Some(28), Some(26)));
        assert_eq!((u16_at(&bytes, 6), u32_at(&bytes, 8)), (Some(0x301), Some(9)));
        let done = KernelEvent::Done { sequence: 9, is_consistent: true };
        assert_eq!(only(&message(3, 9, &[0; 4])), Some(done));
        let failed = KernelEvent::Failed { sequence: 9, error: 16 };
        assert_eq!(only(&message(2, 9, &(-16_i32).to_ne_bytes())), Some(failed));
        assert_eq!(only(&message(2, 9, &[0; 4])), None, "an acknowledgement");
        assert_eq!(only(&message(4, 0, &[])), Some(KernelEvent::Overrun));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn damaged_messages_are_read_to_an_end(
            kind in prop::sample::select(vec![2_u16, 3, 16, 17, 20, 21, 24, 25, 28, 29]),
            at in 0..64_usize,
            with in proptest::num::u8::ANY,
            cut in 0..64_usize,
        ) {
            let body = route_v4(([10, 0, 0, 0], 8), Some([192, 0, 2, 1]), 7, 100);
            let mut bytes = message(kind, 1, &body);
            let place = at % bytes.len();
            bytes[place] = with;
            bytes.truncate(bytes.len() - cut % bytes.len());
            prop_assert!(Messages::new(&bytes).count() <= 4);
        }
    }
}
