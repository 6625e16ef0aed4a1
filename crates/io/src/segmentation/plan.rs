//! Cutting a frame into packets.

use rheostat_packet::checksum::{self, Sum};
use rheostat_packet::{Headers, LinkType, Network};

use super::offload::{Offload, OffloadError, Transport};

/// Offsets into a TCP header.
const SEQUENCE: usize = 4;
const FLAGS: usize = 13;
const FIN_OR_PUSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// How a frame is cut. Holds no bytes of it, so that the segments can be made one by one while the frame
/// lies elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    network: Network,
    transport: Transport,
    l3: usize,
    l4: usize,
    /// Bytes of all headers together.
    headers: usize,
    /// Where the transport checksum stands.
    checksum: usize,
    /// Bytes of data in each segment but the last.
    size: usize,
    /// Bytes of the frame, link padding excluded.
    end: usize,
}

impl Segmentation {
    /// Plans the cutting of `frame`; `None` if it is not to be cut.
    ///
    /// # Errors
    /// [`OffloadError::Layout`] when the headers of the frame are not where the offload states.
    pub fn plan(frame: &[u8], offload: &Offload) -> Result<Option<Segmentation>, OffloadError> {
        let Some((transport, size)) = offload.segments else { return Ok(None) };
        let wrong = OffloadError::Layout;
        let (start, offset) = offload.checksum.ok_or(wrong)?;
        let (l4, checksum) = (usize::from(start), usize::from(start) + usize::from(offset));
        let parsed = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet);
        let parsed = parsed.map_err(|_| wrong)?;
        let (protocol, field) = match transport {
            Transport::Tcp => (6, 16),
            Transport::Udp => (17, 6),
        };
        let is_whole = parsed.fragment.is_none() && parsed.protocol == protocol;
        if !is_whole || usize::from(parsed.l4) != l4 || checksum != l4 + field {
            return Err(wrong);
        }
        let transport_header = match transport {
            Transport::Tcp => usize::from(*frame.get(l4 + 12).ok_or(wrong)? >> 4) * 4,
            Transport::Udp => 8,
        };
        let (headers, end) = (l4 + transport_header, parsed.end as usize);
        if headers > end || end > frame.len() {
            return Err(wrong);
        }
        let l3 = usize::from(parsed.l3);
        let size = size.into();
        let network = parsed.network;
        Ok(Some(Segmentation { network, transport, l3, l4, headers, checksum, size, end }))
    }

    /// How many segments there are; one at least.
    pub fn count(&self) -> usize {
        (self.end - self.headers).div_ceil(self.size).max(1)
    }

    /// Writes segment `index` of the frame that was planned into `out`, in place of what it holds.
    ///
    /// # Panics
    /// When there is no such segment, or it is another frame.
    pub fn write(&self, frame: &[u8], index: usize, out: &mut Vec<u8>) {
        let start = self.headers + index * self.size;
        let end = (start + self.size).min(self.end);
        out.clear();
        out.extend_from_slice(&frame[..self.headers]);
        out.extend_from_slice(&frame[start..end]);
        self.set_lengths(out, index);
        let (is_first, is_last) = (index == 0, end == self.end);
        match self.transport {
            Transport::Tcp => self.continue_tcp(out, index, is_first, is_last),
            Transport::Udp => {
                let len = (out.len() - self.l4) as u16;
                put(out, self.l4 + 4, len);
            }
        }
        self.set_checksum(frame, out);
    }

    /// The length of the packet, its number and the header's checksum.
    fn set_lengths(&self, out: &mut [u8], index: usize) {
        let (l3, len) = (self.l3, out.len() - self.l3);
        if self.network == Network::Ipv6 {
            return put(out, l3 + 4, (len - 40) as u16);
        }
        put(out, l3 + 2, len as u16);
        // Each segment could be fragmented further on, so they count (RFC 6864, section 4.2).
        let id = at(out, l3 + 4).wrapping_add(index as u16);
        put(out, l3 + 4, id);
        put(out, l3 + 10, 0);
        let header = l3..l3 + usize::from(out[l3] & 0xf) * 4;
        let sum = checksum::of(&out[header]);
        put(out, l3 + 10, sum);
    }

    fn continue_tcp(&self, out: &mut [u8], index: usize, is_first: bool, is_last: bool) {
        let place = self.l4 + SEQUENCE..self.l4 + SEQUENCE + 4;
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&out[place.clone()]);
        let sequence = u32::from_be_bytes(bytes).wrapping_add((index * self.size) as u32);
        out[place].copy_from_slice(&sequence.to_be_bytes());
        let flags = &mut out[self.l4 + FLAGS];
        if !is_first {
            *flags &= !CWR;
        }
        if !is_last {
            *flags &= !FIN_OR_PUSH;
        }
    }

    /// The checksum of the transport, from the frame's own, which is the sum of its pseudo header: all of
    /// that but the length is the same for the segment.
    fn set_checksum(&self, frame: &[u8], out: &mut [u8]) {
        let whole = (self.end - self.l4) as u32;
        let part = (out.len() - self.l4) as u32;
        let mut sum = Sum::default();
        sum.add_u16(at(frame, self.checksum));
        // Taken away by adding the complement.
        sum.add_u16(!(whole as u16));
        sum.add_u16(!((whole >> 16) as u16));
        sum.add_u32(part);
        put(out, self.checksum, 0);
        sum.add(&out[self.l4..]);
        put(out, self.checksum, checksum::for_udp(sum.checksum()));
    }
}

fn at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rheostat_packet::build::{Ethernet, FrameBuilder, Payload, TcpHeader, Transport as Built};
    use rheostat_packet::checksum::{Validity, evaluate};
    use rheostat_packet::tuple;

    /// A frame as a host hands it to an interface that offloads, and what is left to do with it.
    fn offloaded(
        is_v6: bool,
        transport: Transport,
        payload: &[u8],
        vlan: Option<u16>,
        size: u16,
    ) -> (Vec<u8>, Offload) {
        let (from, to) = match is_v6 {
            true => ("2001:db8::1".parse().unwrap(), "2001:db8:f::2".parse().unwrap()),
            false => ("192.0.2.1".parse().unwrap(), "198.51.100.7".parse().unwrap()),
        };
        let built = match transport {
            Transport::Tcp => {
                let flags = 0x80 | 0x18 | 0x01;
                Built::Tcp(TcpHeader { ports: (1_000, 80), flags, ..TcpHeader::default() })
            }
            Transport::Udp => Built::Udp { ports: (1_000, 80) },
        };
        let ethernet = Ethernet { source: [2; 6], destination: [4; 6], vlan };
        let mut frame = FrameBuilder::new(from, to, built, Payload::Bytes(payload))
            .with_ethernet(ethernet)
            .to_vec();
        let headers = Headers::parse_bytes(&frame, frame.len(), LinkType::Ethernet).unwrap();
        // Hosts leave padding to the interface.
        frame.truncate(headers.end as usize);
        let (l4, field, protocol) = match transport {
            Transport::Tcp => (headers.l4, 16, 6),
            Transport::Udp => (headers.l4, 6, 17),
        };
        let mut pseudo = Sum::default();
        let length = (headers.end as usize - usize::from(l4)) as u32;
        pseudo.add_pseudo_header(from, to, protocol, length);
        put(&mut frame, usize::from(l4) + field, pseudo.folded());
        let checksum = Some((l4, field as u16));
        (frame, Offload { checksum, segments: Some((transport, size)) })
    }

    fn cut(frame: &[u8], offload: &Offload) -> Vec<Vec<u8>> {
        let plan = Segmentation::plan(frame, offload).unwrap().expect("it is to be cut");
        let mut out = Vec::new();
        let write = |index| {
            plan.write(frame, index, &mut out);
            out.clone()
        };
        (0..plan.count()).map(write).collect()
    }

    fn parse(frame: &[u8]) -> Headers {
        let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).unwrap();
        let key = tuple::addresses(frame, &headers).unwrap();
        let covered = &frame[headers.l4.into()..];
        let field = at(covered, if headers.protocol == 6 { 16 } else { 6 });
        let validity = evaluate(key.first(), key.second(), headers.protocol, field, [covered]);
        assert_eq!(validity, Validity::Valid, "{headers:?}");
        assert_eq!(headers.end as usize, frame.len());
        headers
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn segments_are_whole_and_carry_everything_in_order(
            is_v6: bool,
            is_udp: bool,
            payload in proptest::collection::vec(any::<u8>(), 0..20_000),
            size in 200_u16..9_000,
            vlan in proptest::option::of(1_u16..4_000),
        ) {
            let transport = if is_udp { Transport::Udp } else { Transport::Tcp };
            let (frame, offload) = offloaded(is_v6, transport, &payload, vlan, size);
            let segments = cut(&frame, &offload);
            prop_assert_eq!(segments.len(), payload.len().div_ceil(size.into()).max(1));
            let original = Headers::parse_bytes(&frame, frame.len(), LinkType::Ethernet).unwrap();
            let mut carried = Vec::new();
            for (index, segment) in segments.iter().enumerate() {
                let headers = parse(segment);
                let l4 = usize::from(headers.l4);
                prop_assert_eq!((headers.l3, headers.l4, headers.zone),
                    (original.l3, original.l4, original.zone));
                let is_last = index + 1 == segments.len();
                if is_udp {
                    carried.extend_from_slice(&segment[l4 + 8..]);
                } else {
                    let sequence = |bytes: &[u8]| u32::from_be_bytes(
                        bytes[l4 + 4..l4 + 8].try_into().unwrap());
                    let sent = sequence(segment).wrapping_sub(sequence(&frame));
                    prop_assert_eq!(sent as usize, carried.len());
                    let mut flags = 0x10;
                    flags |= if index == 0 { 0x80 } else { 0 };
                    flags |= if is_last { 0x09 } else { 0 };
                    prop_assert_eq!(segment[l4 + 13], flags);
                    let header = usize::from(segment[l4 + 12] >> 4) * 4;
                    carried.extend_from_slice(&segment[l4 + header..]);
                }
                if !is_v6 {
                    let l3 = usize::from(headers.l3);
                    let id = at(segment, l3 + 4).wrapping_sub(at(&frame, l3 + 4));
                    prop_assert_eq!(usize::from(id), index);
                }
            }
            prop_assert_eq!(carried, payload);
        }

        #[test]
        fn whatever_the_header_says_nothing_panics(
            header: [u8; super::super::VNET_HEADER],
            is_v6: bool,
            is_udp: bool,
            changes in proptest::collection::vec((12_usize..90, any::<u8>()), 0..4),
        ) {
            let transport = if is_udp { Transport::Udp } else { Transport::Tcp };
            let (mut frame, right) = offloaded(is_v6, transport, &[7; 900], None, 100);
            for (at, value) in changes {
                let at = at % frame.len();
                frame[at] = value;
            }
            let asked = Offload::parse(&header).unwrap_or(right);
            for offload in [asked, right] {
                if let Ok(Some(plan)) = Segmentation::plan(&frame, &offload) {
                    let mut out = Vec::new();
                    (0..plan.count()).for_each(|index| plan.write(&frame, index, &mut out));
                    prop_assert!(!out.is_empty());
                }
                let _ = offload.complete(&mut frame.clone());
            }
        }

        #[test]
        fn partial_checksums_are_completed(
            is_v6: bool,
            is_udp: bool,
            payload in proptest::collection::vec(any::<u8>(), 0..2_000),
        ) {
            let transport = if is_udp { Transport::Udp } else { Transport::Tcp };
            let (mut frame, offload) = offloaded(is_v6, transport, &payload, None, 1);
            Offload { segments: None, ..offload }.complete(&mut frame).unwrap();
            parse(&frame);
        }
    }

    #[test]
    fn link_padding_is_not_cut_into_segments() {
        let (mut frame, offload) = offloaded(false, Transport::Udp, &[1; 150], None, 100);
        frame.extend([0xee; 7]);
        let segments = cut(&frame, &offload);
        let lens: Vec<usize> = segments.iter().map(Vec::len).collect();
        assert_eq!(lens, [42 + 100, 42 + 50]);
        for segment in segments {
            parse(&segment);
        }
    }
}
