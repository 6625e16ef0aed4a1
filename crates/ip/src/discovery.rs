//! Neighbour discovery for IPv6 (RFC 4861): solicitations and advertisements. Routers are not looked for,
//! and this one does not advertise itself.

use std::net::{IpAddr, Ipv6Addr};

use rheostat_packet::build::{FrameBuilder, Payload, Transport};
use rheostat_packet::checksum::{self, Validity};
use rheostat_packet::wire::{Icmpv6Message, Ipv6Packet, MacAddress, ethernet};

use crate::interface::{Interface, group_mac, solicited_node};
use crate::link::frame;

/// The type of a neighbour solicitation.
pub(crate) const SOLICITATION: u8 = 135;
/// The type of a neighbour advertisement.
pub(crate) const ADVERTISEMENT: u8 = 136;

const ICMPV6: u8 = 58;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// Options: the link addresses of the sender and of the target (section 4.6.1).
const SOURCE_OPTION: u8 = 1;
const TARGET_OPTION: u8 = 2;
/// In the first word of an advertisement.
const ROUTER: u32 = 1 << 31;
const SOLICITED: u32 = 1 << 30;
const OVERRIDE: u32 = 1 << 29;

/// A message that has passed every check of sections 7.1.1 and 7.1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Solicitation {
        target: Ipv6Addr,
        source_mac: Option<MacAddress>,
    },
    Advertisement {
        target: Ipv6Addr,
        target_mac: Option<MacAddress>,
        solicited: bool,
        overrides: bool,
    },
}

/// The message in a packet whose ICMPv6 header is `message`; `None` when it must be ignored.
pub(crate) fn parse(ip: &Ipv6Packet<'_>, message: &[u8]) -> Option<Message> {
    let (source, destination) = (ip.source(), ip.destination());
    let icmp = Icmpv6Message::new(message).ok()?;
    let validity = checksum::evaluate(
        IpAddr::V6(source),
        IpAddr::V6(destination),
        ICMPV6,
        icmp.checksum(),
        [message],
    );
    // A packet from beyond the link cannot arrive with 255.
    if ip.hop_limit() != 255 || icmp.code() != 0 || validity != Validity::Valid {
        return None;
    }
    let (target, options) = icmp.body().split_first_chunk::<16>()?;
    let target = Ipv6Addr::from(*target);
    if target.is_multicast() {
        return None;
    }
    let mac = |kind| link_address(options, kind);
    match icmp.kind() {
        SOLICITATION => {
            let source_mac = mac(SOURCE_OPTION)?;
            let is_probe = source.is_unspecified();
            let allowed = destination == solicited_node(target) && source_mac.is_none();
            (!is_probe || allowed).then_some(Message::Solicitation { target, source_mac })
        }
        ADVERTISEMENT => {
            let target_mac = mac(TARGET_OPTION)?;
            let flags = message.get(4..8)?.first_chunk().map(|word| u32::from_be_bytes(*word))?;
            let solicited = flags & SOLICITED != 0;
            let overrides = flags & OVERRIDE != 0;
            (!solicited || !destination.is_multicast()).then_some(Message::Advertisement {
                target,
                target_mac,
                solicited,
                overrides,
            })
        }
        _ => None,
    }
}

/// The link address in the option of this kind, if there is one. `None` when an option has no length, or
/// is cut off.
fn link_address(mut options: &[u8], kind: u8) -> Option<Option<MacAddress>> {
    let mut found = None;
    while let [this, words, ..] = *options {
        let len = usize::from(words) * 8;
        if len == 0 || len > options.len() {
            return None;
        }
        if this == kind && len == 8 {
            found = options[2..8].first_chunk().copied();
        }
        options = &options[len..];
    }
    options.is_empty().then_some(found)
}

/// Requests the link address of `target` (section 7.2.2): all that might have it, or the neighbour that
/// had it.
pub(crate) fn solicitation(
    interface: &Interface,
    source: Ipv6Addr,
    target: Ipv6Addr,
    to: Option<MacAddress>,
) -> Vec<u8> {
    let destination = if to.is_some() { target } else { solicited_node(target) };
    let to = to.unwrap_or_else(|| group_mac(destination.into()));
    message(interface, (source, destination), to, (SOLICITATION, 0), target, SOURCE_OPTION)
}

/// The answer to a solicitation from `source` (section 7.2.4), to all nodes when the solicitation has no source address. An
/// answer on behalf of another node does not override (section 7.2.8).
pub(crate) fn advertisement(
    interface: &Interface,
    target: Ipv6Addr,
    asked_by: Option<(Ipv6Addr, MacAddress)>,
) -> Vec<u8> {
    let (destination, to) = asked_by.unwrap_or((ALL_NODES, group_mac(ALL_NODES.into())));
    let solicited = if asked_by.is_some() { SOLICITED } else { 0 };
    let overrides = if interface.owns(target.into()) { OVERRIDE } else { 0 };
    let flags = ROUTER | solicited | overrides;
    message(interface, (target, destination), to, (ADVERTISEMENT, flags), target, TARGET_OPTION)
}

fn message(
    interface: &Interface,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    to: MacAddress,
    (kind, rest): (u8, u32),
    target: Ipv6Addr,
    option: u8,
) -> Vec<u8> {
    let mut body = target.octets().to_vec();
    body.extend([option, 1]);
    body.extend(interface.mac);
    let transport = Transport::Icmp { kind, code: 0, rest };
    let (source, destination) = (source.into(), destination.into());
    let packet = FrameBuilder::new(source, destination, transport, Payload::Bytes(&body));
    let packet = FrameBuilder { ttl: 255, ..packet }.to_vec();
    frame(interface, to, ethernet::IPV6, &packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rheostat_base::DeviceId;

    const PEER: MacAddress = [2, 0, 0, 0, 0, 9];

    fn interface() -> Interface {
        let mut interface = Interface::new(DeviceId(0), "lan", [2, 0, 0, 0, 0, 1]);
        interface.addresses = vec!["fd00::1/64".parse().unwrap()];
        interface
    }

    fn read(frame: &[u8]) -> Option<Message> {
        let ip = Ipv6Packet::new(&frame[14..]).unwrap();
        parse(&ip, ip.payload())
    }

    /// A packet in which a byte was changed, and the checksum with it.
    fn changed(frame: &[u8], at: usize, byte: u8) -> Vec<u8> {
        let mut frame = frame.to_vec();
        frame[14 + at] = byte;
        let ip = Ipv6Packet::new(&frame[14..]).unwrap();
        let mut sum = checksum::Sum::default();
        let len = u32::from(ip.payload_len());
        sum.add_pseudo_header(ip.source().into(), ip.destination().into(), ICMPV6, len);
        sum.add(&frame[54..56]);
        sum.add(&frame[58..]);
        let right = sum.checksum().to_be_bytes();
        frame[56..58].copy_from_slice(&right);
        frame
    }

    #[test]
    fn what_is_written_is_read() {
        let (own, peer) = ("fd00::1".parse().unwrap(), "fd00::9".parse().unwrap());
        let frame = solicitation(&interface(), own, peer, None);
        assert_eq!(&frame[..6], [0x33, 0x33, 0xff, 0, 0, 9]);
        let source_mac = Some([2, 0, 0, 0, 0, 1]);
        assert_eq!(read(&frame), Some(Message::Solicitation { target: peer, source_mac }));
        let frame = advertisement(&interface(), own, Some((peer, PEER)));
        assert_eq!(&frame[..6], PEER);
        let (target_mac, solicited) = (source_mac, true);
        let expected =
            Message::Advertisement { target: own, target_mac, solicited, overrides: true };
        assert_eq!(read(&frame), Some(expected));
        // For another, without overriding; to all, unasked.
        let frame = advertisement(&interface(), peer, None);
        let expected =
            Message::Advertisement { target: peer, target_mac, solicited: false, overrides: false };
        assert_eq!((read(&frame), &frame[..6]), (Some(expected), &[0x33, 0x33, 0, 0, 0, 1][..]));
    }

    #[test]
    fn what_must_be_ignored_is() {
        let (own, peer): (Ipv6Addr, Ipv6Addr) =
            ("fd00::1".parse().unwrap(), "fd00::9".parse().unwrap());
        let asked = solicitation(&interface(), own, peer, None);
        assert!(read(&changed(&asked, 7, 255)).is_some());
        for (at, byte, why) in [
            (7, 254, "it may have come through a router"),
            (41, 1, "a code"),
            (48, 0xff, "a group as the target"),
            (65, 0, "an option without length"),
            (65, 2, "an option that is cut off"),
        ] {
            assert_eq!(read(&changed(&asked, at, byte)), None, "{why}");
        }
        let mut wrong = asked;
        wrong[80] ^= 1;
        assert_eq!(read(&wrong), None, "a wrong checksum");
        // Without a source address but with a link address, or not to the group of the target.
        let unspecified = solicitation(&interface(), Ipv6Addr::UNSPECIFIED, peer, None);
        assert_eq!(read(&unspecified), None);
        // "Solicited", and yet to all nodes.
        let told = advertisement(&interface(), own, None);
        assert!(read(&told).is_some());
        assert_eq!(read(&changed(&told, 44, 0xe0)), None);
    }
}
