//! ICMP for IPv4 (RFC 792, RFC 950).

use super::field::u16_at;
use crate::malformed::{Layer, Malformed};

/// Bytes of the header.
pub const HEADER: usize = 8;

/// Echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Destination unreachable.
pub const UNREACHABLE: u8 = 3;
/// Echo request.
pub const ECHO_REQUEST: u8 = 8;

/// The identifier of a query or reply: echo, timestamp, information or address mask.
#[inline]
pub fn query_id(message: &[u8]) -> Option<u16> {
    let header: &[u8; HEADER] = message.first_chunk()?;
    matches!(header[0], 0 | 8 | 13..=18).then(|| u16_at(header, 4))
}

/// Whether a message of this type asks for a reply.
pub const fn is_request(kind: u8) -> bool {
    matches!(kind, 8 | 13 | 15 | 17)
}

/// Whether a message of this type reports on a packet, which it quotes.
pub const fn is_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

/// The packet that an error message quotes, as far as it does.
#[inline]
pub fn embedded(message: &[u8]) -> Option<&[u8]> {
    Icmpv4Message::new(message).ok().filter(|message| is_error(message.kind())).map(|m| m.body())
}

/// An ICMP message.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv4Message<'a> {
    bytes: &'a [u8],
}

impl<'a> Icmpv4Message<'a> {
    /// The message in `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header is not whole.
    pub fn new(bytes: &'a [u8]) -> Result<Icmpv4Message<'a>, Malformed> {
        if bytes.len() < HEADER {
            return Err(Malformed::Truncated(Layer::Icmpv4));
        }
        Ok(Icmpv4Message { bytes })
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
