//! Backends by QUIC connection ID, as in the plaintext form of draft-ietf-quic-load-balancers: some
//! bytes of the IDs that a server chooses are the server's own ID.
//!
//! Only packets with a short header are looked at (RFC 9000, section 17.3.1). They carry an ID that the
//! server chose, and a client that changes its address sends nothing else (section 9). In a long header
//! the ID may still be one that the client made up; such packets go by their flow.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The longest connection ID (RFC 9000, section 17.2).
pub const LONGEST_CID: usize = 20;

/// Where the server ID lies in the connection IDs of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicRouting {
    /// Bytes of the connection ID before the server ID.
    pub cid_offset: usize,
    /// Bytes of the server ID.
    pub cid_length: usize,
}

/// What connection IDs call a backend: up to twenty bytes, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServerId {
    bytes: [u8; LONGEST_CID],
    len: u8,
}

/// Why a text is no server ID.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not between 1 and 20 bytes in hexadecimal, two digits each")]
pub struct ServerIdError(String);

impl QuicRouting {
    /// The server ID in a UDP payload; `None` when it is no packet with a short header or too short.
    #[inline]
    pub fn server_id(&self, payload: &[u8]) -> Option<ServerId> {
        // Header form (1: long), fixed bit.
        if payload.first()? & 0b1100_0000 != 0b0100_0000 {
            return None;
        }
        let start = 1 + self.cid_offset;
        ServerId::new(payload.get(start..start + self.cid_length)?)
    }
}

impl ServerId {
    /// The ID of these bytes; `None` when there are none, or more than twenty.
    #[inline]
    pub fn new(id: &[u8]) -> Option<ServerId> {
        let mut bytes = [0; LONGEST_CID];
        bytes.get_mut(..id.len())?.copy_from_slice(id);
        (!id.is_empty()).then_some(ServerId { bytes, len: id.len() as u8 })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl FromStr for ServerId {
    type Err = ServerIdError;

    fn from_str(text: &str) -> Result<ServerId, ServerIdError> {
        let wrong = || ServerIdError(text.to_owned());
        let digits: Option<Vec<u8>> =
            text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or_else(wrong)?;
        let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        ServerId::new(&bytes).ok_or_else(wrong)
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_headers_name_the_server_and_long_ones_do_not() {
        let routing = QuicRouting { cid_offset: 1, cid_length: 2 };
        let id = |payload: &[u8]| routing.server_id(payload).map(|id| id.to_string());
        assert_eq!(id(&[0x40, 0x07, 0x0a, 0x01, 9, 9]), Some("0a01".into()));
        assert_eq!(id(&[0x7f, 0x07, 0x0a, 0x01]), Some("0a01".into()));
        assert_eq!(id(&[0xc3, 0, 0, 0, 1, 0x07, 0x0a, 0x01]), None);
        // Without the fixed bit it is not QUIC version 1 or 2.
        assert_eq!(id(&[0x00, 0x07, 0x0a, 0x01]), None);
        assert_eq!(id(&[0x40, 0x07, 0x0a]), None);
        assert_eq!(id(&[]), None);
    }

    #[test]
    fn server_ids_are_read_and_written() {
        let id: ServerId = "0A01ff".parse().unwrap();
        assert_eq!((id.bytes(), id.to_string().as_str()), (&[10, 1, 255][..], "0a01ff"));
        for wrong in ["", "0", "0g", "zz", "ff ", &"00".repeat(21)] {
            assert!(wrong.parse::<ServerId>().is_err(), "{wrong}");
        }
        assert_eq!("00".repeat(20).parse::<ServerId>().unwrap().bytes(), [0; 20]);
        assert_ne!("00".parse::<ServerId>(), "0000".parse::<ServerId>());
    }
}
