//! ICMP for IPv4 (RFC 792, RFC 950, RFC 8335).

use super::field::{put_u16, u16_at};
use crate::checksum::Delta;
use crate::malformed::{Layer, Malformed};

/// Bytes of the header.
pub const HEADER: usize = 8;

/// Echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Destination unreachable.
pub const UNREACHABLE: u8 = 3;
/// Source quench.
pub const SOURCE_QUENCH: u8 = 4;
/// Redirect.
pub const REDIRECT: u8 = 5;
/// Echo request.
pub const ECHO_REQUEST: u8 = 8;
/// Time exceeded.
pub const TIME_EXCEEDED: u8 = 11;
/// Parameter problem.
pub const PARAMETER_PROBLEM: u8 = 12;
/// Timestamp request.
pub const TIMESTAMP_REQUEST: u8 = 13;
/// Timestamp reply.
pub const TIMESTAMP_REPLY: u8 = 14;
/// Information request.
pub const INFORMATION_REQUEST: u8 = 15;
/// Information reply.
pub const INFORMATION_REPLY: u8 = 16;
/// Address mask request.
pub const MASK_REQUEST: u8 = 17;
/// Address mask reply.
pub const MASK_REPLY: u8 = 18;
/// Extended echo request.
pub const EXTENDED_ECHO_REQUEST: u8 = 42;
/// Extended echo reply.
pub const EXTENDED_ECHO_REPLY: u8 = 43;

const CHECKSUM: usize = 2;
const ID: usize = 4;

/// Whether a message of this type requests a reply.
pub const fn is_request(kind: u8) -> bool {
    matches!(
        kind,
        ECHO_REQUEST
            | TIMESTAMP_REQUEST
            | INFORMATION_REQUEST
            | MASK_REQUEST
            | EXTENDED_ECHO_REQUEST
    )
}

/// Whether a message of this type answers a request.
pub const fn is_reply(kind: u8) -> bool {
    matches!(
        kind,
        ECHO_REPLY | TIMESTAMP_REPLY | INFORMATION_REPLY | MASK_REPLY | EXTENDED_ECHO_REPLY
    )
}

/// Whether a message of this type reports on a packet, which it quotes.
pub const fn is_error(kind: u8) -> bool {
    matches!(kind, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
}

/// The identifier that a request and its reply share, if the message is either.
#[inline]
pub fn query_id(message: &[u8]) -> Option<u16> {
    let header: &[u8; HEADER] = message.first_chunk()?;
    (is_request(header[0]) || is_reply(header[0])).then(|| u16_at(header, ID))
}

/// The packet that an error message quotes, as far as it does.
#[inline]
pub fn embedded(message: &[u8]) -> Option<&[u8]> {
    Icmpv4Message::new(message).ok().filter(|message| is_error(message.kind())).map(|m| m.body())
}

/// An ICMP message.
#[derive(Clone, Copy, Debug)]
pub struct Icmpv4Message<'a> {
    header: &'a [u8; HEADER],
    body: &'a [u8],
}

impl<'a> Icmpv4Message<'a> {
    /// The message in `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] when the header is not whole.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Result<Icmpv4Message<'a>, Malformed> {
        let (header, body) =
            bytes.split_first_chunk().ok_or(Malformed::Truncated(Layer::Icmpv4))?;
        Ok(Icmpv4Message { header, body })
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

/// An ICMP header, to write. Setters keep the checksum right, or as wrong as it was.
#[derive(Debug)]
pub struct Icmpv4MessageMut<'a> {
    header: &'a mut [u8; HEADER],
}

impl<'a> Icmpv4MessageMut<'a> {
    /// The message at the start of `bytes`.
    ///
    /// # Errors
    /// As [`Icmpv4Message::new`].
    #[inline]
    pub fn new(bytes: &'a mut [u8]) -> Result<Icmpv4MessageMut<'a>, Malformed> {
        let header = bytes.first_chunk_mut().ok_or(Malformed::Truncated(Layer::Icmpv4))?;
        Ok(Icmpv4MessageMut { header })
    }

    /// Sets the identifier of a request or reply. `false`, and nothing changed, for other messages.
    #[inline]
    pub fn set_query_id(&mut self, id: u16) -> bool {
        let Some(old) = query_id(self.header) else { return false };
        put_u16(self.header, ID, id);
        let checksum = u16_at(self.header, CHECKSUM);
        put_u16(self.header, CHECKSUM, Delta::of_u16(old, id).apply(checksum));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum;

    const REQUEST: [u8; 10] = [8, 0, 0x8d, 0xcb, 0x12, 0x34, 0, 1, 0x57, 0xff];

    #[test]
    fn queries_have_an_identifier_and_errors_a_packet() {
        assert_eq!(checksum::of(&REQUEST), 0);
        assert_eq!((query_id(&REQUEST), embedded(&REQUEST)), (Some(0x1234), None));
        let message = Icmpv4Message::new(&REQUEST).unwrap();
        assert_eq!((message.kind(), message.code(), message.checksum()), (8, 0, 0x8dcb));
        assert_eq!(message.body(), [0x57, 0xff]);
        let error = [3, 1, 0, 0, 0, 0, 0, 0, 0x45];
        assert_eq!((query_id(&error), embedded(&error)), (None, Some(&[0x45][..])));
        assert_eq!((query_id(&REQUEST[..7]), embedded(&error[..7])), (None, None));
    }

    #[test]
    fn a_type_is_one_thing_at_most() {
        for kind in 0..=255 {
            let is = [is_request(kind), is_reply(kind), is_error(kind)];
            assert!(is.into_iter().filter(|is| *is).count() <= 1, "type {kind}");
        }
    }

    #[test]
    fn a_new_identifier_keeps_the_checksum() {
        let mut bytes = REQUEST;
        assert!(Icmpv4MessageMut::new(&mut bytes).unwrap().set_query_id(0xfffe));
        assert_eq!((query_id(&bytes), checksum::of(&bytes)), (Some(0xfffe), 0));
        let mut error = [3, 1, 0, 0, 0, 0, 0, 0];
        assert!(!Icmpv4MessageMut::new(&mut error).unwrap().set_query_id(1));
        assert_eq!(error, [3, 1, 0, 0, 0, 0, 0, 0]);
    }
}
