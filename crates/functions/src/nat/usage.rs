//! How many ports of each external address are in use, for the metrics of a run.
//!
//! With endpoint-independent mapping, shards add up the ports in use. With address- and port-dependent mapping a
//! port serves one flow to each remote endpoint, so there is a number for each of them, and a flow is refused when
//! its shard has no port left towards its own. What is watched is therefore the largest share of a shard's ports
//! towards one remote endpoint. It is known for those remote endpoints that a shard keeps sets of ports for (see
//! [`crowd`](super::crowd)): so many flows go there that ports tried at random were all taken.
#![expect(
    clippy::disallowed_types,
    reason = "held before the first packet, and by readers: shards have gauges"
)]

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_nf::registry::{PortShare, PortShares};
use rheostat_state::Gauges;

use super::config::{Mapping, NatConfig};
use super::crowd::{Crowds, Fullest};
use super::flow::Endpoint;
use super::ports::{PROTOCOLS, PortSets};

/// The ports in use in all shards. It lags behind by half a second at most.
#[derive(Clone, Debug)]
pub struct PortUsage {
    external: Arc<[Ipv4Addr]>,
    ports: u64,
    watched: Watched,
}

#[derive(Clone, Debug)]
enum Watched {
    /// The sum of all shards, by address and protocol.
    Sum(Gauges),
    /// For each shard the fullest remote endpoint, two values by address and protocol: see [`pack`].
    Fullest(Arc<Mutex<Vec<Gauges>>>),
}

impl PortUsage {
    /// That of a NAT with these settings, which has no flows yet.
    pub fn new(config: &NatConfig) -> PortUsage {
        let places = config.external.len() * PROTOCOLS.len();
        PortUsage {
            external: config.external.as_slice().into(),
            ports: u64::from(*config.ports.end()) + 1 - u64::from(*config.ports.start()),
            watched: match config.mapping {
                Mapping::EndpointIndependent => Watched::Sum(Gauges::new(places)),
                Mapping::AddressAndPortDependent => Watched::Fullest(Arc::default()),
            },
        }
    }

    /// The use of each address by each protocol.
    pub fn shares(&self) -> Vec<PortShare> {
        let places = self.external.iter().flat_map(|address| PROTOCOLS.map(|p| (*address, p)));
        let share = |(place, (address, protocol))| match &self.watched {
            Watched::Sum(gauges) => {
                let (in_use, ports) = (gauges.get(place), self.ports);
                PortShare { address, protocol, remote: None, in_use, ports }
            }
            Watched::Fullest(shards) => {
                let none =
                    PortShare { address, protocol, remote: None, in_use: 0, ports: self.ports };
                let shares = locked(shards);
                let shares = shares.iter().filter_map(|gauges| {
                    let packed = [gauges.get(2 * place), gauges.get(2 * place + 1)];
                    let Fullest { remote, in_use, ports } = unpack(packed)?;
                    let (in_use, ports) = (in_use as u64, ports as u64);
                    Some(PortShare { remote: Some(remote), in_use, ports, ..none })
                });
                shares.max_by_key(per_mille).unwrap_or(none)
            }
        };
        places.enumerate().map(share).collect()
    }

    /// The end for one more shard; before the first packet.
    pub(super) fn open(&self) -> UsageEnd {
        match &self.watched {
            Watched::Sum(gauges) => UsageEnd::Sum { gauges: gauges.clone(), published: Vec::new() },
            Watched::Fullest(shards) => {
                let gauges = Gauges::new(self.external.len() * PROTOCOLS.len() * 2);
                locked(shards).push(gauges.clone());
                UsageEnd::Fullest { gauges, external: self.external.clone() }
            }
        }
    }
}

impl PortShares for PortUsage {
    fn shares(&self) -> Vec<PortShare> {
        PortUsage::shares(self)
    }
}

fn per_mille(share: &PortShare) -> u64 {
    share.in_use * 1_000 / share.ports.max(1)
}

/// Where a shard publishes the ports that it has in use.
#[derive(Clone, Debug)]
pub(super) enum UsageEnd {
    /// What has changed is added to the sum.
    Sum {
        gauges: Gauges,
        /// The ports in use that were published last, by set.
        published: Vec<usize>,
    },
    /// The shard's own values.
    Fullest { gauges: Gauges, external: Arc<[Ipv4Addr]> },
}

impl UsageEnd {
    /// Publishes the ports in use now.
    pub(super) fn publish(&mut self, sets: &PortSets, crowds: &Crowds) {
        match self {
            UsageEnd::Sum { gauges, published } => {
                for (place, in_use) in sets.in_use() {
                    if published.len() <= place {
                        published.resize(place + 1, 0);
                    }
                    let before = std::mem::replace(&mut published[place], in_use);
                    if before != in_use {
                        gauges.add(place, in_use as i64 - before as i64);
                    }
                }
            }
            UsageEnd::Fullest { gauges, external } => {
                let fullest = crowds.fullest();
                let places = external.iter().flat_map(|address| PROTOCOLS.map(|p| (*address, p)));
                for (place, way) in places.enumerate() {
                    let [first, second] = fullest.get(&way).map_or([0, 0], pack);
                    gauges.set(2 * place, first);
                    gauges.set(2 * place + 1, second);
                }
            }
        }
    }
}

/// The remote endpoint with the ports in use, and the ports there are. A reader may see the first of one moment
/// with the second of another, which differ little if at all: classes of ports are of about the same size.
fn pack(fullest: &Fullest) -> [u64; 2] {
    let Fullest { remote: (address, port), in_use, ports } = *fullest;
    let in_use = in_use.min(usize::from(u16::MAX)) as u64;
    [u64::from(address.to_bits()) << 32 | u64::from(port) << 16 | in_use, ports as u64]
}

fn unpack([first, ports]: [u64; 2]) -> Option<Fullest> {
    let remote: Endpoint = (Ipv4Addr::from_bits((first >> 32) as u32), (first >> 16) as u16);
    let in_use = usize::from(first as u16).min(ports as usize);
    (in_use > 0).then_some(Fullest { remote, in_use, ports: ports as usize })
}

fn locked(shards: &Mutex<Vec<Gauges>>) -> MutexGuard<'_, Vec<Gauges>> {
    // Gauges are only added: a panic cannot leave them half changed.
    shards.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nat::crowd::{Crowd, Holding, Way};
    use crate::nat::mapping::MappingId;
    use crate::nat::ports::PortSet;
    use rheostat_base::Time;
    use std::time::Duration;

    #[test]
    fn shares_are_the_sum_over_shards() {
        let config = NatConfig::new(vec![[203, 0, 113, 1].into(), [203, 0, 113, 2].into()]);
        let usage = PortUsage::new(&NatConfig { ports: 1_000..=1_009, ..config });
        let mut shards = [0, 1].map(|_| (PortSets::new(2), usage.open()));
        for (sets, end) in &mut shards {
            sets.get_or_make(1, 17, || PortSet::new(10, |_| true)).unwrap();
            (0..5).for_each(|rank| sets.occupy(1, 17, rank, MappingId(rank as u32)));
            end.publish(sets, &Crowds::default());
            sets.release((1, 17), 2, Time::ZERO, Duration::ZERO);
            end.publish(sets, &Crowds::default());
        }
        let used: Vec<_> = usage.shares().into_iter().filter(|share| share.in_use > 0).collect();
        let address = [203, 0, 113, 2].into();
        let share = PortShare { address, protocol: 17, remote: None, in_use: 8, ports: 10 };
        assert_eq!(used, [share]);
        assert_eq!(used[0].per_cent(), 80);
    }

    #[test]
    fn the_most_crowded_remote_endpoint_of_any_shard_is_reported() {
        let external = Ipv4Addr::new(203, 0, 113, 1);
        let mapping = Mapping::AddressAndPortDependent;
        let config = NatConfig { mapping, ..NatConfig::new(vec![external]) };
        let usage = PortUsage::new(&config);
        let (sets, mut ends) = (PortSets::new(1), [usage.open(), usage.open()]);
        let remote = |last| (Ipv4Addr::new(198, 51, 100, last), 443);
        // Of 20 ports, those below `kept` have open flows, and the next five closed ones.
        let crowd = |kept| {
            Crowd::new(20, 5, 20, |rank| match rank {
                rank if rank < kept => Some(Holding::Kept),
                rank if rank < kept + 5 => Some(Holding::Spent),
                _ => None,
            })
        };
        let mut crowds = [Crowds::default(), Crowds::default()];
        crowds[0].insert(Way::new(external, remote(1), 6, 0), crowd(9));
        crowds[1].insert(Way::new(external, remote(2), 6, 0), crowd(14));
        crowds[1].insert(Way::new(external, remote(3), 6, 0), crowd(11));
        for (end, crowds) in ends.iter_mut().zip(&crowds) {
            end.publish(&sets, crowds);
        }
        let used = || usage.shares().into_iter().filter(|share| share.in_use > 0);
        let share = PortShare {
            address: external,
            protocol: 6,
            remote: Some(remote(2)),
            in_use: 14,
            ports: 20,
        };
        assert_eq!(used().collect::<Vec<_>>(), [share]);
        ends.iter_mut().for_each(|end| end.publish(&sets, &Crowds::default()));
        assert_eq!(used().count(), 0, "crowds that are none any more");
    }
}
