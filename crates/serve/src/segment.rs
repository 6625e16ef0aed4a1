//! Segments as they lie in packets.

use rheostat_base::DropReason;
use rheostat_packet::checksum::{Validity, evaluate_packet};
use rheostat_packet::wire::TcpSegment;
use rheostat_packet::{Headers, Mbuf};
use rheostat_tcp::Segment;

/// The segment in a packet with these headers, whose checksum is right. It borrows from the packet, or from `joined`, to which a
/// packet in several buffers is copied.
///
/// # Errors
/// Why the packet is to be dropped.
pub(crate) fn of<'a>(
    packet: &'a Mbuf,
    headers: &Headers,
    joined: &'a mut Vec<u8>,
) -> Result<Segment<'a>, DropReason> {
    match evaluate_packet(packet, headers) {
        // A partial one is of a sender on this machine, whose packets pass no wire.
        Some(Validity::Valid | Validity::Partial) => {}
        Some(_) => return Err(DropReason::TcpChecksum),
        None => return Err(DropReason::Malformed),
    }
    let bytes = if packet.is_chained() {
        joined.clear();
        packet.segments().for_each(|segment| joined.extend_from_slice(segment));
        &joined[..]
    } else {
        packet.data()
    };
    let transport = bytes.get(usize::from(headers.l4)..headers.end as usize);
    let transport = transport.ok_or(DropReason::Malformed)?;
    let view = TcpSegment::new(transport).map_err(|_| DropReason::Malformed)?;
    let payload = transport.get(view.header_len()..).ok_or(DropReason::Malformed)?;
    Ok(Segment::parse(&view, payload))
}
