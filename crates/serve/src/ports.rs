//! Which ends connections get that this end opens.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rheostat_base::ShardId;
use rheostat_packet::{Family, FlowKey};
use rheostat_state::{FlowHash, FlowHasher};
use rheostat_steer::{KeyEnd, PortClasses, Steering, fewest_ports};

use crate::config::{ListenerConfig, OutgoingConfig};

/// The number of TCP.
const TCP: u8 = 6;
/// Hash keys drawn at most. Of random ones, one in four suits all ports, and one in twelve few ports, if those are two for each
/// shard.
const DRAWS: usize = 1_000;

/// The ports of a service's own connections by the shard that answers lead to.
///
/// A port adds a fixed XOR to the number of the shard, its class. So the ports that bring answers from one peer to one address
/// home to a shard are those of one class, and whether one is free is known where it matters: in that shard, which has all
/// connections with such keys. Lanes share no table of ports in use.
pub(crate) struct Ports {
    steering: Arc<Steering>,
    hasher: FlowHasher,
    config: OutgoingConfig,
    v4: FamilyPorts,
    v6: FamilyPorts,
}

struct FamilyPorts {
    classes: PortClasses,
    /// The ports of each class that may be used.
    usable: Vec<Vec<u16>>,
}

impl Ports {
    /// The ports of `config` under `steering`, but for those that are listened at.
    pub(crate) fn new(
        steering: Arc<Steering>,
        hasher: FlowHasher,
        config: OutgoingConfig,
        listeners: &[ListenerConfig],
    ) -> Ports {
        let family = |family| {
            let classes = PortClasses::of_end(&steering, TCP, family, KeyEnd::Second);
            let is_usable = |port: &u16| config.may_use(*port, listeners);
            let of_class = |class: &Vec<u16>| class.iter().copied().filter(is_usable).collect();
            let usable = classes.members().iter().map(of_class).collect();
            FamilyPorts { classes, usable }
        };
        let (v4, v6) = (family(Family::V4), family(Family::V6));
        Ports { steering, hasher, config, v4, v6 }
    }

    pub(crate) fn config(&self) -> &OutgoingConfig {
        &self.config
    }

    /// How many shards have no port: for the version of IP for which they are most.
    pub(crate) fn shards_without(&self) -> usize {
        let without = |ports: &FamilyPorts| ports.usable.iter().filter(|of| of.is_empty()).count();
        without(&self.v4).max(without(&self.v6))
    }

    /// A key, with its hash, of a connection to `remote` whose answers come to `shard`, and which `is_free` finds nobody has. The
    /// addresses are tried in their order. `turn` grows by one from call to call: with the secret of the hash, it makes for ports
    /// that others cannot guess and that do not soon come again (RFC 6056, 3.3.3).
    ///
    /// At most all ports of a class are looked at per address, which are 1/shards of those there are.
    pub(crate) fn find(
        &self,
        shard: ShardId,
        remote: SocketAddr,
        addresses: impl Iterator<Item = IpAddr>,
        zone: u32,
        turn: usize,
        mut is_free: impl FnMut(&FlowKey, FlowHash) -> bool,
    ) -> Option<(FlowKey, FlowHash)> {
        let family = if remote.is_ipv4() { &self.v4 } else { &self.v6 };
        for address in addresses {
            let Some(start) = key(remote, (address, 0).into(), zone) else { continue };
            let class = family.classes.class_leading_to(shard, &start, &self.steering);
            let usable = &family.usable[class];
            let offset = (self.hasher.hash(&start).0 >> 32) as usize;
            for number in 0..usable.len() {
                let port = usable[offset.wrapping_add(turn).wrapping_add(number) % usable.len()];
                let Some(key) = key(remote, (address, port).into(), zone) else { continue };
                let hash = self.hasher.hash(&key);
                if is_free(&key, hash) {
                    debug_assert_eq!(self.steering.shard_of_key(&key), shard, "answers come home");
                    return Some((key, hash));
                }
            }
        }
        None
    }
}

/// The first steering of those drawn under which each shard has at least half its share of the ports that connections may be opened
/// from. Under one of a thousand random hash keys there are shards without any of 64,512 ports, and of 1,000 ports under one of
/// fifteen. If none of 1,000 is such, the last: [`crate::TcpServer::connecting`] refuses it where it leaves a shard without ports.
///
/// # Errors
/// Those of `draw`.
pub fn steering_for_connecting<E>(
    outgoing: &OutgoingConfig,
    listeners: &[ListenerConfig],
    mut draw: impl FnMut() -> Result<Steering, E>,
) -> Result<Steering, E> {
    for _ in 1..DRAWS {
        let steering = draw()?;
        if suits_connecting(&steering, outgoing, listeners) {
            return Ok(steering);
        }
    }
    draw()
}

fn suits_connecting(
    steering: &Steering,
    outgoing: &OutgoingConfig,
    listeners: &[ListenerConfig],
) -> bool {
    let usable = || outgoing.ports.clone().filter(|port| outgoing.may_use(*port, listeners));
    let half = usable().count() / steering.shards() / 2;
    let fewest = |family| fewest_ports(steering, TCP, family, KeyEnd::Second, usable());
    [Family::V4, Family::V6].into_iter().all(|family| fewest(family) >= half.max(1))
}

/// The key of packets that arrive from `remote`; none where the families differ.
fn key(remote: SocketAddr, local: SocketAddr, zone: u32) -> Option<FlowKey> {
    let (ports, ends) = ((remote.port(), local.port()), (remote.ip(), local.ip()));
    match ends {
        (IpAddr::V4(peer), IpAddr::V4(own)) => {
            Some(FlowKey::v4((peer, ports.0), (own, ports.1), TCP, zone))
        }
        (IpAddr::V6(peer), IpAddr::V6(own)) => {
            Some(FlowKey::v6((peer, ports.0), (own, ports.1), TCP, zone))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use rheostat_steer::{HashKey, Orientation};

    use super::*;

    const SHARDS: u16 = 16;

    fn ports(config: OutgoingConfig) -> Ports {
        let steering =
            Steering::new(&HashKey::MICROSOFT, 16, SHARDS.into(), vec![Orientation::Inside]);
        let listeners = [ListenerConfig::new(8_080)];
        Ports::new(Arc::new(steering.unwrap()), FlowHasher::fixed(), config, &listeners)
    }

    /// How many connections to one end there can be.
    fn exhaust(ports: &Ports, remote: &str, addresses: &[&str]) -> usize {
        let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let mut taken = HashSet::new();
        let mut turn = 0;
        for shard in (0..SHARDS).map(ShardId) {
            loop {
                let addresses = addresses.iter().copied();
                let remote = remote.parse().unwrap();
                let free = |key: &FlowKey, _| !taken.contains(key);
                let Some((key, hash)) = ports.find(shard, remote, addresses, 0, turn, free) else {
                    break;
                };
                assert_eq!(ports.steering.shard_of_key(&key), shard);
                assert_eq!(ports.hasher.hash(&key), hash);
                assert!(taken.insert(key));
                turn += 1;
            }
        }
        assert!(taken.iter().all(|key| key.second_port() != 8_080), "it is listened at");
        taken.len()
    }

    #[test]
    fn every_port_but_those_listened_at_is_used_once_per_address() {
        let ports = ports(OutgoingConfig::default());
        assert_eq!(exhaust(&ports, "192.0.2.1:80", &["10.0.0.1"]), 64_511);
        assert_eq!(exhaust(&ports, "[2001:db8::1]:80", &["fd00::1"]), 64_511);
    }

    #[test]
    fn keys_under_which_shards_have_no_ports_are_told_from_others() {
        let with = |key| Steering::new(&key, 128, 128, vec![Orientation::Inside]).unwrap();
        // The last bits of ports add nothing to the hash: shards have either all ports of a few others, or none.
        let mut bytes = [0; 40];
        bytes[..10].copy_from_slice(&[0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67]);
        let poor = with(HashKey::new(bytes));
        let outgoing = OutgoingConfig::default();
        let config = [ListenerConfig::new(8_080)];
        assert!(!suits_connecting(&poor, &outgoing, &config));
        let ports = Ports::new(Arc::new(poor), FlowHasher::fixed(), outgoing.clone(), &config);
        let own = ["10.0.0.1".parse().unwrap()];
        let peer = "192.0.2.1:80".parse().unwrap();
        let has_port = |shard: &u16| {
            let own = own.iter().copied();
            ports.find(ShardId(*shard), peer, own, 0, 0, |_, _| true).is_some()
        };
        assert!((0..128).filter(has_port).count() < 128);
        assert!(ports.shards_without() > 0);
        assert!(suits_connecting(&with(HashKey::MICROSOFT), &outgoing, &config));
    }

    #[test]
    fn each_shard_has_ports_of_any_range_that_has_two_for_each() {
        let mut rng = StdRng::seed_from_u64(1);
        let listeners = [ListenerConfig::new(20_100)];
        let mut refused = 0;
        for (first, length) in [(20_000, 1_000), (20_001, 256), (65_000, 300), (1_024, 64_512)] {
            let last = (first - 1 + length) as u16;
            let config = OutgoingConfig { ports: first as u16..=last, ..OutgoingConfig::default() };
            let mut draw = || {
                let key = HashKey::new(rng.random());
                Steering::new(&key, 128, 128, vec![Orientation::Inside])
            };
            for _ in 0..20 {
                let mut draws = 0;
                let counted = || {
                    draws += 1;
                    draw()
                };
                let steering = steering_for_connecting(&config, &listeners, counted).unwrap();
                refused += draws - 1;
                let hasher = FlowHasher::fixed();
                let ports = Ports::new(Arc::new(steering), hasher, config.clone(), &listeners);
                assert_eq!(ports.shards_without(), 0);
            }
        }
        assert!(refused > 0);
    }

    #[test]
    fn draws_end_where_there_are_fewer_ports_than_shards() {
        let config = OutgoingConfig { ports: 20_000..=20_099, ..OutgoingConfig::default() };
        let mut draws = 0;
        let draw = || {
            draws += 1;
            Steering::new(&HashKey::MICROSOFT, 128, 128, vec![Orientation::Inside])
        };
        let steering = steering_for_connecting(&config, &[], draw).unwrap();
        assert_eq!(draws, DRAWS);
        let ports = Ports::new(Arc::new(steering), FlowHasher::fixed(), config, &[]);
        assert!(ports.shards_without() >= 28);
    }

    #[test]
    fn further_addresses_have_ports_of_their_own() {
        let config = OutgoingConfig { ports: 40_000..=40_999, ..OutgoingConfig::default() };
        let ports = ports(config);
        assert_eq!(exhaust(&ports, "192.0.2.1:80", &["10.0.0.1"]), 1_000);
        assert_eq!(exhaust(&ports, "192.0.2.1:80", &["10.0.0.1", "fd00::1", "10.0.0.2"]), 2_000);
    }

    #[test]
    fn ports_do_not_come_in_the_order_of_their_numbers_from_the_same_start() {
        let ports = ports(OutgoingConfig::default());
        let first = |remote: &str| {
            let addresses = ["10.0.0.1".parse().unwrap()].into_iter();
            let found =
                ports.find(ShardId(3), remote.parse().unwrap(), addresses, 0, 0, |_, _| true);
            found.unwrap().0.second_port()
        };
        let firsts: HashSet<_> =
            (1..100).map(|host| first(&format!("192.0.2.{host}:80"))).collect();
        assert!(firsts.len() > 90, "starts differ by peer: {}", firsts.len());
    }
}
