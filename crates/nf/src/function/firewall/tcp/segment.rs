//! What the tracker reads of a TCP segment.

/// FIN: the sender has no more data.
pub const FIN: u8 = 0x01;
/// SYN: the sequence number is the initial one.
pub const SYN: u8 = 0x02;
/// RST: the connection is to be dropped.
pub const RST: u8 = 0x04;
/// PSH: the receiver should hand the data on.
pub const PSH: u8 = 0x08;
/// ACK: the acknowledgement number counts.
pub const ACK: u8 = 0x10;
/// URG: the urgent pointer counts.
pub const URG: u8 = 0x20;

/// The fields of a segment that tracking needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte, or of the SYN.
    pub seq: u32,
    /// Acknowledgement number; counts with [`ACK`] only.
    pub ack: u32,
    /// The low eight flags of the header.
    pub flags: u8,
    /// The window field as it stands in the header, not scaled.
    pub window: u16,
    /// The shift of the window-scale option (RFC 7323 section 2.2); counts with [`SYN`] only.
    pub window_scale: Option<u8>,
    /// Bytes of data. A frame made by segmentation offload carries up to 64 KiB.
    pub payload_len: u32,
}

/// What a segment is for, by its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Syn,
    SynAck,
    /// Data, acknowledgement, FIN, or several of them.
    Transfer,
    Reset,
}

impl Segment {
    /// `None` for a combination of flags that no TCP sends and scanners do: no flag at all, SYN with
    /// FIN or RST, RST with FIN, data or FIN without ACK (which takes in the "Christmas tree"
    /// FIN, PSH, URG). RFC 9293 section 3.10.7.4 drops the segments without ACK ("if the ACK bit is
    /// off, drop"). PSH, URG and the two ECN bits go with anything.
    #[inline]
    pub(super) const fn kind(&self) -> Option<Kind> {
        const SYN_ACK: u8 = SYN | ACK;
        const FIN_ACK: u8 = FIN | ACK;
        const RST_ACK: u8 = RST | ACK;
        match self.flags & (FIN | SYN | RST | ACK) {
            ACK | FIN_ACK => Some(Kind::Transfer),
            SYN => Some(Kind::Syn),
            SYN_ACK => Some(Kind::SynAck),
            RST | RST_ACK => Some(Kind::Reset),
            _ => None,
        }
    }

    /// Whether the segment carries `flag`.
    #[inline]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The sequence number behind the segment: data, SYN and FIN count (RFC 9293 section 3.4).
    #[inline]
    pub const fn end(&self) -> u32 {
        self.seq
            .wrapping_add(self.payload_len)
            .wrapping_add(self.has(SYN) as u32)
            .wrapping_add(self.has(FIN) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(flags: u8) -> Segment {
        let seq = u32::MAX;
        Segment { seq, ack: 0, flags, window: 0, window_scale: None, payload_len: 10 }
    }

    #[test]
    fn six_combinations_of_the_64_are_valid_beside_push_and_urgent() {
        for flags in 0..=0x3f_u8 {
            let expected = match flags & !(PSH | URG) {
                0x02 => Some(Kind::Syn),
                0x12 => Some(Kind::SynAck),
                0x10 | 0x11 => Some(Kind::Transfer),
                0x04 | 0x14 => Some(Kind::Reset),
                _ => None,
            };
            assert_eq!(with(flags).kind(), expected, "flags {flags:#04x}");
            assert_eq!(with(flags | 0xc0).kind(), expected, "with both ECN bits");
        }
    }

    #[test]
    fn syn_and_fin_take_a_sequence_number_each_and_sequence_numbers_wrap() {
        assert_eq!(with(ACK).end(), 9);
        assert_eq!(with(SYN).end(), 10);
        assert_eq!(with(FIN | ACK).end(), 10);
    }
}
