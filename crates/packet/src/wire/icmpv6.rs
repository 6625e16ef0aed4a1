//! ICMP for IPv6 (RFC 4443).

use super::field::u16_at;
use crate::malformed::{Layer, Malformed};

/// Bytes of the header.
pub const HEADER: usize = 8;

/// Destination unreachable.
pub const UNREACHABLE: u8 = 1;
/// Echo request.
pub const ECHO_REQUEST: u8 = 128;
/// Echo reply.
pub const ECHO_REPLY: u8 = 129;

/// The identifier of an echo request or reply.
#[inline]
pub fn query_id(message: &[u8]) -> Option<u16> {
    let header: &[u8; HEADER] = message.first_chunk()?;
    matches!(header[0], ECHO_REQUEST | ECHO_REPLY).then(|| u16_at(header, 4))
}

/// Whether a message of this type asks for a reply.
pub const fn is_request(kind: u8) -> bool {
    kind == ECHO_REQUEST
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

/// The packet that an error message quotes, as far as it does.
#[inline]
pub fn embedded(message: &[u8]) -> Option<&[u8]> {
    Icmpv6Message::new(message).ok().filter(|message| is_error(message.kind())).map(|m| m.body())
}

/// An ICMPv6 message.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv6Message<'a> {
    bytes: &'a [u8],
}

impl<'a> Icmpv6Message<'a> {
    /// The message in `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header is not whole.
    pub fn new(bytes: &'a [u8]) -> Result<Icmpv6Message<'a>, Malformed> {
        if bytes.len() < HEADER {
            return Err(Malformed::Truncated(Layer::Icmpv6));
        }
        Ok(Icmpv6Message { bytes })
    }

    /// The type.
    pub fn kind(&self) -> u8 {
        self.bytes[0]
    }

    /// The code.
    pub fn code(&self) -> u8 {
        self.bytes[1]
    }

    /// What follows the header: data, or the packet in question.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER..]
    }
}
