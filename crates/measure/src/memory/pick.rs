//! Which packet comes when: drawn before the measurement, so that drawing is no part of it.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_steer::Steering;
use rheostat_traffic::FlowPicker;

use super::endpoints::MemoryEndpoints;
use super::{Load, Share, device_hash};

/// Packets between two steps of a short connection, and the age of what an acknowledgement can know
/// of: more than the two devices are ever apart.
pub(super) const LAG: usize = 2_048;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Role {
    /// Data of a flow that is open throughout.
    Data,
    /// The first packet of a short connection.
    Syn,
    /// The answer to it.
    SynAck,
    /// The end of its handshake.
    Ack,
    /// Its end.
    Reset,
}

/// One packet of a sequence that is repeated round after round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    /// The flow's number; for a short connection its number within the round.
    pub(super) flow: u32,
    /// The device's hash. Not of short connections, whose endpoints change from round to round.
    pub(super) hash: u32,
    /// Data packets of the flow in this direction before this one, in this round.
    pub(super) rank: u32,
    /// Data packets of the other direction that this one acknowledges, counted from the start of the
    /// round; negative at the start of a round, when the last ones of the round before are not acknowledged yet.
    pub(super) seen: i32,
    /// Data packets of the flow per round in this direction.
    pub(super) per_round: u32,
    /// Data packets of the flow per round in the other direction.
    pub(super) answers: u32,
    pub(super) role: Role,
    /// Whether the short connection was opened in the round before.
    pub(super) opened_before: bool,
}

/// The packets of one lane: for each direction a round of the same length.
#[derive(Debug)]
pub(super) struct Picks {
    /// The lane's flows.
    pub(super) flows: Vec<u32>,
    pub(super) from_inside: Vec<Pick>,
    pub(super) from_outside: Vec<Pick>,
    /// Short connections per round.
    pub(super) connections: u32,
}

impl Picks {
    /// Draws a round for a lane.
    ///
    /// From outside, the same data packets come half a round later: every packet is answered, and
    /// between the two lie as many others as between any two packets of the flow.
    pub(super) fn draw(load: &Load, steering: &Steering, share: Share) -> Picks {
        let hashes: Vec<u32> = (0..load.flows)
            .map(|flow| {
                let key = MemoryEndpoints::of(flow.into(), load.size, load.servers).key();
                device_hash(steering, key).0
            })
            .collect();
        let is_own = |flow: u32| share.contains(steering, hashes[flow as usize]);
        let flows: Vec<u32> = (0..load.flows).filter(|&flow| is_own(flow)).collect();
        assert!(!flows.is_empty(), "a lane without flows measures nothing");

        let length = round_length(load);
        let seed = load.seed.wrapping_add(share.lane as u64);
        let mut picker = FlowPicker::new(load.flows, load.distribution, 2 * length, seed);
        let data = std::iter::repeat_with(move || picker.pick()).filter(|&flow| is_own(flow));
        let data: Vec<u32> = data.take(length).collect();

        let pick = |index: usize| {
            let flow = data[index];
            let hash = hashes[flow as usize];
            let (rank, seen, per_round, answers) = (0, 0, 0, 0);
            let (role, opened_before) = (Role::Data, false);
            Pick { flow, hash, rank, seen, per_round, answers, role, opened_before }
        };
        let mut from_inside: Vec<Pick> = (0..length).map(pick).collect();
        let mut from_outside: Vec<Pick> =
            (0..length).map(|index| pick((index + length / 2) % length)).collect();
        let connections =
            open_connections(load.new_flow_share, seed, &mut from_inside, &mut from_outside);
        number(load.flows, &mut from_inside, &mut from_outside);
        Picks { flows, from_inside, from_outside, connections }
    }
}

/// Packets per round and direction: enough that a round touches more flows than caches hold, where
/// there are so many, and that the edges of a round are rare, where they cut short connections off.
fn round_length(load: &Load) -> usize {
    match load.flows {
        100_001.. => 1 << 22,
        10_000.. => 1 << 20,
        _ if load.new_flow_share > 0.0 => 1 << 20,
        _ => 1 << 17,
    }
}

/// Replaces data packets by short connections until these open with the given share of all packets,
/// and returns how many.
fn open_connections(share: f64, seed: u64, inside: &mut [Pick], outside: &mut [Pick]) -> u32 {
    let length = inside.len();
    let count = (share * 2.0 * length as f64) as usize;
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x5eed);
    let place = |picks: &mut [Pick], from: usize, connection: usize, role: Role| {
        // The next place that no other connection has taken.
        let at = (from..).find(|at| picks[at % length].role == Role::Data).expect("endless");
        let pick = &mut picks[at % length];
        *pick = Pick { flow: connection as u32, role, opened_before: at >= length, ..*pick };
        at
    };
    for connection in 0..count {
        let start = rng.random_range(0..length);
        let at = place(inside, start, connection, Role::Syn);
        // A connection counts from its SYN: should that come round the end, so does the rest.
        let wrapped = at / length * length;
        inside[at % length].opened_before = false;
        let at = place(outside, at - wrapped + LAG, connection, Role::SynAck);
        let at = place(inside, at + LAG, connection, Role::Ack);
        place(inside, at + LAG, connection, Role::Reset);
    }
    count as u32
}

/// Gives data packets their places in their flows.
fn number(flows: u32, inside: &mut [Pick], outside: &mut [Pick]) {
    #[derive(Clone, Copy, Default)]
    struct PickCount {
        sent: [u32; 2],
        /// Of what was sent, what the other end knows of.
        known: [u32; 2],
        per_round: [u32; 2],
    }
    let mut counts = vec![PickCount::default(); flows as usize];
    let length = inside.len();
    let sides = [inside, outside];
    for (side, picks) in sides.iter().enumerate() {
        for pick in picks.iter().filter(|pick| pick.role == Role::Data) {
            counts[pick.flow as usize].per_round[side] += 1;
        }
    }
    // The second time round, what was sent in the first is known but for its end.
    for round in 0..2 {
        for index in 0..length {
            for side in [0, 1] {
                let pick = sides[side][index];
                if pick.role == Role::Data {
                    let count = &mut counts[pick.flow as usize];
                    let pick = &mut sides[side][index];
                    pick.per_round = count.per_round[side];
                    pick.answers = count.per_round[1 - side];
                    pick.rank = count.sent[side] - round * count.per_round[side];
                    pick.seen = (count.known[1 - side] as i32)
                        .wrapping_sub((round * count.per_round[1 - side]) as i32);
                    count.sent[side] += 1;
                }
                if round > 0 || index >= LAG {
                    let old = sides[side][(index + length - LAG) % length];
                    if old.role == Role::Data {
                        counts[old.flow as usize].known[side] += 1;
                    }
                }
            }
        }
    }
}
