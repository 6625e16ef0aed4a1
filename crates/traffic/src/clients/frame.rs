//! Segments of clients as frames, and the service's frames as segments.

use std::net::Ipv4Addr;

use rheostat_packet::checksum::Sum;
use rheostat_packet::wire::{Ipv4Packet, TcpSegment, ethernet};

/// The flag FIN.
pub const FIN: u8 = 0x01;
/// The flag SYN.
pub const SYN: u8 = 0x02;
/// The flag RST.
pub const RST: u8 = 0x04;
/// The flag PSH.
pub const PSH: u8 = 0x08;
/// The flag ACK.
pub const ACK: u8 = 0x10;

const IP: usize = 14;
const TCP: usize = IP + 20;
const OPTIONS: usize = TCP + 20;
/// Bytes before the data of a segment that carries a time stamp.
pub const HEADERS: usize = OPTIONS + 12;
/// Bytes of a frame with a SYN: its options besides the stamp are segment size, SACK and window scale.
pub(super) const SYN_FRAME: usize = HEADERS + 12;
/// By how much windows of clients are scaled.
const SCALE: u8 = 7;
/// The largest segment that clients take; 1,448 bytes beside a time stamp.
pub(super) const MSS: u16 = 1_460;

/// The ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The link addresses of the client and of the server.
    pub macs: [[u8; 6]; 2],
    /// The client's address and port.
    pub client: (Ipv4Addr, u16),
    /// The server's.
    pub server: (Ipv4Addr, u16),
}

/// A segment of a client.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Its flags.
    pub flags: u8,
    /// The sequence number.
    pub sequence: u32,
    /// The next byte that is expected of the service.
    pub acknowledged: u32,
    /// The client's time stamp.
    pub stamp: u32,
    /// The service's time stamp that it repeats.
    pub echo: u32,
    /// Bytes of data.
    pub len: u16,
}

impl Sent {
    /// Bytes of its frame.
    pub fn frame_len(&self) -> usize {
        match self.flags & SYN {
            0 => HEADERS + usize::from(self.len),
            _ => SYN_FRAME,
        }
    }

    /// Writes the frame; `data` writes the data.
    pub fn write(&self, ends: &Ends, frame: &mut [u8], data: impl FnOnce(&mut [u8])) {
        let is_syn = self.flags & SYN != 0;
        let headers = if is_syn { SYN_FRAME } else { HEADERS };
        let end = headers + usize::from(self.len);
        frame[..6].copy_from_slice(&ends.macs[1]);
        frame[6..12].copy_from_slice(&ends.macs[0]);
        frame[12..14].copy_from_slice(&ethernet::IPV4.to_be_bytes());
        let total = (end - IP) as u16;
        frame[IP..IP + 4].copy_from_slice(&[0x45, 0, (total >> 8) as u8, total as u8]);
        // Not to be fragmented; no identification is needed then (RFC 6864).
        frame[IP + 4..IP + 12].copy_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
        frame[IP + 12..IP + 16].copy_from_slice(&ends.client.0.octets());
        frame[IP + 16..TCP].copy_from_slice(&ends.server.0.octets());
        let mut sum = Sum::default();
        sum.add(&frame[IP..TCP]);
        frame[IP + 10..IP + 12].copy_from_slice(&sum.checksum().to_be_bytes());
        frame[TCP..TCP + 2].copy_from_slice(&ends.client.1.to_be_bytes());
        frame[TCP + 2..TCP + 4].copy_from_slice(&ends.server.1.to_be_bytes());
        frame[TCP + 4..TCP + 8].copy_from_slice(&self.sequence.to_be_bytes());
        frame[TCP + 8..TCP + 12].copy_from_slice(&self.acknowledged.to_be_bytes());
        frame[TCP + 12] = (((headers - TCP) / 4) << 4) as u8;
        frame[TCP + 13] = self.flags;
        frame[TCP + 14..TCP + 16].copy_from_slice(&u16::MAX.to_be_bytes());
        frame[TCP + 16..TCP + 20].fill(0);
        frame[OPTIONS..OPTIONS + 4].copy_from_slice(&[1, 1, 8, 10]);
        frame[OPTIONS + 4..OPTIONS + 8].copy_from_slice(&self.stamp.to_be_bytes());
        frame[OPTIONS + 8..HEADERS].copy_from_slice(&self.echo.to_be_bytes());
        if is_syn {
            let [high, low] = MSS.to_be_bytes();
            let options = [2, 4, high, low, 1, 1, 4, 2, 1, 3, 3, SCALE];
            frame[HEADERS..SYN_FRAME].copy_from_slice(&options);
        }
        data(&mut frame[headers..end]);
        let mut sum = Sum::default();
        let (client, server) = (ends.client.0.into(), ends.server.0.into());
        sum.add_pseudo_header(client, server, 6, (end - TCP) as u32);
        sum.add(&frame[TCP..end]);
        frame[TCP + 16..TCP + 18].copy_from_slice(&sum.checksum().to_be_bytes());
    }
}

/// A segment of the service.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The client's address and port.
    pub client: (Ipv4Addr, u16),
    /// The server's.
    pub server: (Ipv4Addr, u16),
    /// Its flags.
    pub flags: u8,
    /// The sequence number.
    pub sequence: u32,
    /// The next byte that is expected of the client.
    pub acknowledged: u32,
    /// The window as it is written, unscaled.
    pub window: u16,
    /// The service's time stamp.
    pub stamp: u32,
    /// By how much its windows are scaled, in a SYN.
    pub scale: u8,
    /// Its data.
    pub data: &'a [u8],
}

impl Received<'_> {
    /// The segment in a frame, if it has one of IPv4.
    pub fn parse(frame: &[u8]) -> Option<Received<'_>> {
        let ip = frame.get(IP..).filter(|_| frame[12..14] == ethernet::IPV4.to_be_bytes())?;
        let header = Ipv4Packet::new(ip).ok().filter(|header| header.protocol() == 6)?;
        let segment = ip.get(header.header_len()..usize::from(header.total_len()))?;
        let tcp = TcpSegment::new(segment).ok()?;
        let options = segment.get(20..tcp.header_len())?;
        let (stamp, scale) = options_of(options);
        Some(Received {
            client: (header.destination(), tcp.destination_port()),
            server: (header.source(), tcp.source_port()),
            flags: segment[13],
            sequence: tcp.seq(),
            acknowledged: tcp.ack(),
            window: tcp.window(),
            stamp,
            scale,
            data: segment.get(tcp.header_len()..)?,
        })
    }
}

/// The time stamp and the scale among options; 0 where there is none.
fn options_of(mut options: &[u8]) -> (u32, u8) {
    // As most segments have them.
    if let [1, 1, 8, 10, a, b, c, d, _, _, _, _] = *options {
        return (u32::from_be_bytes([a, b, c, d]), 0);
    }
    let (mut stamp, mut scale) = (0, 0);
    loop {
        options = match *options {
            [] | [0, ..] => return (stamp, scale),
            [1, ..] => &options[1..],
            [_, len, ..] if len >= 2 && usize::from(len) <= options.len() => {
                match *options {
                    [8, 10, a, b, c, d, ..] => stamp = u32::from_be_bytes([a, b, c, d]),
                    [3, 3, shift, ..] => scale = shift.min(14),
                    _ => {}
                }
                &options[usize::from(len)..]
            }
            _ => return (stamp, scale),
        };
    }
}
