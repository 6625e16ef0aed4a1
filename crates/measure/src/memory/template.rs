//! The headers of a TCP segment over IPv4, ready but for what changes from one round to the next: its numbers and the sum over
//! them. A driver that converses has to write no more than this.

use std::net::Ipv4Addr;

use rheostat_packet::checksum::Sum;

use super::frame::{ACK, CLEARED, PSH};

/// Bytes that are written of each frame: the headers, and as many of the data as belong to the smallest frame.
const WRITTEN: usize = 60;

/// One packet's headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Template {
    /// Source and destination, in network order.
    addresses: [u8; 8],
    ports: [u8; 4],
    pub(super) numbers: Numbers,
    network_checksum: u16,
    /// What the checksum of TCP covers besides the two numbers, folded.
    rest: u16,
    pub(super) frame_len: u16,
}

/// The sequence and acknowledgement numbers of a packet that comes once in each round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    /// In the first round.
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// By how much they grow in a round.
    pub(super) seq_step: u32,
    pub(super) ack_step: u32,
}

impl Numbers {
    /// Sequence and acknowledgement number in round `round`, counted from 0.
    #[inline]
    pub(super) fn of(&self, round: u32) -> (u32, u32) {
        let Numbers { seq, ack, seq_step, ack_step } = *self;
        (
            seq.wrapping_add(round.wrapping_mul(seq_step)),
            ack.wrapping_add(round.wrapping_mul(ack_step)),
        )
    }
}

impl Template {
    /// The headers of a segment with data up to the end of a frame of `frame_len` bytes, 60 at least.
    pub(super) fn new(
        from: (Ipv4Addr, u16),
        to: (Ipv4Addr, u16),
        numbers: Numbers,
        frame_len: u16,
    ) -> Template {
        debug_assert!(usize::from(frame_len) >= WRITTEN);
        let total = frame_len - 14;
        let mut addresses = [0; 8];
        addresses[..4].copy_from_slice(&from.0.octets());
        addresses[4..].copy_from_slice(&to.0.octets());
        let mut ports = [0; 4];
        ports[..2].copy_from_slice(&from.1.to_be_bytes());
        ports[2..].copy_from_slice(&to.1.to_be_bytes());
        let mut network = Sum::default();
        network.add(&addresses);
        let mut rest = network;
        for word in [0x4500, total, 0x4000, 64 << 8 | 6] {
            network.add_u16(word);
        }
        rest.add(&ports);
        for word in [6, total - 20, u16::from_be_bytes([OFFSET, PSH | ACK]), 0xffff] {
            rest.add_u16(word);
        }
        let (network_checksum, rest) = (network.checksum(), rest.folded());
        Template { addresses, ports, numbers, network_checksum, rest, frame_len }
    }

    /// Writes the packet of round `round` into `frame`, which is as long as the frame.
    #[inline(always)]
    pub(super) fn write(&self, frame: &mut [u8], round: u32) {
        let (seq, ack) = self.numbers.of(round);
        let mut sum = Sum::default();
        sum.add_u16(self.rest);
        sum.add_u32(seq);
        sum.add_u32(ack);
        let Some((headers, data)) = frame.split_first_chunk_mut::<WRITTEN>() else { return };
        // Field by field: what is put together elsewhere, and then copied, waits for its parts.
        headers[..8].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0]);
        headers[8..16].copy_from_slice(&[0, 0, 0, 0, 8, 0, 0x45, 0]);
        headers[16..18].copy_from_slice(&(self.frame_len - 14).to_be_bytes());
        headers[18..24].copy_from_slice(&[0, 0, 0x40, 0, 64, 6]);
        headers[24..26].copy_from_slice(&self.network_checksum.to_be_bytes());
        headers[26..34].copy_from_slice(&self.addresses);
        headers[34..38].copy_from_slice(&self.ports);
        headers[38..42].copy_from_slice(&seq.to_be_bytes());
        headers[42..46].copy_from_slice(&ack.to_be_bytes());
        headers[46..50].copy_from_slice(&[OFFSET, PSH | ACK, 0xff, 0xff]);
        headers[50..52].copy_from_slice(&sum.checksum().to_be_bytes());
        headers[52..60].copy_from_slice(&[0; 8]);
        if !data.is_empty() {
            let headers_of_others = data.len().min(CLEARED - WRITTEN);
            data[..headers_of_others].fill(0);
        }
    }
}

/// The byte that states that the header has no options.
const OFFSET: u8 = 5 << 4;

#[cfg(test)]
mod tests {
    use super::super::endpoints::{FrameSize, MemoryEndpoints, Servers};
    use super::super::frame::{self, FrameStep};
    use super::*;

    #[test]
    fn the_headers_are_those_that_are_written_part_by_part() {
        for (number, round) in (0..500).zip((0..).step_by(7)) {
            let ends = MemoryEndpoints::of(number, FrameSize::Mix, Servers::Many);
            if ends.is_v6 || ends.is_udp {
                continue;
            }
            let numbers = Numbers { seq: 0xffff_ff00, ack: 77, seq_step: 1_448, ack_step: 6 };
            let template = Template::new(ends.client, ends.server, numbers, ends.frame_len);
            let (seq, ack) = numbers.of(round);
            assert_eq!(seq, 0xffff_ff00_u32.wrapping_add(round * 1_448));
            let (flags, len) = (PSH | ACK, ends.frame_len);
            let step = FrameStep {
                from_client: true,
                seq,
                ack,
                flags,
                len,
                has_data: true,
                mark: 0,
                tag: 0,
            };
            let mut expected = vec![0; len.into()];
            frame::write(&mut expected, &ends, &step);
            // What the longest headers of another packet left.
            let mut written = vec![0; len.into()];
            let left = written.len().min(78);
            written[..left].fill(0xee);
            template.write(&mut written, round);
            assert_eq!(written, expected, "flow {number}");
        }
    }
}
