//! Writes copies as pcapng (draft-ietf-opsawg-pcapng): for every device and point of a packet's way an
//! interface of its own, and with every packet its direction, its lane, and why it was dropped.

use std::io::{self, Write};

use rheostat_packet::LinkType;

use crate::link_type;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const SHB_USERAPPL: u16 = 4;
const EPB_FLAGS: u16 = 2;
const EPB_QUEUE: u16 = 6;
const ISB_OSDROP: u16 = 7;

/// A packet to be written.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// The interface it is listed under, as in `lan before`.
    pub interface: &'a str,
    /// What its first bytes are.
    pub link: LinkType,
    /// Nanoseconds since 1970.
    pub nanos: u64,
    /// Whether it was on its way in.
    pub inbound: bool,
    /// The lane that saw it.
    pub lane: u16,
    /// Why it was dropped, if it was.
    pub reason: Option<&'a str>,
    /// What a service did with it, or sent it for.
    pub comment: Option<&'a str>,
    /// Bytes it had.
    pub wire_len: u32,
    /// Those that were copied.
    pub bytes: &'a [u8],
}

/// A pcapng file under way.
#[derive(Debug)]
pub struct Pcapng<W: Write> {
    output: W,
    interfaces: Vec<(String, LinkType)>,
    snaplen: u32,
}

impl<W: Write> Pcapng<W> {
    /// Begins a file whose packets have up to `snaplen` bytes; zero means whole.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(mut output: W, snaplen: u32) -> io::Result<Pcapng<W>> {
        let mut body = Vec::new();
        body.extend(0x1a2b_3c4d_u32.to_le_bytes());
        // Version 1.0.
        body.extend(1_u16.to_le_bytes());
        body.extend(0_u16.to_le_bytes());
        // The length of the section is not known.
        body.extend((-1_i64).to_le_bytes());
        option(&mut body, SHB_USERAPPL, concat!("rheo ", env!("CARGO_PKG_VERSION")).as_bytes());
        end_of_options(&mut body);
        block(&mut output, SECTION_HEADER, &body)?;
        Ok(Pcapng { output, interfaces: Vec::new(), snaplen })
    }

    /// Lists an interface, if it is not listed yet, and returns its number. A packet's interface is
    /// listed with the first packet; those listed before are there even when no packet comes.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn interface(&mut self, name: &str, link: LinkType) -> io::Result<u32> {
        let known = |(listed, its): &(String, LinkType)| listed == name && *its == link;
        if let Some(number) = self.interfaces.iter().position(known) {
            return Ok(number as u32);
        }
        let mut body = Vec::new();
        body.extend(link_type::to_number(link).to_le_bytes());
        body.extend(0_u16.to_le_bytes());
        body.extend(self.snaplen.to_le_bytes());
        option(&mut body, IF_NAME, name.as_bytes());
        option(&mut body, IF_TSRESOL, &[9]);
        end_of_options(&mut body);
        block(&mut self.output, INTERFACE, &body)?;
        self.interfaces.push((name.to_owned(), link));
        Ok(self.interfaces.len() as u32 - 1)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn packet(&mut self, packet: &Taken<'_>) -> io::Result<()> {
        let interface = self.interface(packet.interface, packet.link)?;
        let mut body = Vec::with_capacity(packet.bytes.len() + 80);
        let captured = packet.bytes.len() as u32;
        let (high, low) = ((packet.nanos >> 32) as u32, packet.nanos as u32);
        for word in [interface, high, low, captured, packet.wire_len.max(captured)] {
            body.extend(word.to_le_bytes());
        }
        body.extend(packet.bytes);
        pad(&mut body);
        // Bits 0 and 1: 1 is inbound, 2 is outbound.
        let direction: u32 = if packet.inbound { 1 } else { 2 };
        option(&mut body, EPB_FLAGS, &direction.to_le_bytes());
        option(&mut body, EPB_QUEUE, &u32::from(packet.lane).to_le_bytes());
        if let Some(reason) = packet.reason {
            let comment = format!("dropped: {reason}, lane {}", packet.lane);
            option(&mut body, COMMENT, comment.as_bytes());
        }
        if let Some(comment) = packet.comment {
            option(&mut body, COMMENT, comment.as_bytes());
        }
        end_of_options(&mut body);
        block(&mut self.output, ENHANCED_PACKET, &body)
    }

    /// Ends the file, with the number of packets that could not be copied, and returns its output.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn finish(mut self, lost: u64) -> io::Result<W> {
        if lost > 0 && !self.interfaces.is_empty() {
            let mut body = Vec::new();
            // The first interface stands for all; no time.
            body.extend([0; 12]);
            option(&mut body, COMMENT, format!("{lost} packets not captured").as_bytes());
            option(&mut body, ISB_OSDROP, &lost.to_le_bytes());
            end_of_options(&mut body);
            block(&mut self.output, STATISTICS, &body)?;
        }
        self.output.flush()?;
        Ok(self.output)
    }

    /// Flushes what was written, for readers that follow.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// A block: its type, its length before and behind, its body, which is padded.
fn block(output: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let length = (12 + body.len() as u32).to_le_bytes();
    output.write_all(&kind.to_le_bytes())?;
    output.write_all(&length)?;
    output.write_all(body)?;
    output.write_all(&length)
}

/// An option: its code, its length, its value, padded. Values are never longer than 65,535 bytes here.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    pad(body);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}
