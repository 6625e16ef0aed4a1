//! One line of a lane's script: a packet of a round, with as much of it ready as stays the same from round to round.

use std::net::Ipv4Addr;

use super::endpoints::{FrameSize, MemoryEndpoints, Servers};
use super::frame::{self, ACK, FrameStep, PSH, payload_len};
use super::pick::{Pick, Role};
use super::template::{Numbers, Template};

/// A packet of a round.
#[derive(Clone, Copy, Debug)]
pub(super) enum MemoryLine {
    /// TCP over IPv4 whose link addresses say nothing.
    Plain { template: Template, hash: u32 },
    /// Any other packet of a flow that is open throughout.
    Other { ends: MemoryEndpoints, numbers: Numbers, hash: u32 },
    /// A packet of a short connection, by its number within the round; whether it was opened in the round before.
    Brief { connection: u32, role: Role, opened_before: bool },
}

impl MemoryLine {
    /// The line of a pick. `external` is the client's endpoint as the server knows it, where that is another.
    pub(super) fn new(
        pick: &Pick,
        from_client: bool,
        external: Option<(Ipv4Addr, u16)>,
        (size, servers): (FrameSize, Servers),
    ) -> MemoryLine {
        let &Pick { flow, hash, role, opened_before, .. } = pick;
        if role != Role::Data {
            return MemoryLine::Brief { connection: flow, role, opened_before };
        }
        let mut ends = MemoryEndpoints::of(flow.into(), size, servers);
        ends.client = external.filter(|_| !ends.is_v6).unwrap_or(ends.client);
        let payload = payload_len(&ends);
        let (client, server) = first_numbers(flow.into());
        let (own, other) = if from_client { (client, server) } else { (server, client) };
        let numbers = Numbers {
            seq: own.wrapping_add(payload.wrapping_mul(pick.rank)),
            ack: other.wrapping_add(payload.wrapping_mul(pick.seen as u32)),
            seq_step: payload.wrapping_mul(pick.per_round),
            ack_step: payload.wrapping_mul(pick.answers),
        };
        if ends.is_v6 || ends.is_udp || ends.is_tagged || ends.has_stations {
            return MemoryLine::Other { ends, numbers, hash };
        }
        let (from, to) =
            if from_client { (ends.client, ends.server) } else { (ends.server, ends.client) };
        MemoryLine::Plain { template: Template::new(from, to, numbers, ends.frame_len), hash }
    }
}

/// Writes the packet of round `round` of a flow that is open throughout.
#[inline(never)]
pub(super) fn write(
    frame: &mut [u8],
    ends: &MemoryEndpoints,
    numbers: &Numbers,
    round: u32,
    from_client: bool,
) {
    let (seq, ack) = numbers.of(round);
    let (flags, len) = (PSH | ACK, ends.frame_len);
    let step = FrameStep { from_client, seq, ack, flags, len, has_data: true, mark: 0, tag: 0 };
    frame::write(frame, ends, &step);
}

/// The sequence numbers of the first byte that client and server send.
#[inline]
pub(super) fn first_numbers(flow: u64) -> (u32, u32) {
    let mixed = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as u32, mixed as u32)
}
