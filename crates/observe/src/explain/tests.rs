use std::sync::Arc;
use std::time::Duration;

use rheostat_base::{DeviceId, LaneId, Time};
use rheostat_packet::LinkType;
use rheostat_steer::policy::{
    LaneBounds, LaneLoad, Load, LoadSnapshot, Policy, Rsspp, ShardLoad, by_name,
};
use rheostat_steer::{HashKey, Orientation, Steering};

use super::*;
use crate::control::Reply;

const LANES: usize = 4;

fn breakdown(shards: usize) -> Breakdown {
    let inside = vec![Orientation::Inside, Orientation::Outside];
    Breakdown::new(Arc::new(Steering::new(&HashKey::symmetric(), 512, shards, inside).unwrap()))
}

type End = ([u8; 4], u16);

/// A UDP datagram without payload, without a link header.
fn datagram((source, from): End, (destination, to): End) -> Vec<u8> {
    let header = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
    let ports = [from.to_be_bytes(), to.to_be_bytes()];
    [&header[..], &source, &destination, ports.as_flattened(), &[0, 8, 0, 0]].concat()
}

/// Counts `packets` packets of client `client`, every second of them an answer.
fn talk(breakdown: &mut Breakdown, client: u16, packets: usize) {
    let inner = ([10, 0, 0, 1 + (client % 90) as u8], 1_000 + client);
    let outer = ([198, 51, 100, 200], 53);
    for number in 0..packets {
        let (device, bytes) = match number % 2 {
            0 => (DeviceId(0), datagram(inner, outer)),
            _ => (DeviceId(1), datagram(outer, inner)),
        };
        breakdown.count(device, LinkType::Raw, bytes.len(), &bytes);
    }
}

fn explain(policy: &mut dyn Policy, breakdown: &Breakdown) -> Explanation {
    let whole = Load::from_percent(60 * LANES as u64);
    let shards = breakdown.shards().into_iter().enumerate().map(|(shard, packets)| ShardLoad {
        owner: LaneId((shard % LANES) as u16),
        load: whole.part(packets, breakdown.packets()),
    });
    let bounds = LaneBounds { min: 1, max: LANES };
    let lanes = vec![LaneLoad::ACTIVE; LANES];
    let load = LoadSnapshot::new(lanes, shards.collect(), bounds, Duration::from_secs(1)).unwrap();
    let plan = policy.plan(Time::from_secs(5), &load);
    Explanation::of(policy.name(), &load, &plan, breakdown).unwrap()
}

#[test]
fn both_directions_of_a_flow_are_one_and_lie_in_one_bucket() {
    let mut breakdown = breakdown(128);
    talk(&mut breakdown, 7, 100);
    talk(&mut breakdown, 8, 30);
    breakdown.count(DeviceId(0), LinkType::Raw, 3, &[0x45, 0, 0]);
    assert_eq!(breakdown.packets(), 131);
    assert_eq!(breakdown.buckets().iter().sum::<u64>(), 131);
    let heaviest = breakdown.heaviest(5);
    assert_eq!(heaviest.iter().map(|(.., packets)| *packets).collect::<Vec<_>>(), [100, 30]);
    assert_eq!(heaviest[0].0.to_string(), "17 10.0.0.8:1007 198.51.100.200:53");
    let (key, shard, _) = heaviest[0];
    assert_eq!(breakdown.heaviest_of(shard), Some((key, 100)));
    assert_eq!(breakdown.steering().shard_of_key(&key), shard);
    assert_eq!(
        breakdown.shards()[shard.index()],
        breakdown.buckets().iter().skip(shard.index()).step_by(128).sum::<u64>()
    );
    assert_eq!(breakdown.heaviest(1).len(), 1);
}

#[test]
fn an_elephant_is_named() {
    let mut breakdown = breakdown(128);
    talk(&mut breakdown, 0, 4_000);
    (1..600).for_each(|client| talk(&mut breakdown, client, 10));
    let explanation = explain(&mut Rsspp::default(), &breakdown);
    let limit = explanation.limit.clone().unwrap();
    assert_eq!(
        (limit.kind, limit.flow.as_deref()),
        (LimitKind::Flow, Some("17 10.0.0.1:1000 198.51.100.200:53"))
    );
    // 40 % of 240 %, where a quarter would be fair.
    assert!((0.95..0.97).contains(&limit.load), "{limit:?}");
    assert!((0.59..0.61).contains(&limit.mean), "{limit:?}");
    assert!(
        explanation.to_string().contains("limited by one flow: UDP 10.0.0.1:1000"),
        "{explanation}"
    );
}

#[test]
fn a_shard_of_many_flows_is_told_from_an_elephant() {
    let mut breakdown = breakdown(2);
    (0..300).for_each(|client| talk(&mut breakdown, client, 10));
    let explanation = explain(&mut Rsspp::default(), &breakdown);
    let limit = explanation.limit.clone().unwrap();
    assert_eq!((limit.kind, limit.flow), (LimitKind::Shard, None));
    assert!(explanation.to_string().contains("limited by one shard"), "{explanation}");
}

#[test]
fn mice_limit_nothing_and_what_moves_evens_them_out() {
    let mut breakdown = breakdown(128);
    (0..2_000).for_each(|client| talk(&mut breakdown, client, 4));
    let explanation = explain(&mut Rsspp::default(), &breakdown);
    assert_eq!(explanation.limit, None);
    let loads =
        |of: fn(&LaneMetrics) -> Option<f64>| explanation.lanes.iter().filter_map(of).sum::<f64>();
    assert!(
        (loads(|lane| lane.load) - 2.4).abs() < 1e-3
            && (loads(|lane| lane.after) - 2.4).abs() < 1e-3
    );
    let Prediction { before, after, squared } = explanation.imbalance;
    assert!(after <= before && squared.after <= squared.before);
    let moved = |shard: u16| explanation.shards[usize::from(shard)].lane;
    assert!(
        explanation.moves.iter().all(|each| moved(each.shard) == each.from && each.from != each.to)
    );
}

#[test]
fn a_policy_that_moves_nothing_says_so_and_predicts_no_change() {
    let mut breakdown = breakdown(128);
    (0..50).for_each(|client| talk(&mut breakdown, client, 10));
    let explanation = explain(&mut *by_name("rss").unwrap(), &breakdown);
    assert_eq!(explanation.why, ["the table never changes"]);
    assert_eq!(explanation.imbalance.before, explanation.imbalance.after);
    assert!(explanation.moves.is_empty());
    let owner = |shard: &ShardMetrics| usize::from(shard.lane) == usize::from(shard.shard) % LANES;
    assert!(explanation.shards.iter().all(owner));
}

#[test]
fn what_goes_over_the_socket_comes_back() {
    let mut breakdown = breakdown(2);
    (0..300).for_each(|client| talk(&mut breakdown, client, 10));
    let reply = Reply::Explanation(Box::new(explain(&mut Rsspp::default(), &breakdown)));
    let line = serde_json::to_string(&reply).unwrap();
    assert_eq!(serde_json::from_str::<Reply>(&line).unwrap(), reply);
    let Reply::Explanation(explanation) = reply else { panic!("another reply: {reply:?}") };
    let text = explanation.buckets_as_text();
    // A heading and 512 buckets, sixteen on a line.
    assert_eq!(text.lines().count(), 33);
    let shares = text.lines().skip(1).flat_map(|line| line.split_whitespace().skip(1));
    let sum: f64 = shares.map(|share| share.parse::<f64>().unwrap()).sum();
    assert!((sum - 1_000.0).abs() < 30.0, "{sum}");
}
