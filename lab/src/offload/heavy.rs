//! How well a lane knows its heaviest flows: what it finds in the packets that it samples, beside what each flow sent.
//!
//! Nothing here takes time that is measured: figures follow from the seed, and are the same on every machine. What looking for
//! the flows costs, `rheo bench nf --measuring` measures.

use std::collections::HashMap;

use rheostat_base::{ShardId, Time};
use rheostat_measure::record::{Column, TableRow};
use rheostat_measure::rounding::to_thousandths;
use rheostat_packet::{BURST, FlowKey};
use rheostat_run::{FlowName, HeavyFlows};
use rheostat_state::FlowHash;
use rheostat_traffic::{Distribution, FlowPicker, tuple_of};
use serde::Serialize;

/// Shards of the lane: those of a run by default.
const SHARDS: usize = 128;
/// Packets of an epoch of 100 ms, at five million a second.
const EPOCH: usize = 500_000;
/// Epochs until the first look, and looks, one at the end of each epoch.
const WARM_UP: usize = 5;
const LOOKS: usize = 15;
/// Bytes of each packet.
const BYTES: u64 = 64;
/// How packets are spread over flows.
const SPREADS: [Distribution; 6] = [
    Distribution::Zipf(0.7),
    Distribution::Zipf(0.8),
    Distribution::Zipf(0.9),
    Distribution::Zipf(1.0),
    Distribution::Zipf(1.1),
    Distribution::Uniform,
];
/// So many of the heaviest flows are looked for.
const TOPS: [usize; 2] = [16, 64];

/// What a lane knows of so many of its heaviest flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeavyRow {
    /// `uniform`, or `zipf-` with the exponent.
    pub distribution: String,
    /// Flows.
    pub flows: u32,
    /// Of this many, those that sent most.
    pub top: usize,
    /// Their share of all packets.
    pub weight: f64,
    /// The share of them that the lane names.
    pub named: f64,
    /// By how much the lane's figure for a flow's part of its shard is wrong, as a share of the part: the mean of those named.
    pub error: f64,
    /// Of all flows that the lane names, those with less than half of the part that it takes them to have.
    pub overstated: f64,
}

impl TableRow for HeavyRow {
    const COLUMNS: &'static [Column<HeavyRow>] = &[
        Column::name("distribution", 12, |row| &row.distribution),
        Column::count("top", 5, |row| row.top as u64),
        Column::percent("weight", 7, 1, |row| row.weight),
        Column::percent("named", 7, 1, |row| row.named),
        Column::percent("error", 7, 1, |row| row.error),
        Column::percent("overstated", 11, 1, |row| row.overstated),
    ];
}

/// What a flow sent, as parts of all packets.
struct HeavySent {
    /// By flow.
    flows: Vec<u32>,
    /// By shard.
    shards: Vec<u32>,
    packets: usize,
}

impl HeavySent {
    /// A flow's part of the packets of its shard.
    fn part(&self, flow: u32) -> f64 {
        f64::from(self.flows[flow as usize]) / f64::from(self.shards[shard_of(flow)].max(1))
    }
}

/// Has a lane with so many flows look for the heaviest, with each kind of traffic.
pub fn measure(flows: u32, seed: u64, mut done: impl FnMut(&HeavyRow)) {
    for spread in SPREADS {
        let mut picker = FlowPicker::new(flows, spread, (WARM_UP + LOOKS) * EPOCH, seed);
        let picked: Vec<u32> = (0..(WARM_UP + LOOKS) * EPOCH).map(|_| picker.pick()).collect();
        rows(spread, flows, &picked).iter().for_each(&mut done);
    }
}

fn rows(spread: Distribution, flows: u32, picked: &[u32]) -> Vec<HeavyRow> {
    let mut sent = HeavySent {
        flows: vec![0; flows as usize],
        shards: vec![0; SHARDS],
        packets: picked.len(),
    };
    for &flow in picked {
        sent.flows[flow as usize] += 1;
        sent.shards[shard_of(flow)] += 1;
    }
    let mut ranks: Vec<u32> = (0..flows).collect();
    ranks.sort_by_key(|&flow| (std::cmp::Reverse(sent.flows[flow as usize]), flow));
    let looks = looks(picked);
    let row = |&top: &usize| row(spread, &ranks[..top.min(ranks.len())], &sent, &looks);
    TOPS.iter().map(row).collect()
}

/// What the lane names at the end of each epoch behind the warm-up, and the parts that it takes flows to have.
fn looks(picked: &[u32]) -> Vec<HashMap<u64, f64>> {
    let mut heavy = HeavyFlows::new(SHARDS);
    let mut looks = Vec::new();
    for (number, epoch) in picked.chunks(EPOCH).enumerate() {
        for batch in epoch.chunks(BURST) {
            if !heavy.takes_batch() {
                continue;
            }
            let flow = batch[heavy.next_place(batch.len())];
            let name = name(flow);
            heavy.note(name.shard, Some(name), BYTES * batch.len() as u64);
        }
        if number >= WARM_UP {
            let parts = heavy.parts().into_iter();
            looks.push(parts.map(|(name, part)| (name.hash.0, part.share())).collect());
        }
        heavy.age(Time::ZERO);
    }
    looks
}

fn row(
    spread: Distribution,
    top: &[u32],
    sent: &HeavySent,
    looks: &[HashMap<u64, f64>],
) -> HeavyRow {
    let (mut named, mut errors, mut overstated, mut all) = (0, 0.0, 0, 0);
    for look in looks {
        for &flow in top {
            if let Some(part) = look.get(&flow.into()) {
                named += 1;
                errors += (part / sent.part(flow) - 1.0).abs();
            }
        }
        all += look.len();
        overstated +=
            look.iter().filter(|&(&flow, &part)| part > 2.0 * sent.part(flow as u32)).count();
    }
    let of_top = |flow: &u32| f64::from(sent.flows[*flow as usize]);
    HeavyRow {
        distribution: match spread {
            Distribution::Uniform => "uniform".into(),
            Distribution::Zipf(exponent) => format!("zipf-{exponent}"),
        },
        flows: sent.flows.len() as u32,
        top: top.len(),
        weight: to_thousandths(top.iter().map(of_top).sum::<f64>() / sent.packets as f64),
        named: to_thousandths(named as f64 / (looks.len() * top.len()) as f64),
        error: to_thousandths(errors / f64::max(named.into(), 1.0)),
        overstated: to_thousandths(overstated as f64 / all.max(1) as f64),
    }
}

/// The hash is the flow's number, by which the lane's findings are looked up.
fn name(flow: u32) -> FlowName {
    let (client, server) = tuple_of(flow.into());
    let key = FlowKey::v4(client, server, 6, 0);
    FlowName { shard: ShardId(shard_of(flow) as u16), hash: FlowHash(flow.into()), key }
}

fn shard_of(flow: u32) -> usize {
    (u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_that_stand_out_are_named_and_their_parts_are_near() {
        // A tenth of the packets each are of four flows; the others are of 20,000 that are alike.
        let mut picker = FlowPicker::new(20_000, Distribution::Uniform, 400_000, 1);
        let picked: Vec<u32> = (0..8 * EPOCH as u32)
            .map(|packet| if packet * 7 % 10 < 4 { packet * 7 % 10 } else { picker.pick() })
            .collect();
        let looks = looks(&picked);
        assert_eq!(looks.len(), 8 - WARM_UP);
        let mut sent =
            HeavySent { flows: vec![0; 20_000], shards: vec![0; SHARDS], packets: picked.len() };
        for &flow in &picked {
            sent.flows[flow as usize] += 1;
            sent.shards[shard_of(flow)] += 1;
        }
        let row = row(Distribution::Uniform, &[0, 1, 2, 3], &sent, &looks);
        assert_eq!((row.top, row.named), (4, 1.0), "{row:?}");
        assert!(row.weight > 0.39 && row.error < 0.1, "{row:?}");
    }
}
