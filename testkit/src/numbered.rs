//! Frames that say which flow they belong to, and which of its packets they are.

use rheostat_packet::Mbuf;

/// Bytes in front of the payload: Ethernet, IPv4, UDP.
pub const HEADERS: usize = 14 + 20 + 8;

/// The port that numbered packets go to.
const PORT: u16 = 9_999;

/// A UDP packet of `flow` with `payload` bytes, the first eight of which are `flow` and `sequence`.
pub fn numbered(flow: u32, sequence: u32, payload: usize) -> Vec<u8> {
    let mut bytes = vec![0; payload];
    bytes[..4].copy_from_slice(&flow.to_be_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_be_bytes());
    let source = ([10, 0, (flow >> 8) as u8, flow as u8], 1_000 + flow as u16);
    udp([2, 0, 0, 0, 0, 2], source, ([10, 9, 0, 1], PORT), &bytes)
}

/// A UDP packet over IPv4 to the hardware address `to`, without a UDP checksum (RFC 768 allows it).
pub fn udp(
    to: [u8; 6],
    source: ([u8; 4], u16),
    destination: ([u8; 4], u16),
    payload: &[u8],
) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADERS + payload.len());
    frame.extend(to);
    frame.extend([2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    let mut ip = [0_u8; 20];
    (ip[0], ip[8], ip[9]) = (0x45, 64, 17);
    ip[2..4].copy_from_slice(&(28 + payload.len() as u16).to_be_bytes());
    ip[12..16].copy_from_slice(&source.0);
    ip[16..20].copy_from_slice(&destination.0);
    let sum: u32 = ip.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    frame.extend(ip);
    frame.extend(source.1.to_be_bytes());
    frame.extend(destination.1.to_be_bytes());
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// Flow and sequence number of a numbered packet; `None` for what others send.
pub fn number(packet: &Mbuf) -> Option<(u32, u32)> {
    let frame = packet.data();
    let is_ours = frame.get(23) == Some(&17) && frame.get(36..38)? == PORT.to_be_bytes();
    let word = |at: usize| Some(u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?));
    if is_ours { Some((word(HEADERS)?, word(HEADERS + 4)?)) } else { None }
}
