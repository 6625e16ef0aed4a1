//! Every accessor of every view, on any bytes: none reads beyond them, and lengths agree.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use rheostat_packet::wire::tcp_option::TcpOption;
use rheostat_packet::wire::{
    ah::AuthenticationHeader, arp::ArpPacket, esp::EspPacket, ethernet::EthernetFrame,
    gre::GrePacket, icmpv4, icmpv6, ipv4::Ipv4Packet, ipv6::Ipv6Packet, sctp::SctpPacket,
    tcp::TcpSegment, udp::UdpDatagram, vlan::VlanTag,
};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(frame) = EthernetFrame::new(bytes) {
        black_box((frame.destination(), frame.source(), frame.ethertype()));
        assert_eq!(frame.payload().len(), bytes.len() - 14);
    }
    if let Ok(tag) = VlanTag::new(bytes) {
        assert!(tag.id() < 4_096 && tag.priority() < 8);
        black_box((tag.drop_eligible(), tag.ethertype(), tag.payload()));
    }
    if let Ok(arp) = ArpPacket::new(bytes) {
        assert!(arp.len() <= bytes.len());
        black_box((arp.hardware(), arp.protocol(), arp.operation(), arp.addresses()));
    }
    if let Ok(ip) = Ipv4Packet::new(bytes) {
        assert!((20..=60).contains(&ip.header_len()));
        assert_eq!(ip.header().len(), 20 + ip.options().len());
        assert!(ip.payload().len() <= bytes.len() - ip.header().len());
        assert!(ip.fragment_offset().is_multiple_of(8));
        assert_eq!(ip.is_fragment(), ip.more_fragments() || ip.fragment_offset() > 0);
        black_box((ip.tos(), ip.id(), ip.dont_fragment(), ip.ttl(), ip.protocol()));
        black_box((ip.is_checksum_valid(), ip.source(), ip.destination(), ip.total_len()));
    }
    if let Ok(ip) = Ipv6Packet::new(bytes) {
        assert!(ip.flow_label() < 1 << 20);
        let mut extensions = ip.extensions();
        let mut seen = 0;
        for extension in extensions.by_ref() {
            let Ok(extension) = extension else { break };
            black_box((extension.next_header(), extension.has_segments_left()));
            black_box(extension.jumbo_len());
            assert!(extension.fragment().is_none_or(|fragment| fragment.offset % 8 == 0));
            seen += 1;
            assert!(seen <= bytes.len(), "extension headers without end");
        }
        assert!(extensions.rest().len() <= bytes.len() - 40);
        black_box((ip.traffic_class(), ip.next_header(), ip.hop_limit(), ip.payload()));
    }
    if let Ok(segment) = TcpSegment::new(bytes) {
        assert!((20..=60).contains(&segment.header_len()));
        let mut options = 0;
        for option in segment.options() {
            if let TcpOption::WindowScale(shift) = option {
                black_box(shift);
            }
            options += 1;
        }
        assert!(options <= 40, "more options than bytes for them");
        black_box((segment.seq(), segment.ack(), segment.window(), segment.flags()));
    }
    if let Ok(datagram) = UdpDatagram::new(bytes) {
        black_box((datagram.source_port(), datagram.destination_port(), datagram.stated_len()));
    }
    for embedded in [icmpv4::embedded(bytes), icmpv6::embedded(bytes)].into_iter().flatten() {
        assert!(embedded.len() <= bytes.len());
    }
    black_box((icmpv4::query_id(bytes), icmpv6::query_id(bytes)));
    if let Ok(sctp) = SctpPacket::new(bytes) {
        assert_eq!(sctp.chunks().len(), bytes.len() - 12);
    }
    if let Ok(gre) = GrePacket::new(bytes) {
        assert_eq!(gre.payload().len() + gre.header_len(), bytes.len());
        black_box((gre.protocol(), gre.key()));
    }
    if let Ok(esp) = EspPacket::new(bytes) {
        black_box((esp.spi(), esp.sequence()));
    }
    if let Ok(ah) = AuthenticationHeader::new(bytes) {
        black_box((ah.next_header(), ah.spi(), ah.sequence(), ah.payload()));
    }
});
