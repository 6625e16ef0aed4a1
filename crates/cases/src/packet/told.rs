//! Frames in the words of a case.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use rheostat_packet::wire::tcp_option::TcpOption;
use rheostat_packet::wire::{Ipv4Packet, Ipv6Packet, icmpv4, icmpv6};
use rheostat_packet::{Headers, LinkType, Network, tuple};

use super::{Details, FLAGS, GUE, WINDOW};
use crate::link::{Discovery, tell_arp, tell_mac};

/// A frame in the words of a case: what two packets must have in common to be taken for the same.
pub(crate) fn tell(frame: &[u8]) -> String {
    let Ok(headers) = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet) else {
        return format!("a malformed frame of {} bytes", frame.len());
    };
    let told = match headers.network {
        Network::Arp => tell_arp(&frame[usize::from(headers.l3)..]),
        _ => None,
    };
    let mut text = told.unwrap_or_else(|| tell_ip(frame, &headers));
    if headers.zone > 0 {
        let _ = write!(text, " vlan {}", headers.zone);
    }
    text
}

/// A frame in the words of a case, with these details.
pub(crate) fn tell_with(frame: &[u8], details: Details) -> String {
    let mut text = tell(frame);
    let Ok(headers) = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet) else {
        return text;
    };
    let ip = &frame[usize::from(headers.l3)..];
    let ttl = match headers.network {
        Network::Ipv4 => Ipv4Packet::new(ip).ok().map(|ip| ip.ttl()),
        _ => Ipv6Packet::new(ip).ok().map(|ip| ip.hop_limit()),
    };
    if let Some(ttl) = ttl.filter(|_| details.ttl) {
        let _ = write!(text, " ttl {ttl}");
    }
    if details.to {
        let _ = write!(text, " to {}", tell_mac(&frame[..6]));
    }
    text
}

fn tell_ip(data: &[u8], headers: &Headers) -> String {
    let Some(hosts) = tuple::addresses(data, headers) else {
        return format!("ethertype {:#06x}", headers.ethertype);
    };
    let l4 = usize::from(headers.l4);
    let rest = data.get(l4..(headers.end as usize).min(data.len())).unwrap_or_default();
    let port = |at: usize| rest.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
    let has_ports = matches!(headers.protocol, 6 | 17) && headers.fragment.is_none();
    let end = |address: IpAddr, port: u16| match has_ports {
        true => SocketAddr::new(address, port).to_string(),
        false => address.to_string(),
    };
    let mut text = format!("{} > {} ", end(hosts.first(), port(0)), end(hosts.second(), port(2)));
    let written = match (headers.fragment, headers.network, headers.protocol) {
        (Some(fragment), ..) => write!(
            text,
            "proto {} frag {} {} {}{}",
            headers.protocol,
            fragment.offset,
            fragment.len,
            fragment.id,
            if fragment.more { " more" } else { "" }
        ),
        (None, _, 6) => write!(text, "{}", tell_tcp(rest)),
        (None, _, 17) if port(2) == GUE => {
            write!(text, "udp carrying {}", tell_carried(rest.get(8..).unwrap_or_default()))
        }
        (None, _, 17) => write!(text, "udp len {}", rest.len().saturating_sub(8)),
        (None, _, 4 | 41) => {
            write!(text, "proto {} carrying {}", headers.protocol, tell_carried(rest))
        }
        (None, Network::Ipv6, 58) if matches!(rest.first(), Some(135 | 136)) => {
            write!(text, "{}", Discovery::tell(rest).unwrap_or_default())
        }
        (None, Network::Ipv4, 1) | (None, Network::Ipv6, 58) => {
            let (embedded, id) = match headers.network {
                Network::Ipv4 => (icmpv4::embedded(rest), icmpv4::query_id(rest)),
                _ => (icmpv6::embedded(rest), icmpv6::query_id(rest)),
            };
            let id = id.map(|id| format!(" id {id}"));
            let quoted =
                embedded.map(|packet| match Headers::parse_bytes(packet, 65_535, LinkType::Raw) {
                    Ok(headers) => format!(" about {}", tell_ip(packet, &headers)),
                    Err(_) => " about something malformed".to_owned(),
                });
            let (kind, code) = (rest.first().copied(), rest.get(1).copied());
            let is_too_big = match headers.network {
                Network::Ipv4 => (kind, code) == (Some(3), Some(4)),
                _ => kind == Some(2),
            };
            let word = rest.get(4..).and_then(|rest| rest.first_chunk()).filter(|_| is_too_big);
            let mtu = word.map(|word| format!(" mtu {}", u32::from_be_bytes(*word)));
            write!(
                text,
                "icmp {} {}{}{}{}",
                kind.unwrap_or_default(),
                code.unwrap_or_default(),
                id.unwrap_or_default(),
                mtu.unwrap_or_default(),
                quoted.unwrap_or_default()
            )
        }
        (None, _, protocol) => write!(text, "proto {protocol} len {}", rest.len()),
    };
    written.expect("writing to a string does not fail");
    let ip = data.get(usize::from(headers.l3)..).unwrap_or_default();
    let tos = match headers.network {
        Network::Ipv4 => Ipv4Packet::new(ip).map(|ip| ip.tos()),
        _ => Ipv6Packet::new(ip).map(|ip| ip.traffic_class()),
    };
    if let Ok(tos @ 1..) = tos {
        let _ = write!(text, " tos {tos:#04x}");
    }
    text
}

/// The packet in a tunnel.
fn tell_carried(packet: &[u8]) -> String {
    match Headers::parse_bytes(packet, packet.len(), LinkType::Raw) {
        Ok(headers) => tell_ip(packet, &headers),
        Err(_) => "something malformed".to_owned(),
    }
}

fn tell_tcp(segment: &[u8]) -> String {
    let Ok(tcp) = rheostat_packet::wire::TcpSegment::new(segment) else {
        return "tcp cut short".to_owned();
    };
    let letters: String = FLAGS
        .iter()
        .filter(|(_, bit)| tcp.flags().0 & bit != 0)
        .map(|(letter, _)| letter)
        .collect();
    let mut text = format!("tcp {letters} seq {}", tcp.seq());
    if tcp.flags().0 & 16 != 0 {
        let _ = write!(text, " ack {}", tcp.ack());
    }
    if tcp.window() != WINDOW {
        let _ = write!(text, " win {}", tcp.window());
    }
    let len = segment.len() - tcp.header_len().min(segment.len());
    if len > 0 {
        let _ = write!(text, " len {len}");
    }
    for option in tcp.options() {
        if let TcpOption::WindowScale(shift) = option {
            let _ = write!(text, " scale {shift}");
        }
    }
    text
}
