//! The frame of a request, prepared: what differs between requests is written over it, and its checksum is that of the
//! prepared frame and of what differs.

use std::net::Ipv4Addr;

use rheostat_packet::checksum::Sum;
use rheostat_serve::work::WorkRequest;
use rheostat_traffic::clients::frame::{ACK, Ends, HEADERS, PSH, Sent};

/// Bytes of a request, and of its reply.
pub(crate) const REQUEST: usize = 128;
/// Bytes of its frame.
pub(super) const FRAME: usize = HEADERS + REQUEST;

const TCP: usize = 14 + 20;
const PORT: usize = TCP;
const SEQUENCE: usize = TCP + 4;
const ACKNOWLEDGED: usize = TCP + 8;
const CHECKSUM: usize = TCP + 16;
const STAMP: usize = TCP + 24;
const ECHO: usize = TCP + 28;
/// Where a [`WorkRequest`] has its number, and behind it its draw.
const NUMBER: usize = HEADERS + 8;

/// What differs between requests of all connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Varying {
    pub(super) port: u16,
    pub(super) sequence: u32,
    pub(super) acknowledged: u32,
    pub(super) stamp: u32,
    pub(super) echo: u32,
    pub(super) number: u64,
    pub(super) draw: u64,
}

/// A request's frame in which all that differs is 0.
#[derive(Clone, Debug)]
pub(super) struct RequestFrame {
    bytes: [u8; FRAME],
    /// The sum over pseudo-header, header and data.
    sum: Sum,
}

impl RequestFrame {
    /// Requests to `server` from `client`.
    pub(super) fn new(macs: [[u8; 6]; 2], client: Ipv4Addr, server: (Ipv4Addr, u16)) -> Self {
        let ends = Ends { macs, client: (client, 0), server };
        let (flags, len) = (PSH | ACK, REQUEST as u16);
        let sent = Sent { flags, sequence: 0, acknowledged: 0, stamp: 0, echo: 0, len };
        let mut bytes = [0; FRAME];
        sent.write(&ends, &mut bytes, |data| {
            let length = REQUEST as u32;
            let request = WorkRequest { number: 0, length, draw: 0, time: 0, class: 0 };
            let mut at = 0;
            request.write(|piece| {
                data[at..at + piece.len()].copy_from_slice(piece);
                at += piece.len();
            });
        });
        bytes[CHECKSUM..CHECKSUM + 2].fill(0);
        let mut sum = Sum::default();
        sum.add_pseudo_header(client.into(), server.0.into(), 6, (FRAME - TCP) as u32);
        sum.add(&bytes[TCP..]);
        RequestFrame { bytes, sum }
    }

    /// Writes the frame of a request.
    #[inline]
    pub(super) fn write(&self, varying: &Varying, frame: &mut [u8]) {
        let Varying { port, sequence, acknowledged, stamp, echo, number, draw } = *varying;
        frame.copy_from_slice(&self.bytes);
        let mut sum = self.sum;
        sum.add_u16(port);
        for word in [sequence, acknowledged, stamp, echo] {
            sum.add_u32(word);
        }
        for word in [number, draw] {
            sum.add_u32((word >> 32) as u32);
            sum.add_u32(word as u32);
        }
        frame[PORT..PORT + 2].copy_from_slice(&port.to_be_bytes());
        frame[SEQUENCE..SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
        frame[ACKNOWLEDGED..ACKNOWLEDGED + 4].copy_from_slice(&acknowledged.to_be_bytes());
        frame[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.checksum().to_be_bytes());
        frame[STAMP..STAMP + 4].copy_from_slice(&stamp.to_be_bytes());
        frame[ECHO..ECHO + 4].copy_from_slice(&echo.to_be_bytes());
        frame[NUMBER..NUMBER + 8].copy_from_slice(&number.to_be_bytes());
        frame[NUMBER + 8..NUMBER + 16].copy_from_slice(&draw.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1]];
    const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
    const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 1), 80);

    proptest! {
        #[test]
        fn a_prepared_frame_is_the_one_that_is_written_in_whole(
            port: u16, sequence: u32, acknowledged: u32, stamp: u32, echo: u32, number: u64, draw: u64,
        ) {
            let prepared = RequestFrame::new(MACS, CLIENT, SERVER);
            let varying = Varying { port, sequence, acknowledged, stamp, echo, number, draw };
            let (mut frame, mut whole) = ([0xaa; FRAME], [0x55; FRAME]);
            prepared.write(&varying, &mut frame);
            let ends = Ends { macs: MACS, client: (CLIENT, port), server: SERVER };
            let len = REQUEST as u16;
            let sent = Sent { flags: PSH | ACK, sequence, acknowledged, stamp, echo, len };
            let request = WorkRequest { number, length: len.into(), draw, time: 0, class: 0 };
            let mut data = Vec::new();
            request.write(|piece| data.extend_from_slice(piece));
            sent.write(&ends, &mut whole, |place| place.copy_from_slice(&data));
            prop_assert_eq!(frame, whole);
        }
    }
}
