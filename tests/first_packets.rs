//! The first packets of flows at a function that has no handler of its own for them.

use rheostat::{
    Cx, DropReason, Harness, Mix, MixConfig, NetworkFunction, Outcome, Packet, ShardInfo,
    ShardState, Stage, StateLayout, Verdict,
};
use rheostat_state::Handle;

/// Lets each flow have so many packets.
struct Quota(u32);

/// Counts of one shard, made from the function.
struct Counts {
    quota: u32,
    discarded: u64,
}

impl ShardState<Quota> for Counts {
    fn of(quota: &Quota, _: ShardInfo, _: Handle<u32>) -> Counts {
        Counts { quota: quota.0, discarded: 0 }
    }
}

impl NetworkFunction for Quota {
    type Flow = u32;
    type Shard = Counts;

    fn packet(
        &self,
        cx: &mut Cx<'_, Counts>,
        _: &mut Packet<'_>,
        seen: &mut u32,
    ) -> Outcome<Verdict> {
        if *seen == cx.shard().quota {
            return Ok(Verdict::Drop(DropReason::QuotaExceeded));
        }
        *seen += 1;
        Ok(Verdict::Forward)
    }

    fn discarded(&self, cx: &mut Cx<'_, Counts>, seen: u32) {
        assert_eq!(seen, 0, "the state of a first packet");
        cx.shard().discarded += 1;
    }
}

/// Packets sent and dropped, flows made, and states discarded, of 5,000 packets.
fn run(quota: u32, lanes: usize) -> [u64; 4] {
    let mut layout = StateLayout::new();
    let chain = Stage::new(Quota(quota), &mut layout).expect("room for a state");
    let mix = MixConfig { packets: Some(5_000), flows: 200, ..MixConfig::default() };
    let harness = Harness { lanes, ..Harness::new(chain, layout) };
    let mut discarded = 0;
    let report = harness
        .run(Mix::new(mix).expect("a mix"), |_, shard| discarded += shard.discarded)
        .expect("memory and lanes");
    assert_eq!(report.violations, []);
    let dropped = report.counters.dropped[DropReason::QuotaExceeded as usize];
    [report.counters.sent, dropped, report.counters.flows_created, discarded]
}

#[test]
fn a_flow_is_admitted_with_what_its_first_packet_made_of_the_default_state() {
    let [sent, dropped, flows, discarded] = run(3, 1);
    assert_eq!((sent + dropped, discarded), (5_000, 0));
    assert!(dropped > 0 && flows > 100, "{dropped} dropped, {flows} flows");
    assert!(sent <= 3 * flows, "{sent} packets of {flows} flows");
    assert_eq!(run(3, 4), [sent, dropped, flows, 0]);
}

#[test]
fn a_flow_whose_first_packet_is_dropped_is_refused_and_its_state_discarded() {
    assert_eq!(run(0, 2), [0, 5_000, 0, 5_000]);
}
