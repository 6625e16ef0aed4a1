//! The heaviest flows, out of packets that are sampled while somebody looks.

use std::collections::{HashMap, VecDeque};

use rheostat_base::ShardId;
use rheostat_packet::FlowKey;
use serde::Serialize;

use crate::explain::Breakdown;

/// Samples that rates are a mean over.
const SAMPLES: usize = 10;
/// Flows kept of each sample.
const KEPT: usize = 64;
/// Flows shown.
const SHOWN: usize = 10;

/// The last samples, one for each interval.
#[derive(Debug, Default)]
pub struct FlowSamples(VecDeque<FlowSample>);

/// Flows with their packets per second.
#[derive(Debug)]
struct FlowSample {
    packets: u64,
    flows: Vec<(FlowKey, ShardId, f64)>,
}

/// One of the heaviest flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopFlow {
    /// Its protocol and end points.
    pub flow: String,
    /// Its shard.
    pub shard: u32,
    /// The lane that owns the shard.
    pub lane: Option<u16>,
    /// An estimate of its packets per second.
    pub rate: f64,
    /// Its share of all packets, 0 to 1.
    pub share: f64,
}

impl FlowSamples {
    /// Adds a sample of an interval in which so many packets a second arrived.
    pub fn add(&mut self, sample: &Breakdown, rate: f64) {
        let packets = sample.packets();
        let heaviest = sample.heaviest(KEPT).into_iter();
        let flows =
            heaviest.map(|(key, shard, own)| (key, shard, own as f64 * rate / packets as f64));
        let flows = flows.collect();
        if self.0.len() == SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(FlowSample { packets, flows });
    }

    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Packets in the samples.
    pub fn packets(&self) -> u64 {
        self.0.iter().map(|sample| sample.packets).sum()
    }

    /// The heaviest flows, the heaviest first; `lane_of` is the owner of a shard, and `rate` the packets per second of all flows.
    pub fn top(&self, rate: f64, lane_of: impl Fn(ShardId) -> Option<u16>) -> Vec<TopFlow> {
        let mut sums: HashMap<FlowKey, (ShardId, f64)> = HashMap::new();
        for (key, shard, rate) in self.0.iter().flat_map(|sample| &sample.flows) {
            sums.entry(*key).or_insert((*shard, 0.0)).1 += rate;
        }
        let samples = self.0.len().max(1) as f64;
        let flow = |(key, (shard, sum)): (FlowKey, (ShardId, f64))| {
            let own = sum / samples;
            let share = if rate > 0.0 { (own / rate).min(1.0) } else { 0.0 };
            TopFlow {
                flow: named(&key),
                shard: shard.index() as u32,
                lane: lane_of(shard),
                rate: own,
                share,
            }
        };
        let mut flows: Vec<_> = sums.into_iter().map(flow).filter(|flow| flow.rate > 0.0).collect();
        flows.sort_by(|one, other| {
            other.rate.total_cmp(&one.rate).then_with(|| one.flow.cmp(&other.flow))
        });
        flows.truncate(SHOWN);
        flows
    }
}

/// A flow as `UDP 10.0.0.1:5000 192.0.2.1:53`.
fn named(key: &FlowKey) -> String {
    let text = key.to_string();
    let protocol = match key.protocol() {
        1 => "ICMP",
        6 => "TCP",
        17 => "UDP",
        58 => "ICMPv6",
        132 => "SCTP",
        136 => "UDP-Lite",
        number => return format!("protocol {number} {}", ends(&text)),
    };
    format!("{protocol} {}", ends(&text))
}

/// The end points in the text of a flow, which follow its protocol.
fn ends(text: &str) -> &str {
    text.split_once(' ').map_or(text, |(_, ends)| ends)
}
