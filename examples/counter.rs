//! A network function that counts: packets per flow, and per shard the flow that had the most.
//!
//!     cargo run --release --example counter

use rheostat::{
    Cx, FlowKey, Harness, Mix, MixConfig, NetworkFunction, Outcome, Packet, Stage, StateLayout,
    Verdict,
};

/// Counts packets and bytes.
struct Counter;

/// What is kept of a flow.
#[derive(Default)]
struct Seen {
    packets: u64,
    bytes: u64,
}

/// What is kept in a shard: the flow that had the most bytes.
#[derive(Default)]
struct Largest {
    flows: u64,
    record: Option<(u64, u64, FlowKey)>,
}

impl NetworkFunction for Counter {
    type Flow = Seen;
    type Shard = Largest;

    fn packet(
        &self,
        cx: &mut Cx<'_, Largest>,
        packet: &mut Packet<'_>,
        seen: &mut Seen,
    ) -> Outcome<Verdict> {
        cx.shard().flows += u64::from(seen.packets == 0);
        seen.packets += 1;
        seen.bytes += packet.len() as u64;
        // The shard is this function's alone while it runs: no lock, no atomic.
        let record = &mut cx.shard().record;
        if record.is_none_or(|(bytes, ..)| seen.bytes > bytes) {
            *record = Some((seen.bytes, seen.packets, packet.arrival_key()));
        }
        Ok(Verdict::Forward)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut layout = StateLayout::new();
    let chain = Stage::new(Counter, &mut layout)?;
    let mix = Mix::new(MixConfig { packets: Some(200_000), flows: 5_000, ..Default::default() })?;
    let (mut flows, mut records) = (0, Vec::new());
    let report = Harness::new(chain, layout).run(mix, |_, shard| {
        flows += shard.flows;
        records.extend(shard.record);
    })?;
    println!("{} packets of {flows} flows; the largest:", report.counters.received);
    records.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
    for (bytes, packets, key) in records.iter().take(5) {
        println!("{bytes:>9} bytes in {packets:>5} packets  {key}");
    }
    assert!(report.violations.is_empty(), "{:?}", report.violations);
    Ok(())
}
