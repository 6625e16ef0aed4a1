//! The packets of captures, in the order of their times, each with the side that it comes from.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rheostat_base::Time;
use rheostat_cases::LONGEST_PACKET;
use rheostat_control::Config;
use rheostat_io::{CaptureReader, FormatError, ReadError, is_standard};
use rheostat_packet::{Headers, LinkType, tuple};
use rheostat_steer::{PrefixList, Side};
use thiserror::Error;

use super::inside::side_of;
use crate::interrupt::StandardInput;

/// A capture, and the device at which its packets arrive, if it is one of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaptureArg {
    device: Option<String>,
    file: PathBuf,
}

impl CaptureArg {
    /// Whether all its packets arrive at one device.
    pub(super) fn has_device(&self) -> bool {
        self.device.is_some()
    }
}

impl FromStr for CaptureArg {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<CaptureArg, Self::Err> {
        // A file of that name is meant, and not a device.
        let device = text.split_once('=').filter(|_| !Path::new(text).exists());
        Ok(match device {
            Some((device, file)) => {
                CaptureArg { device: Some(device.to_owned()), file: file.into() }
            }
            None => CaptureArg { device: None, file: text.into() },
        })
    }
}

/// Why there are no packets.
#[derive(Debug, Error)]
pub(crate) enum CaptureError {
    #[error("cannot read `{}`: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("`{}`: {source}", path.display())]
    Format { path: PathBuf, source: FormatError },
    #[error("`{device}` is no device with a side: the configuration has {known}")]
    Device { device: String, known: String },
}

/// A packet, as an Ethernet frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CapturedPacket {
    /// Counted from 1, over all captures.
    pub(super) number: u64,
    pub(super) side: Side,
    pub(super) frame: Vec<u8>,
    pub(super) time: Time,
}

/// The packets of captures.
pub(super) struct CapturedPackets {
    inputs: Vec<CaptureInput>,
    inside: PrefixList,
    number: u64,
    too_long: u64,
    /// Why captures were not read to their end.
    ends: Vec<String>,
}

struct CaptureInput {
    path: PathBuf,
    reader: CaptureReader<Box<dyn Read>>,
    /// The side of all its packets; none where their addresses decide.
    side: Option<Side>,
    next: Option<(Time, Vec<u8>)>,
    others: u64,
}

impl CapturedPackets {
    /// Opens captures of a network whose hosts `inside` lists.
    ///
    /// # Errors
    /// [`CaptureError`] when one is no capture, or belongs to no device of `config`.
    pub(super) fn open(
        captures: &[CaptureArg],
        config: &Config,
        inside: PrefixList,
    ) -> Result<CapturedPackets, CaptureError> {
        let open = |CaptureArg { device, file }: &CaptureArg| {
            let unknown = |device: &String| {
                let names = config.devices.iter().map(|device| device.name.as_str());
                let known = names.collect::<Vec<_>>().join(", ");
                CaptureError::Device { device: device.clone(), known }
            };
            let side = device
                .as_ref()
                .map(|device| side_of(config, device).ok_or_else(|| unknown(device)));
            let bytes: io::Result<Box<dyn Read>> = match is_standard(file) {
                true => StandardInput::open().map(|input| Box::new(input) as Box<dyn Read>),
                false => File::open(file).map(|file| Box::new(file) as Box<dyn Read>),
            };
            let side = side.transpose()?;
            let bytes =
                bytes.map_err(|source| CaptureError::Open { path: file.clone(), source })?;
            let reader = CaptureReader::new(bytes)
                .map_err(|source| CaptureError::Format { path: file.clone(), source })?;
            Ok(CaptureInput { path: file.clone(), reader, side, next: None, others: 0 })
        };
        let inputs = captures.iter().map(open).collect::<Result<_, _>>()?;
        let mut packets =
            CapturedPackets { inputs, inside, number: 0, too_long: 0, ends: Vec::new() };
        for place in 0..packets.inputs.len() {
            packets.advance(place);
        }
        Ok(packets)
    }

    /// The next packet; `None` behind the last.
    pub(super) fn next(&mut self) -> Option<CapturedPacket> {
        loop {
            let waiting = self
                .inputs
                .iter()
                .enumerate()
                .filter_map(|(place, input)| Some((input.next.as_ref()?.0, place)));
            let (_, place) = waiting.min()?;
            let (time, frame) = self.inputs[place].next.take()?;
            let side = self.inputs[place].side;
            self.advance(place);
            self.number += 1;
            if frame.len() > LONGEST_PACKET {
                self.too_long += 1;
                continue;
            }
            let side = side.unwrap_or_else(|| self.side(&frame));
            return Some(CapturedPacket { number: self.number, side, frame, time });
        }
    }

    /// What was left out, a sentence each.
    pub(super) fn skipped(&self) -> Vec<String> {
        let long = (self.too_long > 0).then(|| {
            format!(
                "{} packets are longer than {LONGEST_PACKET} bytes, put together by an interface, and were left out",
                self.too_long
            )
        });
        let others = self.inputs.iter().filter(|input| input.others > 0).map(|input| {
            let CaptureInput { path, others, .. } = input;
            format!(
                "{}: {others} packets have another kind of link, and were left out",
                path.display()
            )
        });
        long.into_iter().chain(others).chain(self.ends.iter().cloned()).collect()
    }

    fn advance(&mut self, place: usize) {
        let input = &mut self.inputs[place];
        loop {
            match input.reader.next_record() {
                Ok(Some(record)) => {
                    let wire_len = record.wire_len as usize;
                    input.next = Some((record.time, ethernet(record.link, record.bytes, wire_len)));
                    return;
                }
                Ok(None) => return,
                Err(ReadError::UnsupportedLink { .. }) => input.others += 1,
                Err(error) => {
                    self.ends.push(format!("{}: {error}", input.path.display()));
                    return;
                }
            }
        }
    }

    /// The side that a packet comes from: inside if its source is, and for packets without addresses.
    fn side(&self, frame: &[u8]) -> Side {
        let headers = Headers::parse_bytes(frame, frame.len(), LinkType::Ethernet).ok();
        let source = headers.and_then(|headers| tuple::addresses(frame, &headers));
        match source {
            Some(key) if !self.inside.contains(key.first()) => Side::Outside,
            _ => Side::Inside,
        }
    }
}

/// A packet as an Ethernet frame of the length that it had: bytes that were not captured are zero.
fn ethernet(link: LinkType, bytes: &[u8], wire_len: usize) -> Vec<u8> {
    let missing = wire_len.saturating_sub(bytes.len());
    // One that is too long is left out anyway.
    let missing = missing.min(LONGEST_PACKET + 1);
    let mut frame = Vec::with_capacity(bytes.len() + missing + 14);
    match link {
        LinkType::Ethernet => frame.extend_from_slice(bytes),
        link => {
            // A packet that is none stays without a header, and is malformed before both chains.
            if let Ok(headers) = Headers::parse_bytes(bytes, wire_len, link) {
                frame.extend_from_slice(&[0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2]);
                frame.extend_from_slice(&headers.ethertype.to_be_bytes());
                frame.extend_from_slice(&bytes[usize::from(headers.l3).min(bytes.len())..]);
            }
        }
    }
    frame.resize(frame.len() + missing, 0);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_of_another_link_gets_an_ethernet_header_and_its_length() {
        let (_, own) = rheostat_cases::frame("10.0.0.1:1000 > 198.51.100.1:53 udp len 30").unwrap();
        let ip = &own[14..];
        let frame = ethernet(LinkType::Raw, ip, ip.len());
        assert_eq!(frame[12..], own[12..]);
        // The first 40 bytes alone were captured.
        let frame = ethernet(LinkType::Raw, &ip[..40], ip.len());
        assert_eq!(frame.len(), own.len());
        assert_eq!(ethernet(LinkType::Ethernet, &own, own.len()), own);
        assert_eq!(ethernet(LinkType::Null, b"x", 1), b"");
        let long = ethernet(LinkType::Ethernet, &own, usize::MAX);
        assert!(long.len() > LONGEST_PACKET && long.len() < 2 * LONGEST_PACKET + 100);
    }

    #[test]
    fn a_name_in_front_of_a_file_is_a_device_unless_it_is_part_of_the_name() {
        let read = |text: &str| text.parse::<CaptureArg>().unwrap();
        let device = Some("lan".to_owned());
        assert_eq!(read("lan=x.pcap"), CaptureArg { device, file: "x.pcap".into() });
        assert_eq!(read("x.pcap"), CaptureArg { device: None, file: "x.pcap".into() });
    }
}
