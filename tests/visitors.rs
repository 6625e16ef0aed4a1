//! Functions without a fast path and without flows, in chains whose other functions have one: whatever these do with packets of
//! known flows, they do it as on the general path.

use rheostat::{
    Cx, DropReason, FunctionSpec, NetworkFunction, Outcome, Packet, PacketSet, Verdict,
};
use rheostat_functions::Monitor;
use rheostat_functions::monitor::MonitorConfig;
use rheostat_functions::nat::Mapping;
use rheostat_functions::policer::PolicerInShards;
use rheostat_nf::{Link, link};
use rheostat_packet::LinkType;
use rheostat_run::Metrics;
use rheostat_state::txn::Abort;
use rheostat_steer::Whose;

use crate::dynamic_chains::{Digest, WAYS, dynamic, firewall, mix, nat, run};
use crate::policing;
use crate::translation;

/// Does one thing or another with a packet, by its ports and its length.
struct Capricious;

impl NetworkFunction for Capricious {
    type Flow = ();
    type Shard = [u64; 2];

    fn spec(&self) -> FunctionSpec {
        let steering = Some(PacketSet::inner_endpoint());
        FunctionSpec { steering, ..FunctionSpec::without_flows() }
    }

    fn packet(
        &self,
        _: &mut Cx<'_, [u64; 2]>,
        _: &mut Packet<'_>,
        (): &mut (),
    ) -> Outcome<Verdict> {
        unreachable!("without a packet set there are no flows")
    }

    fn non_flow(&self, cx: &mut Cx<'_, [u64; 2]>, packet: &mut Packet<'_>) -> Outcome<Verdict> {
        // The key as the functions before have left it.
        let words =
            packet.key().raw().iter().fold(0_u64, |sum, word| sum * 31 % 65_521 + word % 65_521);
        let whim = words + packet.len() as u64;
        cx.shard()[0] += 1;
        cx.shard()[1] += whim;
        // Counts for nothing: there is no flow.
        cx.close();
        match whim % 13 {
            0 => return Ok(Verdict::Drop(DropReason::Policed)),
            1 => return Ok(Verdict::Consume),
            2 => return Ok(Verdict::Restart),
            3 => {
                cx.originate_like(packet, 60, |_| Some(60))?;
                return Err(Abort);
            }
            4 => {
                let _ = packet.set_traffic_class(0x28);
            }
            5 if packet.wire_len() as usize == packet.data().len() => {
                let copy = packet.data().to_vec();
                cx.originate_like(packet, copy.len(), |bytes| {
                    bytes.copy_from_slice(&copy);
                    Some(copy.len())
                })?;
            }
            _ => {}
        }
        Ok(Verdict::Forward)
    }

    fn metrics(&self, [packets, whims]: &[u64; 2], metrics: &mut Metrics) {
        metrics.add("capricious_packets", *packets);
        metrics.add("capricious_whims", *whims);
    }
}

#[track_caller]
fn compare(name: &str, links: impl Fn() -> Vec<Box<dyn Link>>) -> Digest {
    let source = || translation::both_ways(Mapping::EndpointIndependent, &|| mix(6))();
    let general = run((1, 1, 0, 100), dynamic(links()), source(), LinkType::Ethernet);
    for way in WAYS {
        let other = run(way, dynamic(links()), source(), LinkType::Ethernet);
        assert_eq!(general.counters, other.counters, "{name}, {way:?}");
        assert_eq!(general.metrics, other.metrics, "{name}, {way:?}");
        if let Some(difference) = general.flows.differs_from(&other.flows) {
            panic!("{name}, {way:?}: {difference}");
        }
    }
    general
}

#[test]
fn a_function_without_a_fast_path_does_the_same_on_that_of_the_others() {
    let functions = |place: usize| {
        let mut links = vec![link(firewall()), link(nat(Mapping::EndpointIndependent))];
        links.insert(place, link(Capricious));
        links
    };
    for place in 0..=2 {
        let digest = compare(&format!("at {place}"), || functions(place));
        let counted = |name| digest.counters.iter().find(|(of, _)| *of == name).map(|(_, n)| *n);
        for name in ["sent", "originated", "policed", "handler_abort"] {
            assert!(counted(name) > Some(100), "{name}: {:?}", digest.counters);
        }
    }
}

#[test]
fn four_functions_do_the_same_on_either_path() {
    let policer = || PolicerInShards::new(policing::config(Whose::Inner, policing::meters()[0]));
    let digest = compare("four", || {
        vec![
            link(Monitor::new(MonitorConfig::default(), None)),
            link(policer()),
            link(firewall()),
            link(nat(Mapping::EndpointIndependent)),
        ]
    });
    let policed = digest.counters.iter().find(|(of, _)| *of == "policed").map_or(0, |(_, n)| *n);
    assert!(policed > 100, "{policed} packets policed prove little");
}
