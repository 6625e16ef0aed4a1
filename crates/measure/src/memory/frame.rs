//! Writes the headers of a packet into a buffer, checksums included.

use std::net::Ipv4Addr;

use rheostat_packet::checksum::Sum;

use super::endpoints::{MemoryEndpoints, PREFIX, TAG_LEN, VLAN};

/// FIN flag and so on, as in the header.
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
const TCP: usize = 20;
/// The window scale option (RFC 7323, section 2.2), padded.
const SCALE: [u8; 4] = [1, 3, 3, 14];

/// What differs between the packets of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrameStep {
    /// Whether the client sends.
    pub(super) from_client: bool,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    /// Bytes of the frame.
    pub(super) len: u16,
    /// Whether the packet carries data up to the end of the frame; else the rest is padding.
    pub(super) has_data: bool,
    /// Below 16. Written into the traffic class, which every chain leaves alone, so that what leaves can
    /// be distinguished.
    pub(super) mark: u8,
    /// Written into the sender's link address: which flow or connection it is. Routers overwrite it.
    pub(super) tag: u32,
}

/// Bytes of data that each data packet of the flow carries.
#[inline]
pub(super) fn payload_len(ends: &MemoryEndpoints) -> u32 {
    let transport = if ends.is_udp { UDP } else { TCP };
    let network = if ends.is_v6 { IPV6 } else { IPV4 };
    let tag = if ends.is_tagged { TAG_LEN } else { 0 };
    u32::from(ends.frame_len - tag) - (ETHERNET + network + transport) as u32
}

/// The [`FrameStep::mark`] of a frame, whichever version of IP it has.
#[inline(always)]
pub(super) fn mark(frame: &[u8]) -> u8 {
    untagged(frame)[ETHERNET + 1] >> 4
}

/// The part of a frame whose network layer begins where that of a frame without a tag does.
#[inline(always)]
pub(super) fn untagged(frame: &[u8]) -> &[u8] {
    if frame[12..14] == VLAN_TYPE { &frame[TAG_LEN.into()..] } else { frame }
}

/// The Ethertype of a tag (IEEE 802.1Q).
const VLAN_TYPE: [u8; 2] = [0x81, 0];

/// Where [`FrameStep::tag`] lies.
pub(super) const TAG: usize = 7;

/// Bytes behind which no header of any frame ends, so that what an earlier packet left in a buffer does not become data.
pub(super) const CLEARED: usize = 80;

/// Writes the headers of a packet into `frame`, which is as long as the packet and whose payload is
/// zero but for what the headers of another packet left.
pub(super) fn write(frame: &mut [u8], ends: &MemoryEndpoints, step: &FrameStep) {
    if !ends.is_tagged {
        return write_untagged(frame, ends, step);
    }
    let tag = usize::from(TAG_LEN);
    write_untagged(&mut frame[tag..], ends, step);
    frame.copy_within(tag..tag + 12, 0);
    frame[12..14].copy_from_slice(&VLAN_TYPE);
    frame[14..16].copy_from_slice(&VLAN.to_be_bytes());
}

fn write_untagged(frame: &mut [u8], ends: &MemoryEndpoints, step: &FrameStep) {
    let (from, to) =
        if step.from_client { (ends.client, ends.server) } else { (ends.server, ends.client) };
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    let [a, b, c, d] = step.tag.to_be_bytes();
    frame[6..12].copy_from_slice(&[2, a, b, c, d, 0]);
    if ends.has_stations {
        // Clients and servers may have addresses in common.
        let station = |address: Ipv4Addr, is_client: bool| {
            let [a, b, c, d] = address.octets();
            [2, u8::from(is_client), a, b, c, d]
        };
        frame[..6].copy_from_slice(&station(to.0, !step.from_client));
        frame[6..12].copy_from_slice(&station(from.0, step.from_client));
    }
    let protocol = if ends.is_udp { 17 } else { 6 };
    let network = if ends.is_v6 { IPV6 } else { IPV4 };
    let payload = match (step.has_data, ends.is_udp, step.flags & SYN != 0) {
        (true, ..) => frame.len() - ETHERNET - network,
        (false, true, _) => UDP,
        (false, false, true) => TCP + SCALE.len(),
        (false, false, false) => TCP,
    } as u16;
    // The pseudo-header, of which the addresses differ (RFC 8200, section 8.1).
    let mut sum = Sum::default();
    sum.add_u16(protocol.into());
    sum.add_u16(payload);
    if ends.is_v6 {
        write_ipv6(frame, (protocol, step.mark), payload, (from.0, to.0), &mut sum);
    } else {
        write_ipv4(frame, (protocol, step.mark), payload, (from.0, to.0), &mut sum);
    }
    let headers = match (ends.is_udp, step.flags & SYN != 0) {
        (true, _) => ETHERNET + network + UDP,
        (false, true) => ETHERNET + network + TCP + SCALE.len(),
        (false, false) => ETHERNET + network + TCP,
    };
    let cleared = frame.len().min(CLEARED);
    frame[headers..cleared].fill(0);
    let transport = &mut frame[ETHERNET + network..];
    transport[..2].copy_from_slice(&from.1.to_be_bytes());
    transport[2..4].copy_from_slice(&to.1.to_be_bytes());
    sum.add_u16(from.1);
    sum.add_u16(to.1);
    if ends.is_udp {
        transport[4..6].copy_from_slice(&payload.to_be_bytes());
        sum.add_u16(payload);
        let checksum = rheostat_packet::checksum::for_udp(sum.checksum());
        transport[6..8].copy_from_slice(&checksum.to_be_bytes());
    } else {
        write_tcp(transport, step, sum);
    }
}

fn write_ipv4(
    frame: &mut [u8],
    (protocol, mark): (u8, u8),
    payload: u16,
    (from, to): (Ipv4Addr, Ipv4Addr),
    sum: &mut Sum,
) {
    let total = IPV4 as u16 + payload;
    frame[12..14].copy_from_slice(&[8, 0]);
    let header: &mut [u8; IPV4] = (&mut frame[ETHERNET..ETHERNET + IPV4]).try_into().expect("20");
    *header = [0x45, mark << 4, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header[2..4].copy_from_slice(&total.to_be_bytes());
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let mut addresses = Sum::default();
    addresses.add_u32(from.to_bits());
    addresses.add_u32(to.to_bits());
    sum.add_sum(addresses);
    addresses.add_u32(0x4500_0000 | u32::from(mark) << 20 | u32::from(total));
    addresses.add_u32(0x4000);
    addresses.add_u16(64 << 8 | u16::from(protocol));
    header[10..12].copy_from_slice(&addresses.checksum().to_be_bytes());
}

fn write_ipv6(
    frame: &mut [u8],
    (protocol, mark): (u8, u8),
    payload: u16,
    (from, to): (Ipv4Addr, Ipv4Addr),
    sum: &mut Sum,
) {
    frame[12..14].copy_from_slice(&[0x86, 0xdd]);
    let header = &mut frame[ETHERNET..ETHERNET + IPV6];
    header[..8].copy_from_slice(&[0x60, mark << 4, 0, 0, 0, 0, protocol, 64]);
    header[4..6].copy_from_slice(&payload.to_be_bytes());
    for (place, address) in header[8..].chunks_exact_mut(16).zip([from, to]) {
        place.copy_from_slice(&(PREFIX | u128::from(address.to_bits())).to_be_bytes());
        sum.add_u32((PREFIX >> 96) as u32);
        sum.add_u32(address.to_bits());
    }
}

fn write_tcp(transport: &mut [u8], step: &FrameStep, mut sum: Sum) {
    let scales = step.flags & SYN != 0;
    let header = if scales { TCP + SCALE.len() } else { TCP };
    transport[4..8].copy_from_slice(&step.seq.to_be_bytes());
    transport[8..12].copy_from_slice(&step.ack.to_be_bytes());
    let offset_and_flags = (header as u16) << 10 | u16::from(step.flags);
    transport[12..14].copy_from_slice(&offset_and_flags.to_be_bytes());
    transport[14..20].copy_from_slice(&[0xff, 0xff, 0, 0, 0, 0]);
    sum.add_u32(step.seq);
    sum.add_u32(step.ack);
    sum.add_u16(offset_and_flags);
    sum.add_u16(0xffff);
    if scales {
        transport[TCP..TCP + SCALE.len()].copy_from_slice(&SCALE);
        sum.add(&SCALE);
    }
    transport[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
}

#[cfg(test)]
mod tests {
    use rheostat_packet::checksum::{Validity, evaluate_packet};
    use rheostat_packet::{Headers, Mempool, MempoolConfig, PoolCache, Tuple};

    use super::super::endpoints::{FrameSize, Servers};
    use super::*;

    #[test]
    fn every_kind_of_packet_is_well_formed() {
        let pool = Mempool::new(&MempoolConfig { buffers: 16, ..MempoolConfig::default() });
        let mut cache = PoolCache::new(pool.expect("memory for a few buffers"));
        let mut kinds = std::collections::HashSet::new();
        let sizes = [FrameSize::Mix, FrameSize::Smallest, FrameSize::Tagged, FrameSize::Ipv6];
        for (number, size) in (0..2_000).zip(sizes.into_iter().cycle()) {
            let ends = MemoryEndpoints::of(number, size, Servers::Many);
            kinds.insert((ends.is_v6, ends.is_udp, ends.is_tagged, ends.frame_len));
            for (flags, from_client) in [(SYN, true), (SYN | ACK, false), (PSH | ACK, true)] {
                let has_data = flags & SYN == 0;
                let len = if has_data { ends.frame_len } else { ends.handshake_len() };
                let mut packet = cache.alloc(len.into()).expect("a buffer");
                packet.data_mut().fill(0);
                let (seq, ack) = (7, 9);
                let step =
                    FrameStep { from_client, seq, ack, flags, len, has_data, mark: 5, tag: 0 };
                write(packet.data_mut(), &ends, &step);
                assert_eq!(untagged(packet.data()).len() < packet.len(), ends.is_tagged);
                assert_eq!(mark(packet.data()), 5);
                let headers = Headers::parse(&packet).expect("well-formed");
                assert_eq!(evaluate_packet(&packet, &headers), Some(Validity::Valid), "{ends:?}");
                let key = if from_client { ends.key() } else { ends.key().reversed() };
                assert_eq!(Tuple::of(&packet, &headers), Tuple::Flow(key));
                cache.free(packet);
            }
        }
        assert!(kinds.len() > 8, "{kinds:?}");
    }
}
