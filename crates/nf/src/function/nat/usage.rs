//! How many ports of each external address are in use, for those who watch a run.

use std::net::Ipv4Addr;

use rheostat_state::Gauges;

use super::config::NatConfig;
use super::ports::{PROTOCOLS, PortSets};

/// The ports in use of all shards together, for mappings that do not depend on the remote endpoint. It lags behind
/// by half a second at most.
#[derive(Clone, Debug)]
pub struct PortUsage {
    gauges: Gauges,
    external: Vec<Ipv4Addr>,
    ports: u64,
}

/// The use of one external address by one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortShare {
    /// The external address.
    pub address: Ipv4Addr,
    /// The IP protocol.
    pub protocol: u8,
    /// Its ports whose mapping has a flow that is not over.
    pub in_use: u64,
    /// The ports that the configuration gives out.
    pub ports: u64,
}

impl PortShare {
    /// Ports in use, in per cent of those there are.
    pub fn per_cent(&self) -> u64 {
        self.in_use * 100 / self.ports.max(1)
    }
}

impl PortUsage {
    /// That of a NAT with these settings, which has no flows yet.
    pub fn new(config: &NatConfig) -> PortUsage {
        PortUsage {
            gauges: Gauges::new(config.external.len() * PROTOCOLS.len()),
            external: config.external.clone(),
            ports: u64::from(*config.ports.end()) + 1 - u64::from(*config.ports.start()),
        }
    }

    /// The use of each address by each protocol.
    pub fn shares(&self) -> impl Iterator<Item = PortShare> {
        let places = self.external.iter().flat_map(|address| PROTOCOLS.map(|p| (*address, p)));
        places.enumerate().map(|(place, (address, protocol))| PortShare {
            address,
            protocol,
            in_use: self.gauges.get(place),
            ports: self.ports,
        })
    }

    /// Adds what has changed in a shard since it has published the last time.
    pub(super) fn publish(&self, sets: &PortSets, published: &mut Vec<usize>) {
        for (place, in_use) in sets.in_use() {
            if published.len() <= place {
                published.resize(place + 1, 0);
            }
            let before = std::mem::replace(&mut published[place], in_use);
            if before != in_use {
                self.gauges.add(place, in_use as i64 - before as i64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::nat::mapping::MappingId;
    use crate::function::nat::ports::PortSet;
    use rheostat_base::Time;
    use std::time::Duration;

    #[test]
    fn shares_are_the_sum_over_shards() {
        let config = NatConfig::new(vec![[203, 0, 113, 1].into(), [203, 0, 113, 2].into()]);
        let usage = PortUsage::new(&NatConfig { ports: 1_000..=1_009, ..config });
        let mut shards = [0, 1].map(|_| (PortSets::new(2), Vec::new()));
        for (sets, published) in &mut shards {
            let set = sets.get_or_make(1, 17, || PortSet::new(10, |_| true)).unwrap();
            (0..5).for_each(|rank| set.occupy(rank, MappingId(rank as u32)));
            usage.publish(sets, published);
            let set = sets.get_mut(1, 17).unwrap();
            set.release(2, Time::ZERO, Duration::ZERO, false);
            usage.publish(sets, published);
        }
        let used: Vec<_> = usage.shares().filter(|share| share.in_use > 0).collect();
        let address = [203, 0, 113, 2].into();
        assert_eq!(used, [PortShare { address, protocol: 17, in_use: 8, ports: 10 }]);
        assert_eq!(used[0].per_cent(), 80);
    }
}
