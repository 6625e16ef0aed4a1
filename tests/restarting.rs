//! A packet that restarts its flow behind a function that translates is presented again as it arrived.

use rheostat::{
    Admission, Chain2, Cx, FunctionSpec, Harness, Mix, MixConfig, NetworkFunction, Outcome, Packet,
    Stage, StateLayout, Verdict,
};
use rheostat_nf::{DynamicChain, link};
use rheostat_steer::Translation;

/// The source port that packets of known flows get.
const PORT: u16 = 9;

/// Translates the source ports of packets of known flows.
struct Translating;

/// First packets, and those of them that have the port of a known flow's.
#[derive(Default)]
struct Firsts {
    all: u64,
    translated: u64,
}

fn source_port(packet: &Packet<'_>) -> Option<u16> {
    let at = usize::from(packet.headers().l4);
    let bytes = packet.data().get(at..at + 2)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

impl NetworkFunction for Translating {
    type Flow = ();
    type Shard = Firsts;

    fn spec(&self) -> FunctionSpec {
        let translation = Some(Translation::default());
        FunctionSpec { translation, aliases: true, ..FunctionSpec::five_tuple() }
    }

    fn first(&self, cx: &mut Cx<'_, Firsts>, packet: &mut Packet<'_>) -> Outcome<Admission<()>> {
        cx.shard().all += 1;
        cx.shard().translated += u64::from(source_port(packet) == Some(PORT));
        Ok(Admission::Admit((), Verdict::Forward))
    }

    fn packet(
        &self,
        _: &mut Cx<'_, Firsts>,
        packet: &mut Packet<'_>,
        (): &mut (),
    ) -> Outcome<Verdict> {
        if let Ok(mut rewrite) = packet.rewrite() {
            // A packet without ports stays as it is.
            let _ = rewrite.set_source_port(PORT);
        }
        Ok(Verdict::Forward)
    }

    fn metrics(&self, firsts: &Firsts, metrics: &mut rheostat::Metrics) {
        metrics.add("firsts", firsts.all);
        metrics.add("translated_firsts", firsts.translated);
    }
}

/// Restarts a flow with its third packet.
struct Restarting;

impl NetworkFunction for Restarting {
    type Flow = u32;
    type Shard = ();

    fn packet(&self, _: &mut Cx<'_, ()>, _: &mut Packet<'_>, seen: &mut u32) -> Outcome<Verdict> {
        *seen += 1;
        Ok(if *seen > 2 { Verdict::Restart } else { Verdict::Forward })
    }
}

fn mix() -> Mix {
    let config = MixConfig { packets: Some(5_000), flows: 100, ..MixConfig::default() };
    Mix::new(config).expect("a mix")
}

#[test]
fn the_packet_has_its_own_ports_again_in_each_kind_of_chain() {
    let mut layout = StateLayout::new();
    let first = Stage::new(Translating, &mut layout).expect("room for a state");
    let second = Stage::new(Restarting, &mut layout).expect("room for a state");
    let whole = Harness::new(Chain2(first, second), layout);
    let whole = whole.run(mix(), |_, _| {}).expect("memory and a lane");
    let mut layout = StateLayout::new();
    let links = vec![link(Translating), link(Restarting)];
    let chain = DynamicChain::new(links, &mut layout).expect("a chain");
    let of_links = Harness::new(chain, layout).run(mix(), |_, _| {}).expect("memory and a lane");
    for report in [whole, of_links] {
        let flows = report.counters.flows_created;
        assert!(report.metrics.get("firsts") > 1_000, "{flows} flows, most of them restarted");
        assert_eq!(report.metrics.get("translated_firsts"), 0);
    }
}
