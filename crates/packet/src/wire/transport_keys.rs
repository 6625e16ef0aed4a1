//! Protocols of which only what flow keys need is read: SCTP (RFC 9260) and DCCP have their ports where
//! TCP has them; GRE (RFC 2784), ESP (RFC 4303) and AH (RFC 4302) have none.

/// Bytes of an SCTP common header.
pub const SCTP_HEADER: usize = 12;
/// Bytes of a GRE header without options.
pub const GRE_MIN_HEADER: usize = 4;
/// Bytes of an ESP header: index and sequence number.
pub const ESP_HEADER: usize = 8;
/// Bytes of an authentication header without its check value.
pub const AH_FIXED: usize = 12;
