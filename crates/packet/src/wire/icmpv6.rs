//! ICMP for IPv6 (RFC 4443, RFC 4620, RFC 8335).

use super::field::{put_u16, u16_at};
use crate::checksum::Delta;
use crate::malformed::{Layer, Malformed};

/// Bytes of the header.
pub const HEADER: usize = 8;

/// Destination unreachable.
pub const UNREACHABLE: u8 = 1;
/// Packet too big.
pub const PACKET_TOO_BIG: u8 = 2;
/// Time exceeded.
pub const TIME_EXCEEDED: u8 = 3;
/// Parameter problem.
pub const PARAMETER_PROBLEM: u8 = 4;
/// Echo request.
pub const ECHO_REQUEST: u8 = 128;
/// Echo reply.
pub const ECHO_REPLY: u8 = 129;
/// Node information query.
pub const NODE_INFORMATION_QUERY: u8 = 139;
/// Node information reply.
pub const NODE_INFORMATION_REPLY: u8 = 140;
/// Extended echo request.
pub const EXTENDED_ECHO_REQUEST: u8 = 160;
/// Extended echo reply.
pub const EXTENDED_ECHO_REPLY: u8 = 161;

const CHECKSUM: usize = 2;

/// Whether a message of this type requests a reply.
pub const fn is_request(kind: u8) -> bool {
    matches!(kind, ECHO_REQUEST | NODE_INFORMATION_QUERY | EXTENDED_ECHO_REQUEST)
}

/// Whether a message of this type answers a request.
pub const fn is_reply(kind: u8) -> bool {
    matches!(kind, ECHO_REPLY | NODE_INFORMATION_REPLY | EXTENDED_ECHO_REPLY)
}

/// Whether a message of this type reports on a packet, which it quotes (RFC 4443, section 2.1: types
/// below 128).
pub const fn is_error(kind: u8) -> bool {
    kind < 128
}

/// Whether a message of this type belongs to the link and goes no further: multicast listener and
/// neighbour discovery (RFC 2710, RFC 3810, RFC 4861).
pub const fn is_link_local(kind: u8) -> bool {
    matches!(kind, 130..=137 | 143)
}

/// Where a message of this type has its identifier: node information has the start of the nonce, which
/// query and reply share (RFC 4620, section 4).
const fn id_place(kind: u8) -> Option<usize> {
    match kind {
        ECHO_REQUEST | ECHO_REPLY | EXTENDED_ECHO_REQUEST | EXTENDED_ECHO_REPLY => Some(4),
        NODE_INFORMATION_QUERY | NODE_INFORMATION_REPLY => Some(8),
        _ => None,
    }
}

/// The identifier that a request and its reply share, if the message is either.
#[inline]
pub fn query_id(message: &[u8]) -> Option<u16> {
    let at = id_place(*message.first()?)?;
    message.get(at..at + 2).map(|id| u16_at(id, 0))
}

/// The packet that an error message quotes, as far as it does.
#[inline]
pub fn embedded(message: &[u8]) -> Option<&[u8]> {
    Icmpv6Message::new(message).ok().filter(|message| is_error(message.kind())).map(|m| m.body())
}

/// An ICMPv6 message.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv6Message<'a> {
    header: &'a [u8; HEADER],
    body: &'a [u8],
}

impl<'a> Icmpv6Message<'a> {
    /// The message in `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header is not whole.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Icmpv6Message<'a>, Malformed> {
        let (header, body) =
            bytes.split_first_chunk().ok_or(Malformed::Truncated(Layer::Icmpv6))?;
        Ok(Icmpv6Message { header, body })
    }

    /// The type.
    #[inline]
    pub fn kind(&self) -> u8 {
        self.header[0]
    }

    /// The code.
    #[inline]
    pub fn code(&self) -> u8 {
        self.header[1]
    }

    /// The checksum as it stands.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.header, CHECKSUM)
    }

    /// What follows the header: data, or the packet in question.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

/// An ICMPv6 message, to write. Setters keep the checksum right, or as wrong as it was.
#[derive(Debug)]
pub struct Icmpv6MessageMut<'a> {
    bytes: &'a mut [u8],
}

impl<'a> Icmpv6MessageMut<'a> {
    /// The message in `bytes`.
    ///
    /// # Errors
    /// As [`Icmpv6Message::new`].
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Result<Icmpv6MessageMut<'a>, Malformed> {
        Icmpv6Message::new(bytes)?;
        Ok(Icmpv6MessageMut { bytes })
    }

    /// Sets the identifier of a request or reply. `false`, and nothing changed, for other messages, and
    /// for a node information message, whose nonce must come back as it was.
    #[inline]
    pub fn set_query_id(&mut self, id: u16) -> bool {
        let (Some(4), Some(old)) = (id_place(self.bytes[0]), query_id(self.bytes)) else {
            return false;
        };
        put_u16(self.bytes, 4, id);
        self.adjust(Delta::of_u16(old, id));
        true
    }

    /// Adjusts the checksum to a change of the addresses.
    #[inline]
    pub fn adjust(&mut self, delta: Delta) {
        let checksum = u16_at(self.bytes, CHECKSUM);
        put_u16(self.bytes, CHECKSUM, delta.apply(checksum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_an_identifier_and_errors_a_packet() {
        let echo = [128, 0, 0, 0, 0x12, 0x34, 0, 1];
        assert_eq!((query_id(&echo), embedded(&echo)), (Some(0x1234), None));
        assert_eq!(query_id(&echo[..5]), None);
        let node = [139, 1, 0xab, 0xcd, 0, 2, 0, 0, 0x77, 0x88, 0, 0, 0, 0, 0, 0];
        assert_eq!((query_id(&node), query_id(&node[..9])), (Some(0x7788), None));
        let error = [2, 0, 0xab, 0xcd, 0, 0, 5, 0, 0x60];
        assert_eq!((query_id(&error), embedded(&error)), (None, Some(&[0x60][..])));
        let message = Icmpv6Message::new(&error).unwrap();
        assert_eq!((message.kind(), message.code(), message.checksum()), (2, 0, 0xabcd));
        let solicitation = [135, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!((query_id(&solicitation), embedded(&solicitation)), (None, None));
        assert!(is_link_local(135) && !is_link_local(ECHO_REQUEST));
    }

    #[test]
    fn a_type_is_one_thing_at_most() {
        for kind in 0..=255 {
            let is = [is_request(kind), is_reply(kind), is_error(kind), is_link_local(kind)];
            assert!(is.into_iter().filter(|is| *is).count() <= 1, "type {kind}");
            let has_id = id_place(kind).is_some();
            assert_eq!(has_id, is_request(kind) || is_reply(kind), "type {kind}");
        }
    }

    #[test]
    fn only_an_identifier_is_replaced() {
        let mut echo = [128, 0, 0, 9, 0, 5, 0, 1];
        assert!(Icmpv6MessageMut::new(&mut echo).unwrap().set_query_id(4));
        // One less in the identifier is one more in the checksum.
        assert_eq!(echo, [128, 0, 0, 10, 0, 4, 0, 1]);
        let mut node = [139, 1, 0, 0, 0, 2, 0, 0, 0x77, 0x88];
        assert!(!Icmpv6MessageMut::new(&mut node).unwrap().set_query_id(4));
    }
}
