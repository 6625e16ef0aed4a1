//! Segments as values: what arrives, and what is to be sent.

use rheostat_packet::build::TcpHeader;
use rheostat_packet::wire::{TcpFlags, TcpSegment};

use crate::options::Options;
use crate::sequence::{SequenceNumber, SequenceRange};

/// The header of a segment, without ports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The number of the first byte, or of SYN or FIN.
    pub seq: SequenceNumber,
    /// The next number expected from the other end, if the segment acknowledges.
    pub ack: Option<SequenceNumber>,
    /// Whether it synchronises sequence numbers.
    pub syn: bool,
    /// Whether it is the sender's last.
    pub fin: bool,
    /// Whether it resets the connection.
    pub rst: bool,
    /// Whether the receiver should be told of the data at once.
    pub psh: bool,
    /// Where urgent data ends, from the first byte on, if the segment says that there is some (RFC 6093): the byte behind it.
    pub urgent: Option<u16>,
    /// The window as it stands in the header, unscaled.
    pub window: u16,
    /// The options.
    pub options: Options,
}

impl Header {
    /// The reset that answers a segment for which there is no connection (RFC 9293, 3.10.7.1); none answers a reset.
    pub fn reset_for(segment: &Segment<'_>) -> Option<Header> {
        if segment.header.rst {
            return None;
        }
        let (seq, ack) = match segment.header.ack {
            Some(ack) => (ack, None),
            None => (SequenceNumber(0), Some(segment.range().end)),
        };
        Some(Header { seq, ack, rst: true, ..Header::default() })
    }

    /// The flags as they stand in a header.
    pub fn flags(&self) -> TcpFlags {
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(self.fin, TcpFlags::FIN)
            | flag(self.syn, TcpFlags::SYN)
            | flag(self.rst, TcpFlags::RST)
            | flag(self.psh, TcpFlags::PSH)
            | flag(self.urgent.is_some(), TcpFlags::URG)
            | flag(self.ack.is_some(), TcpFlags::ACK);
        TcpFlags(flags)
    }

    /// The header for the builder of frames, with options from [`Options::write`].
    pub fn with_ports<'a>(&self, ports: (u16, u16), options: &'a [u8]) -> TcpHeader<'a> {
        let flags = self.flags().0;
        let urgent = self.urgent.unwrap_or_default();
        let ack = self.ack.unwrap_or_default().0;
        TcpHeader { ports, seq: self.seq.0, ack, flags, window: self.window, urgent, options }
    }
}

/// A segment that has arrived. Its checksum has been verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// The header.
    pub header: Header,
    /// The data.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// The segment with this header and the payload behind it.
    pub fn parse(view: &TcpSegment<'_>, payload: &'a [u8]) -> Segment<'a> {
        let flags = view.flags().0;
        let has = |flag: u8| flags & flag != 0;
        let header = Header {
            seq: SequenceNumber(view.seq()),
            ack: has(TcpFlags::ACK).then(|| SequenceNumber(view.ack())),
            syn: has(TcpFlags::SYN),
            fin: has(TcpFlags::FIN),
            rst: has(TcpFlags::RST),
            psh: has(TcpFlags::PSH),
            urgent: has(TcpFlags::URG).then(|| view.urgent_pointer()),
            window: view.window(),
            options: Options::parse(view.options()),
        };
        Segment { header, payload }
    }

    /// The numbers that the segment takes: its data, SYN and FIN.
    pub fn range(&self) -> SequenceRange {
        let len =
            self.payload.len() as u32 + u32::from(self.header.syn) + u32::from(self.header.fin);
        SequenceRange::of_len(self.header.seq, len)
    }
}

/// A segment to be sent. The data lies in the connection's send buffer, in two pieces where it wraps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// The header.
    pub header: Header,
    /// The data.
    pub payload: [&'a [u8]; 2],
    /// Why it is sent.
    pub reason: SendReason,
}

/// Why a segment is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendReason {
    /// It opens the connection, or answers the SYN that does.
    Handshake,
    /// The peer has not answered the SYN, or has sent its own again.
    HandshakeAgain,
    /// It answers a SYN of which nothing is kept.
    SynCookie,
    /// Data that has not been sent before, and FIN if that follows it.
    Data,
    /// FIN alone.
    Fin,
    /// Something is due to be acknowledged, or the peer is told of urgent data.
    Acknowledgement,
    /// An acknowledgement that lets the peer prove what it has sent (RFC 5961).
    Challenge,
    /// Sent again.
    Retransmission(Repair),
    /// Sent into a window that is closed or small, to be told when it opens.
    Probe,
    /// Asks whether an idle peer is there.
    KeepAlive,
    /// Resets the connection.
    Reset,
}

/// What a retransmission repairs, as far as this end knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// What was in flight when the retransmission timer expired.
    Timeout,
    /// What the peer's blocks leave out.
    Sack,
    /// What duplicate acknowledgements ask for.
    Duplicates,
    /// The end of what is in flight, about which nothing is known (RFC 6675, NextSeg, rule 4).
    Rescue,
    /// What was too big for the path.
    TooBig,
}

impl SendReason {
    /// The reason in words.
    pub fn name(self) -> &'static str {
        match self {
            SendReason::Handshake => "handshake",
            SendReason::HandshakeAgain => "handshake, sent again",
            SendReason::SynCookie => "handshake with a SYN cookie",
            SendReason::Data => "data",
            SendReason::Fin => "end of data",
            SendReason::Acknowledgement => "acknowledgement",
            SendReason::Challenge => "challenge acknowledgement",
            SendReason::Retransmission(Repair::Timeout) => "retransmission by timeout",
            SendReason::Retransmission(Repair::Sack) => "retransmission by SACK",
            SendReason::Retransmission(Repair::Duplicates) => "retransmission by duplicate ACKs",
            SendReason::Retransmission(Repair::Rescue) => "retransmission as a rescue",
            SendReason::Retransmission(Repair::TooBig) => "retransmission in smaller segments",
            SendReason::Probe => "window probe",
            SendReason::KeepAlive => "keep-alive probe",
            SendReason::Reset => "reset",
        }
    }
}

impl<'a> Transmit<'a> {
    pub(crate) fn without_data(header: Header, reason: SendReason) -> Transmit<'a> {
        Transmit { header, payload: [&[], &[]], reason }
    }

    /// The data as one slice: in place, or copied to `scratch` where it wraps.
    pub fn contiguous(&self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        let [first, second] = self.payload;
        if second.is_empty() {
            return first;
        }
        scratch.clear();
        scratch.extend_from_slice(first);
        scratch.extend_from_slice(second);
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(header: Header, payload: &[u8]) -> Segment<'_> {
        Segment { header, payload }
    }

    #[test]
    fn a_segment_with_ack_is_reset_at_its_acknowledgement() {
        let header = Header { ack: Some(SequenceNumber(7)), ..Header::default() };
        let reset = Header::reset_for(&segment(header, b"abc")).unwrap();
        assert_eq!((reset.seq, reset.ack, reset.rst), (SequenceNumber(7), None, true));
    }

    #[test]
    fn a_segment_without_ack_is_reset_with_an_acknowledgement_of_all_of_it() {
        let header = Header { seq: SequenceNumber(5), syn: true, ..Header::default() };
        let reset = Header::reset_for(&segment(header, b"abc")).unwrap();
        assert_eq!((reset.seq, reset.ack), (SequenceNumber(0), Some(SequenceNumber(9))));
    }

    #[test]
    fn a_reset_is_never_answered() {
        let header = Header { rst: true, ..Header::default() };
        assert_eq!(Header::reset_for(&segment(header, b"")), None);
    }
}
