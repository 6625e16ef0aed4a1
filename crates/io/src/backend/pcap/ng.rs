//! The pcapng format (draft-ietf-opsawg-pcapng): sections, each with interfaces of their own link
//! type and clock, and blocks of many types of which four carry packets or describe them.

use std::io::Read;

use pcap_parser::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, SimplePacketBlock, parse_block_be,
    parse_block_le, parse_sectionheaderblock,
};
use rheostat_base::Time;
use rheostat_capture::link_type;

use super::ReadError;
use super::framing::Framing;
use super::record::{MAX_PACKET, Record};

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// The byte-order magic of a section in the byte order of the section.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// Longest block we accept, as other readers do: nothing legitimate comes near.
const MAX_BLOCK: usize = 16 << 20;

/// Most interfaces of one section we remember.
const MAX_INTERFACES: usize = 65_536;

/// The section being read.
#[derive(Default)]
pub(super) struct Section {
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Time of the last packet: a simple packet has none of its own.
    last: Time,
}

/// What one interface's description states about its packets.
struct Interface {
    link: u16,
    snapshot: u32,
    /// As in the file: a power of ten, or with the top bit set of two.
    resolution: u8,
    /// Seconds to add.
    offset: i64,
}

/// The fields that packet blocks have in common.
struct Packet<'a> {
    interface: u32,
    ticks: Option<u64>,
    wire_len: u32,
    bytes: &'a [u8],
}

impl Section {
    /// Reads blocks up to the next packet.
    pub(super) fn next<'a, R: Read>(
        &mut self,
        framing: &'a mut Framing<R>,
    ) -> Result<Option<Record<'a>>, ReadError> {
        loop {
            let Some(kind) = self.next_block(framing)? else { return Ok(None) };
            match kind {
                INTERFACE_DESCRIPTION => self.describe_interface(framing)?,
                ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET => break,
                _ => {}
            }
        }
        self.packet(framing).map(Some)
    }

    /// Brings the next block into the buffer and returns its type; `None` at the end of the file.
    fn next_block<R: Read>(&mut self, framing: &mut Framing<R>) -> Result<Option<u32>, ReadError> {
        if !framing.begin(12)? {
            return Ok(None);
        }
        // The type of a section header reads the same in both byte orders.
        let section = word(framing.record(), 0, false) == SECTION_HEADER;
        if section {
            self.big_endian = match word(framing.record(), 8, false) {
                BYTE_ORDER => false,
                other if other.swap_bytes() == BYTE_ORDER => true,
                _ => return Err(framing.corrupt("a section has no byte-order magic")),
            };
            self.interfaces.clear();
        }
        let kind = word(framing.record(), 0, self.big_endian);
        let length = word(framing.record(), 4, self.big_endian) as usize;
        if length > MAX_BLOCK {
            return Err(framing.corrupt("a block claims more bytes than any block has"));
        }
        if length < 12 || !length.is_multiple_of(4) {
            return Err(framing.corrupt("a block's length is impossible"));
        }
        framing.extend(length)?;
        if word(framing.record(), length - 4, self.big_endian) as usize != length {
            return Err(framing.corrupt("the two lengths of a block differ"));
        }
        if section && parse_sectionheaderblock(framing.record()).is_err() {
            return Err(framing.corrupt("a section header cannot be read"));
        }
        Ok(Some(kind))
    }

    fn describe_interface<R: Read>(&mut self, framing: &Framing<R>) -> Result<(), ReadError> {
        let Some(Block::InterfaceDescription(block)) = self.parse(framing.record()) else {
            return Err(framing.corrupt("the description of an interface cannot be read"));
        };
        if self.interfaces.len() == MAX_INTERFACES {
            return Err(framing.corrupt("a section has more interfaces than we can remember"));
        }
        self.interfaces.push(Interface::new(&block, self.big_endian));
        Ok(())
    }

    fn packet<'a, R: Read>(&mut self, framing: &'a Framing<R>) -> Result<Record<'a>, ReadError> {
        let block = framing.record();
        let packet = match word(block, 0, self.big_endian) {
            OBSOLETE_PACKET => self.obsolete(block),
            _ => self.parse(block).and_then(|block| self.parsed(&block)),
        };
        let packet = packet.ok_or_else(|| framing.corrupt("a packet block cannot be read"))?;
        if packet.bytes.len() > MAX_PACKET {
            return Err(framing.corrupt("a packet claims to be longer than any link carries"));
        }
        let interface = self
            .interfaces
            .get(packet.interface as usize)
            .ok_or_else(|| framing.corrupt("a packet names an interface that was not described"))?;
        if let Some(ticks) = packet.ticks {
            self.last = interface.time(ticks);
        }
        let link = link_type::from_number(interface.link).ok_or(ReadError::UnsupportedLink {
            offset: framing.offset(),
            number: interface.link,
        })?;
        Ok(Record {
            time: self.last,
            link,
            wire_len: packet.wire_len.max(packet.bytes.len() as u32),
            bytes: packet.bytes,
        })
    }

    fn parse<'a>(&self, block: &'a [u8]) -> Option<Block<'a>> {
        let parse = if self.big_endian { parse_block_be } else { parse_block_le };
        parse(block).ok().map(|(_, block)| block)
    }

    fn parsed<'a>(&self, block: &Block<'a>) -> Option<Packet<'a>> {
        match *block {
            Block::EnhancedPacket(EnhancedPacketBlock {
                if_id,
                ts_high,
                ts_low,
                caplen,
                origlen,
                data,
                ..
            }) => Some(Packet {
                interface: if_id,
                ticks: Some(u64::from(ts_high) << 32 | u64::from(ts_low)),
                wire_len: origlen,
                bytes: data.get(..caplen as usize)?,
            }),
            // A simple packet belongs to the first interface and has as many bytes as its original length
            // and the interface's snapshot length allow.
            Block::SimplePacket(SimplePacketBlock { origlen, data, .. }) => {
                // Zero means no limit.
                let snapshot = self.interfaces.first().map_or(0, |interface| interface.snapshot);
                let snapshot = if snapshot == 0 { u32::MAX } else { snapshot };
                let bytes = data.get(..origlen.min(snapshot) as usize)?;
                Some(Packet { interface: 0, ticks: None, wire_len: origlen, bytes })
            }
            _ => None,
        }
    }

    /// The Packet Block that enhanced packets replaced; the library has no parser for it.
    fn obsolete<'a>(&self, block: &'a [u8]) -> Option<Packet<'a>> {
        let body = block.get(8..block.len() - 4)?;
        let (fixed, data) = body.split_at_checked(20)?;
        let interface = [fixed[0], fixed[1]];
        let captured = word(fixed, 12, self.big_endian) as usize;
        let high = word(fixed, 4, self.big_endian);
        let low = word(fixed, 8, self.big_endian);
        Some(Packet {
            interface: u32::from(if self.big_endian {
                u16::from_be_bytes(interface)
            } else {
                u16::from_le_bytes(interface)
            }),
            ticks: Some(u64::from(high) << 32 | u64::from(low)),
            wire_len: word(fixed, 16, self.big_endian),
            bytes: data.get(..captured)?,
        })
    }
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Interface {
        // The library reads this option in little-endian order whatever the section states.
        let offset = if big_endian { block.if_tsoffset.swap_bytes() } else { block.if_tsoffset };
        Interface {
            link: block.linktype.0 as u16,
            snapshot: block.snaplen,
            resolution: block.if_tsresol,
            offset,
        }
    }

    /// The time of `ticks` since the interface's epoch, saturating at both ends of what fits.
    fn time(&self, ticks: u64) -> Time {
        let exponent = u32::from(self.resolution & 0x7f);
        let ticks = u128::from(ticks);
        let nanos = if self.resolution & 0x80 != 0 {
            (ticks * 1_000_000_000) >> exponent
        } else if exponent <= 9 {
            ticks * 10_u128.pow(9 - exponent)
        } else {
            ticks.checked_div(10_u128.checked_pow(exponent - 9).unwrap_or(u128::MAX)).unwrap_or(0)
        };
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
        let shifted = nanos.saturating_add(i128::from(self.offset) * 1_000_000_000);
        Time::from_nanos(u64::try_from(shifted.max(0)).unwrap_or(u64::MAX))
    }
}

fn word(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(resolution: u8, offset: i64, ticks: u64) -> Time {
        Interface { link: 1, snapshot: 0, resolution, offset }.time(ticks)
    }

    #[test]
    fn ticks_become_nanoseconds_at_any_resolution() {
        assert_eq!(time(6, 0, 1_500_000), Time::from_millis(1_500));
        assert_eq!(time(9, 0, 7), Time::from_nanos(7));
        assert_eq!(time(0, 0, 3), Time::from_secs(3));
        assert_eq!(time(12, 0, 7_999), Time::from_nanos(7));
        assert_eq!(time(0x80 | 1, 0, 3), Time::from_millis(1_500));
        assert_eq!(time(0x80 | 32, 0, 1 << 31), Time::from_millis(500));
        assert_eq!(time(127, 0, u64::MAX), Time::ZERO);
        assert_eq!(time(0xff, 0, u64::MAX), Time::ZERO);
    }

    #[test]
    fn offsets_shift_and_saturate() {
        assert_eq!(time(6, 10, 1_000_000), Time::from_secs(11));
        assert_eq!(time(6, -1, 1_500_000), Time::from_millis(500));
        assert_eq!(time(6, -5, 1_000_000), Time::ZERO);
        assert_eq!(time(0, i64::MAX, u64::MAX), Time::NEVER);
        assert_eq!(time(0, i64::MIN, 0), Time::ZERO);
    }
}
