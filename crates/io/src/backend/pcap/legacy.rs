//! The pcap format (draft-ietf-opsawg-pcap): one header, then packets of one link type.

use std::io::Read;

use pcap_parser::{
    LegacyPcapBlock, PcapHeader, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};
use rheostat_base::Time;
use rheostat_capture::link_type;
use rheostat_packet::LinkType;

use super::framing::Framing;
use super::record::{MAX_PACKET, Record};
use super::{FormatError, ReadError};

/// Length of the header of the file.
const HEADER: usize = 24;

/// Whether a file that begins so is a pcap file: with time stamps in microseconds or nanoseconds, or
/// in the variant with longer records that some kernels' tools wrote, in either byte order.
pub(super) fn is_magic(magic: [u8; 4]) -> bool {
    matches!(
        u32::from_le_bytes(magic),
        0xa1b2_c3d4 | 0xd4c3_b2a1 | 0xa1b2_3c4d | 0x4d3c_b2a1 | 0xa1b2_cd34
    )
}

/// What the header states about all packets.
pub(super) struct Legacy {
    header: PcapHeader,
    link: LinkType,
}

impl Legacy {
    /// Reads the header of the file.
    pub(super) fn read<R: Read>(framing: &mut Framing<R>) -> Result<Legacy, FormatError> {
        match framing.begin(HEADER) {
            Ok(_) => {}
            Err(ReadError::Io { source, .. }) => return Err(FormatError::Io(source)),
            Err(_) => return Err(FormatError::ShortHeader { length: framing.record().len() }),
        }
        let Ok((_, header)) = parse_pcap_header(framing.record()) else {
            return Err(FormatError::Corrupt { offset: 0, what: "its header cannot be read" });
        };
        // The upper half of the word holds flags and the length of the frame check sequence.
        let number = (header.network.0 & 0xffff) as u16;
        let link = link_type::from_number(number).ok_or(FormatError::UnsupportedLink { number })?;
        Ok(Legacy { header, link })
    }

    /// Reads the next packet.
    pub(super) fn next<'a, R: Read>(
        &self,
        framing: &'a mut Framing<R>,
    ) -> Result<Option<Record<'a>>, ReadError> {
        let modified = self.header.is_modified_format();
        let header = if modified { 24 } else { 16 };
        if !framing.begin(header)? {
            return Ok(None);
        }
        let captured = self.word(framing.record(), 8);
        // The snapshot length of the header is no limit: programs that merge captures write larger
        // packets, and other readers accept them.
        if captured as usize > MAX_PACKET {
            return Err(framing.corrupt("a packet claims to be longer than any link carries"));
        }
        framing.extend(header + captured as usize)?;
        let parse = match (modified, self.header.is_bigendian()) {
            (true, _) => parse_pcap_frame_modified,
            (false, true) => parse_pcap_frame_be,
            (false, false) => parse_pcap_frame,
        };
        match parse(framing.record()) {
            Ok((_, frame)) => Ok(Some(self.record(&frame))),
            Err(_) => Err(framing.corrupt("a packet's record cannot be read")),
        }
    }

    fn word(&self, record: &[u8], at: usize) -> u32 {
        let bytes = [record[at], record[at + 1], record[at + 2], record[at + 3]];
        if self.header.is_bigendian() {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    }

    fn record<'a>(&self, frame: &LegacyPcapBlock<'a>) -> Record<'a> {
        let unit = if self.header.is_nanosecond_precision() { 1 } else { 1_000 };
        let nanos = u64::from(frame.ts_sec) * 1_000_000_000 + u64::from(frame.ts_usec) * unit;
        Record {
            time: Time::from_nanos(nanos),
            link: self.link,
            wire_len: frame.origlen.max(frame.caplen),
            bytes: frame.data,
        }
    }
}
