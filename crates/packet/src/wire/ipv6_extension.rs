//! IPv6 extension headers (RFC 8200, section 4).

use super::ah;
use super::field::{u16_at, u32_at};
use super::protocol::{
    AH, DESTINATION_OPTIONS, FRAGMENT, HIP, HOP_BY_HOP, MOBILITY, NO_NEXT_HEADER, ROUTING, SHIM6,
};
use crate::headers::Fragment;
use crate::malformed::{Layer, Malformed};

/// How many extension headers a packet may have. No host sends as many as this.
pub const MAX_EXTENSIONS: usize = 10;

/// Bytes of the fragment header.
pub const FRAGMENT_HEADER: usize = 8;

/// Whether the protocol is an extension header that can be skipped. An encrypted payload (ESP)
/// cannot.
#[inline]
pub const fn is_extension(protocol: u8) -> bool {
    matches!(
        protocol,
        HOP_BY_HOP | ROUTING | FRAGMENT | AH | DESTINATION_OPTIONS | MOBILITY | HIP | SHIM6
    )
}

/// One extension header.
#[derive(Clone, Copy, Debug)]
pub struct Extension<'a> {
    /// Which one; see [`super::protocol`].
    pub protocol: u8,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl<'a> Extension<'a> {
    /// The protocol of what follows.
    pub fn next_header(&self) -> u8 {
        self.bytes[0]
    }

    /// What a fragment header states, with the fragment's length still zero, or `None` for another
    /// header.
    pub fn fragment(&self) -> Option<Fragment> {
        if self.protocol != FRAGMENT {
            return None;
        }
        let word = u16_at(self.bytes, 2);
        Some(Fragment {
            id: u32_at(self.bytes, 4),
            offset: word & 0xfff8,
            len: 0,
            more: word & 1 != 0,
        })
    }

    /// Whether a routing header still has stops to go to, so that the packet's destination is not the
    /// one that its transport checksum covers (RFC 8200, section 8.1).
    pub fn has_segments_left(&self) -> bool {
        self.protocol == ROUTING && self.bytes[3] != 0
    }

    /// The payload length in hop-by-hop options with the jumbo payload option (RFC 2675).
    pub fn jumbo_len(&self) -> Option<u32> {
        const PAD1: u8 = 0;
        const JUMBO_PAYLOAD: u8 = 0xc2;
        if self.protocol != HOP_BY_HOP {
            return None;
        }
        let mut options = &self.bytes[2..];
        loop {
            match options {
                [PAD1, rest @ ..] => options = rest,
                [JUMBO_PAYLOAD, 4, a, b, c, d, ..] => {
                    return Some(u32::from_be_bytes([*a, *b, *c, *d]));
                }
                [_, len, rest @ ..] => options = rest.get(usize::from(*len)..)?,
                _ => return None,
            }
        }
    }
}

/// The extension headers of a packet in order. Ends behind the last one, and behind the fragment
/// header of a fragment that is not the first, because data of any kind follows it.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    protocol: u8,
    rest: &'a [u8],
    seen: usize,
    seen_fragment: bool,
    done: bool,
}

impl<'a> Extensions<'a> {
    /// The extension headers at the start of `bytes`, the first of which is of kind `protocol`.
    #[inline]
    pub fn new(protocol: u8, bytes: &'a [u8]) -> Extensions<'a> {
        Extensions { protocol, rest: bytes, seen: 0, seen_fragment: false, done: false }
    }

    /// The protocol behind the extension headers that were taken.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.protocol
    }

    /// The bytes behind the extension headers that were taken.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    fn take(&mut self) -> Result<Extension<'a>, Malformed> {
        let truncated = Malformed::Truncated(Layer::Extension);
        if self.seen == MAX_EXTENSIONS {
            return Err(Malformed::TooManyExtensions);
        }
        let misplaced = match self.protocol {
            HOP_BY_HOP => self.seen > 0,
            FRAGMENT => std::mem::replace(&mut self.seen_fragment, true),
            _ => false,
        };
        if misplaced {
            return Err(Malformed::ExtensionOrder);
        }
        let start: &[u8; 8] = self.rest.first_chunk().ok_or(truncated)?;
        let len = match self.protocol {
            FRAGMENT => FRAGMENT_HEADER,
            AH => ah::header_len(start[1]),
            _ => (usize::from(start[1]) + 1) * 8,
        };
        if self.protocol == AH && len < ah::FIXED {
            return Err(Malformed::HeaderLength(Layer::Ah));
        }
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(truncated)?;
        let extension = Extension { protocol: self.protocol, bytes };
        self.seen += 1;
        self.rest = rest;
        self.protocol = extension.next_header();
        self.done = extension.fragment().is_some_and(|fragment| fragment.offset > 0);
        Ok(extension)
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<Extension<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Result<Extension<'a>, Malformed>> {
        if self.done || self.protocol == NO_NEXT_HEADER || !is_extension(self.protocol) {
            return None;
        }
        let extension = self.take();
        self.done |= extension.is_err();
        Some(extension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOP_BY_HOP_THEN_FRAGMENT: [u8; 20] =
        [44, 0, 5, 2, 0, 0, 1, 0, 17, 0, 0x05, 0xa9, 0, 0, 0, 7, 1, 2, 3, 4];

    #[test]
    fn headers_come_in_order_and_a_later_fragment_ends_them() {
        let mut all = Extensions::new(HOP_BY_HOP, &HOP_BY_HOP_THEN_FRAGMENT);
        let first = all.next().unwrap().unwrap();
        assert_eq!((first.protocol, first.bytes.len(), first.fragment()), (HOP_BY_HOP, 8, None));
        let second = all.next().unwrap().unwrap();
        let fragment = Fragment { id: 7, offset: 0x5a8, len: 0, more: true };
        assert_eq!(second.fragment(), Some(fragment));
        assert!(all.next().is_none());
        assert_eq!((all.protocol(), all.rest()), (17, &[1, 2, 3, 4][..]));
    }

    #[test]
    fn a_chain_that_does_not_end_is_refused() {
        let bytes = [DESTINATION_OPTIONS, 0, 1, 4, 0, 0, 0, 0].repeat(MAX_EXTENSIONS + 1);
        let last = Extensions::new(DESTINATION_OPTIONS, &bytes).last();
        assert_eq!(last.unwrap().unwrap_err(), Malformed::TooManyExtensions);
        let last = Extensions::new(DESTINATION_OPTIONS, &bytes[..15]).last();
        assert_eq!(last.unwrap().unwrap_err(), Malformed::Truncated(Layer::Extension));
    }

    #[test]
    fn misplaced_headers_are_refused() {
        let twice = [FRAGMENT, 0, 0, 0, 0, 0, 0, 7].repeat(2);
        let last = Extensions::new(FRAGMENT, &twice).last();
        assert_eq!(last.unwrap().unwrap_err(), Malformed::ExtensionOrder);
        let late = [HOP_BY_HOP, 0, 1, 4, 0, 0, 0, 0].repeat(2);
        let last = Extensions::new(DESTINATION_OPTIONS, &late).last();
        assert_eq!(last.unwrap().unwrap_err(), Malformed::ExtensionOrder);
        let short_ah = [6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let last = Extensions::new(AH, &short_ah).last();
        assert_eq!(last.unwrap().unwrap_err(), Malformed::HeaderLength(Layer::Ah));
    }

    #[test]
    fn jumbo_payload_is_found_behind_padding() {
        let bytes = [6, 1, 0, 0, 5, 2, 0, 0, 0xc2, 4, 0, 1, 2, 3, 1, 0];
        let extension = Extensions::new(HOP_BY_HOP, &bytes).next().unwrap().unwrap();
        assert_eq!(extension.jumbo_len(), Some(0x10203));
        let overrun = [6, 0, 1, 9, 0xc2, 4, 0, 1];
        let extension = Extensions::new(HOP_BY_HOP, &overrun).next().unwrap().unwrap();
        assert_eq!(extension.jumbo_len(), None);
    }

    #[test]
    fn a_routing_header_with_segments_left_has_another_destination() {
        let bytes = [6, 0, 4, 1, 0, 0, 0, 0];
        let extension = Extensions::new(ROUTING, &bytes).next().unwrap().unwrap();
        assert!(extension.has_segments_left());
    }
}
