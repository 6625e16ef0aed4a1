//! IP headers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{FrameBuilder, Transport};
use crate::checksum::Sum;
use crate::wire::field::{put_u16, put_u32};
use crate::wire::ipv6_extension::FRAGMENT_HEADER;
use crate::wire::{ipv4, ipv6, protocol};

impl FrameBuilder<'_> {
    /// Bytes of the IP header with options, or with the fragment header.
    #[inline]
    pub(super) fn ip_len(&self) -> usize {
        match (self.source.is_ipv4(), self.fragment.is_some()) {
            (true, _) => ipv4::MIN_HEADER + self.options.len(),
            (false, false) => ipv6::HEADER,
            (false, true) => ipv6::HEADER + FRAGMENT_HEADER,
        }
    }

    /// Writes the IP header, which fills `out` and is followed by `payload` bytes.
    #[inline]
    pub(super) fn write_ip(&self, out: &mut [u8], payload: usize) {
        match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.write_v4(out, source, destination, payload);
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.write_v6(out, source, destination, payload);
            }
            _ => panic!("the addresses of a packet are of one family"),
        }
    }

    #[inline]
    fn write_v4(&self, out: &mut [u8], source: Ipv4Addr, destination: Ipv4Addr, payload: usize) {
        let len = out.len();
        assert!(
            len.is_multiple_of(4) && len <= 60,
            "options are padded to words, 40 bytes at most"
        );
        let mut header = [0; ipv4::MIN_HEADER];
        header[0] = 0x40 | (len / 4) as u8;
        header[1] = self.tos;
        put_u16(&mut header, 2, self.length_field(len + payload));
        put_u16(&mut header, 4, self.id as u16);
        let flags_and_offset = match self.fragment {
            None if self.dont_fragment => ipv4::DONT_FRAGMENT,
            None => 0,
            Some((offset, more)) => (offset / 8) | if more { ipv4::MORE_FRAGMENTS } else { 0 },
        };
        put_u16(&mut header, 6, flags_and_offset);
        header[8] = self.ttl;
        header[9] = self.transport.protocol(true);
        put_u32(&mut header, 12, source.to_bits());
        put_u32(&mut header, 16, destination.to_bits());
        let mut sum = Sum::default();
        sum.add(&header);
        if !self.options.is_empty() {
            sum.add(self.options);
            out[ipv4::MIN_HEADER..].copy_from_slice(self.options);
        }
        put_u16(&mut header, 10, sum.checksum());
        out[..ipv4::MIN_HEADER].copy_from_slice(&header);
    }

    #[inline]
    fn write_v6(&self, out: &mut [u8], source: Ipv6Addr, destination: Ipv6Addr, payload: usize) {
        let inner = self.transport.protocol(false);
        let extension = out.len() - ipv6::HEADER;
        let mut header = [0; ipv6::HEADER];
        let label = self.flow_label & 0xf_ffff;
        put_u32(&mut header, 0, 6 << 28 | u32::from(self.tos) << 20 | label);
        put_u16(&mut header, 4, self.length_field(extension + payload));
        header[6] = inner;
        header[7] = self.ttl;
        header[8..24].copy_from_slice(&source.octets());
        header[24..40].copy_from_slice(&destination.octets());
        if let Some((offset, more)) = self.fragment {
            header[6] = protocol::FRAGMENT;
            let mut fragment = [inner, 0, 0, 0, 0, 0, 0, 0];
            put_u16(&mut fragment, 2, offset & !7 | u16::from(more));
            put_u32(&mut fragment, 4, self.id);
            out[ipv6::HEADER..].copy_from_slice(&fragment);
        }
        out[..ipv6::HEADER].copy_from_slice(&header);
    }

    #[inline]
    fn length_field(&self, len: usize) -> u16 {
        match u16::try_from(len) {
            Ok(len) => len,
            Err(_) if matches!(self.transport, Transport::Tcp(_)) => 0,
            Err(_) => panic!("an IP packet has at most 65535 bytes, not {len}"),
        }
    }
}
