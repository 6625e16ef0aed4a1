//! Traffic that means harm, over the usual.
//!
//! Attackers are outside, what they attack is inside (10.0.0.0/8 or fd00::/8, where the mix has its clients).

mod config;
pub(crate) mod outsider;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_packet::LinkType;

pub use config::{AttackConfig, AttackKind};

use crate::SourceError;
use crate::frame::{self, FrameEndpoints, FramePacket, FrameTransport, Tcp};
use crate::merged::Merged;
use crate::poisson::Poisson;
use crate::visit::{OngoingVisit, Visits};
use rheostat_io::{Arrival, Source};

/// Hosts that an attack on a service comes from, each with four connections at a time, on average.
const BOTS: usize = 256;
/// Ports that a scan tries.
const SCANNED: [u16; 8] = [22, 23, 80, 443, 445, 3_389, 8_080, 8_443];

/// The mix and an attack, each a Poisson process.
pub struct Attack(Merged<Box<dyn Source>>);

impl Attack {
    /// An attack as `config` describes it; the same for the same seed.
    ///
    /// # Errors
    /// [`SourceError`] for a configuration that makes no sense.
    pub fn new(config: &AttackConfig) -> Result<Attack, SourceError> {
        config.check()?;
        let rate = config.packets_per_second as f64;
        let mix = config.usual.mix(rate * (1.0 - config.share), config.seed)?;
        let mut rng = SmallRng::seed_from_u64(!config.seed);
        let mut arrivals = Poisson::new(rate * config.share);
        arrivals.pass(&mut rng);
        let ipv6 = config.target.is_ipv6();
        let bots = match config.kind {
            AttackKind::Service => (0..BOTS).map(|_| outsider::draw(ipv6, &mut rng)).collect(),
            _ => Vec::new(),
        };
        let (kind, target) = (config.kind, config.target);
        let visits = Visits::new(4 * BOTS as u32);
        let attackers = Attackers { rng, arrivals, kind, target, sent: 0, bots, visits };
        Ok(Attack(Merged::new([Box::new(mix) as Box<dyn Source>, Box::new(attackers)])))
    }
}

impl Source for Attack {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        self.0.next(frame)
    }
}

struct Attackers {
    rng: SmallRng,
    arrivals: Poisson,
    kind: AttackKind,
    target: SocketAddr,
    sent: u64,
    bots: Vec<IpAddr>,
    visits: Visits,
}

impl Attackers {
    fn next_packet(&mut self) -> FramePacket {
        let (rng, target) = (&mut self.rng, (self.target.ip(), self.target.port()));
        let ipv6 = self.target.is_ipv6();
        match self.kind {
            AttackKind::SynFlood => {
                let from = (outsider::draw(ipv6, rng), rng.random_range(1_024..=u16::MAX));
                inbound(from, target, FrameTransport::Tcp(Tcp::syn(rng.random())), 0)
            }
            AttackKind::UdpFlood => {
                let from = (outsider::draw(ipv6, rng), rng.random_range(1_024..=u16::MAX));
                let to = (target.0, rng.random_range(1..=u16::MAX));
                inbound(from, to, FrameTransport::Udp, rng.random_range(0..=1_400))
            }
            AttackKind::Scan => {
                let (to, from_port) = scanned(target.0, self.sent);
                let from = (outsider::scanner(ipv6), from_port);
                inbound(from, to, FrameTransport::Tcp(Tcp::syn(rng.random())), 0)
            }
            AttackKind::Service => {
                let (bots, service) = (&self.bots, self.target);
                self.visits.next_packet(rng, |rng| {
                    let bot = bots[rng.random_range(0..bots.len())];
                    OngoingVisit::new((bot, rng.random_range(1_024..=u16::MAX)), service, false)
                })
            }
        }
    }
}

fn inbound(
    from: (IpAddr, u16),
    to: (IpAddr, u16),
    transport: FrameTransport,
    payload: usize,
) -> FramePacket {
    FramePacket {
        endpoints: FrameEndpoints::between(from, to),
        from_client: false,
        transport,
        payload,
    }
}

/// Where the packet of this number of a scan goes, and from which port: through the ports, then the hosts of
/// the target's network (the low 16 bits of its address), then again from another port.
fn scanned(target: IpAddr, number: u64) -> ((IpAddr, u16), u16) {
    let (port, host) = (SCANNED[(number % 8) as usize], (number / 8) as u16);
    let address = match target {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & !0xffff | u32::from(host)).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !0xffff | u128::from(host)).into(),
    };
    ((address, port), 40_000 + (number >> 19) as u16 % 20_000)
}

impl Source for Attackers {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let packet = self.next_packet();
        frame::write(&packet, frame);
        let time = self.arrivals.now();
        self.sent += 1;
        self.arrivals.pass(&mut self.rng);
        let wire_len = frame.len() as u32;
        Some(Arrival { time, len: frame.len(), wire_len, link: LinkType::Ethernet })
    }
}
