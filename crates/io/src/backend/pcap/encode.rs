//! Writes the records of both capture formats.

use std::io::{self, Write};

use rheostat_packet::{LinkType, Mbuf};

use rheostat_capture::link_type;

/// Snapshot length we declare: no packet of ours is longer.
const SNAPSHOT: u32 = 262_144;

/// Zeros to pad with.
const PADDING: [u8; 3] = [0; 3];

/// A capture format with what its writer must remember.
#[derive(Debug)]
pub(super) enum Encoder {
    /// Nanosecond pcap, whose header names the link type of all packets.
    Legacy(Option<LinkType>),
    /// pcapng with one interface for each link type that has come.
    Ng(Vec<LinkType>),
}

/// The link type of a packet is not the one its file is of.
#[derive(Debug)]
pub(super) struct OtherLink;

impl Encoder {
    /// Writes what a file begins with, as far as it is known before the first packet.
    pub(super) fn begin(&self, output: &mut impl Write) -> io::Result<()> {
        match self {
            Encoder::Legacy(_) => Ok(()),
            Encoder::Ng(_) => {
                words(output, &[0x0a0d_0d0a, 28, 0x1a2b_3c4d])?;
                output.write_all(&1_u16.to_le_bytes())?;
                output.write_all(&0_u16.to_le_bytes())?;
                // The length of the section is not known yet.
                output.write_all(&(-1_i64).to_le_bytes())?;
                words(output, &[28])
            }
        }
    }

    /// Makes the file valid if no packet came.
    pub(super) fn end(&mut self, output: &mut impl Write) -> io::Result<()> {
        match self {
            Encoder::Legacy(None) => self.interface(LinkType::Ethernet, output).map(drop),
            Encoder::Ng(links) if links.is_empty() => {
                self.interface(LinkType::Ethernet, output).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Writes one packet, or states that this file cannot hold it.
    pub(super) fn packet(
        &mut self,
        packet: &Mbuf,
        output: &mut impl Write,
    ) -> io::Result<Result<(), OtherLink>> {
        let Some(interface) = self.interface(packet.link(), output)? else {
            return Ok(Err(OtherLink));
        };
        let captured = packet.len() as u32;
        let original = packet.wire_len().max(captured);
        let nanos = packet.timestamp().as_nanos();
        match self {
            Encoder::Legacy(_) => {
                let seconds = u32::try_from(nanos / 1_000_000_000).unwrap_or(u32::MAX);
                words(output, &[seconds, (nanos % 1_000_000_000) as u32, captured, original])?;
                bytes(packet, output)?;
            }
            Encoder::Ng(_) => {
                let padding = (captured.next_multiple_of(4) - captured) as usize;
                let length = 32 + captured + padding as u32;
                let (high, low) = ((nanos >> 32) as u32, nanos as u32);
                words(output, &[6, length, interface, high, low, captured, original])?;
                bytes(packet, output)?;
                output.write_all(&PADDING[..padding])?;
                words(output, &[length])?;
            }
        }
        Ok(Ok(()))
    }

    /// The number of the interface for `link`, described now if it is new; `None` when the format
    /// cannot have another link type.
    fn interface(&mut self, link: LinkType, output: &mut impl Write) -> io::Result<Option<u32>> {
        let number = link_type::to_number(link);
        match self {
            Encoder::Legacy(Some(first)) => Ok((*first == link).then_some(0)),
            Encoder::Legacy(first) => {
                *first = Some(link);
                // Magic of nanosecond stamps, version 2.4, no time zone, no accuracy.
                words(output, &[0xa1b2_3c4d, 4 << 16 | 2, 0, 0, SNAPSHOT, number.into()])?;
                Ok(Some(0))
            }
            Encoder::Ng(links) => {
                if let Some(known) = links.iter().position(|known| *known == link) {
                    return Ok(Some(known as u32));
                }
                links.push(link);
                words(output, &[1, 32, number.into(), SNAPSHOT])?;
                // Option if_tsresol: one byte, 10^-9 seconds; then the end of the options.
                words(output, &[1 << 16 | 9, 9, 0, 32])?;
                Ok(Some(links.len() as u32 - 1))
            }
        }
    }
}

fn words(output: &mut impl Write, words: &[u32]) -> io::Result<()> {
    words.iter().try_for_each(|word| output.write_all(&word.to_le_bytes()))
}

fn bytes(packet: &Mbuf, output: &mut impl Write) -> io::Result<()> {
    packet.segments().try_for_each(|segment| output.write_all(segment))
}
