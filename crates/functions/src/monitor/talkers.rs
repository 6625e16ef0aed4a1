//! Rankings of hosts and flows, by bytes and by packets.

use std::net::IpAddr;
use std::time::Duration;

use rheostat_packet::FlowKey;
use rheostat_run::Ranking;
use rheostat_state::{Estimate, SpaceSaving};

/// Which rankings there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopConfig {
    /// How many are listed.
    pub listed: usize,
    /// How many are counted in each shard and for each ranking.
    pub counters: usize,
    /// How often the log gets the rankings since the last time; without it, there are only those of the whole run, in the
    /// summary.
    pub interval: Option<Duration>,
}

impl Default for TopConfig {
    /// Ten, out of 128 in each shard, at the end.
    fn default() -> TopConfig {
        TopConfig { listed: 10, counters: 128, interval: None }
    }
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The rankings of one shard. A host's volume is that of its flows, in both directions.
#[derive(Clone, Debug)]
pub struct Talkers {
    hosts_by_bytes: SpaceSaving<IpAddr>,
    hosts_by_packets: SpaceSaving<IpAddr>,
    flows_by_bytes: SpaceSaving<FlowKey>,
    flows_by_packets: SpaceSaving<FlowKey>,
}

impl Talkers {
    /// Empty rankings.
    pub fn new(config: &TopConfig) -> Talkers {
        Talkers {
            hosts_by_bytes: SpaceSaving::new(config.counters),
            hosts_by_packets: SpaceSaving::new(config.counters),
            flows_by_bytes: SpaceSaving::new(config.counters),
            flows_by_packets: SpaceSaving::new(config.counters),
        }
    }

    /// Counts what a flow had.
    pub(super) fn count(&mut self, key: &FlowKey, volume: Volume) {
        let (first, second) = (key.first(), key.second());
        for host in std::iter::once(first).chain((second != first).then_some(second)) {
            self.hosts_by_bytes.add(host, volume.bytes);
            self.hosts_by_packets.add(host, volume.packets);
        }
        self.flows_by_bytes.add(*key, volume.bytes);
        self.flows_by_packets.add(*key, volume.packets);
    }

    /// Empties the rankings.
    pub(super) fn clear(&mut self) {
        self.hosts_by_bytes.clear();
        self.hosts_by_packets.clear();
        self.flows_by_bytes.clear();
        self.flows_by_packets.clear();
    }

    /// A summary for each ranking.
    pub(super) fn ranked(&self) -> [Ranked; 4] {
        let hosts = |name, summary: &SpaceSaving<IpAddr>| {
            let entries = summary.iter().map(|(host, count)| (Talker::Host(host), count));
            Ranked { name, entries: entries.collect(), floor: summary.floor() }
        };
        let flows = |name, summary: &SpaceSaving<FlowKey>| {
            let entries = summary.iter().map(|(key, count)| (Talker::Flow(key), count));
            Ranked { name, entries: entries.collect(), floor: summary.floor() }
        };
        [
            hosts("hosts_by_bytes", &self.hosts_by_bytes),
            hosts("hosts_by_packets", &self.hosts_by_packets),
            flows("flows_by_bytes", &self.flows_by_bytes),
            flows("flows_by_packets", &self.flows_by_packets),
        ]
    }
}

/// A host or a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talker {
    /// A host.
    Host(IpAddr),
    /// A flow.
    Flow(FlowKey),
}

/// One shard's summary for one ranking.
#[derive(Clone, Debug)]
pub struct Ranked {
    name: &'static str,
    entries: Vec<(Talker, Estimate)>,
    floor: u64,
}

impl Ranked {
    /// The ranking's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Adds the summary to the ranking of all shards.
    pub fn merge_into(&self, ranking: &mut Ranking) {
        let told = |(talker, count): &(Talker, Estimate)| {
            let name = match talker {
                Talker::Host(host) => host.to_string(),
                Talker::Flow(key) => key.to_string(),
            };
            (name, *count)
        };
        ranking.merge(self.entries.iter().map(told), self.floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_host_has_what_its_flows_have() {
        let host = |last| Ipv4Addr::new(10, 0, 0, last);
        let flow = |a, b| FlowKey::v4((host(a), 1_000), (host(b), 53), 17, 0);
        let mut talkers = Talkers::new(&TopConfig::default());
        talkers.count(&flow(1, 2), Volume { packets: 3, bytes: 300 });
        talkers.count(&flow(1, 3), Volume { packets: 1, bytes: 900 });
        talkers.count(&flow(4, 4), Volume { packets: 2, bytes: 50 });
        let top = |talkers: &Talkers, name: &str| {
            let mut metrics = rheostat_run::Metrics::default();
            for ranked in talkers.ranked() {
                ranked.merge_into(metrics.ranking(ranked.name(), 2));
            }
            let ranking = metrics.rankings().find(|(known, _)| *known == name).unwrap().1;
            let top = ranking.top();
            top.iter().map(|(name, count)| format!("{name} {}", count.most)).collect::<Vec<_>>()
        };
        assert_eq!(top(&talkers, "hosts_by_bytes"), ["10.0.0.1 1200", "10.0.0.3 900"]);
        assert_eq!(top(&talkers, "hosts_by_packets"), ["10.0.0.1 4", "10.0.0.2 3"]);
        assert_eq!(top(&talkers, "flows_by_packets")[0], "17 10.0.0.1:1000 10.0.0.2:53 3");
        talkers.clear();
        assert!(top(&talkers, "flows_by_bytes").is_empty());
    }
}
