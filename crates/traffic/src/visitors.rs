//! Connections of visitors from outside to one service, and its answers.
//!
//! For functions that stand before a service, such as a load balancer or a NAT with a fixed mapping: every packet is
//! for the service's address, or an answer of it. Each visit is a whole TCP connection of 8 packets, from another host
//! and port.

use std::net::{Ipv4Addr, SocketAddr};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_packet::LinkType;

use crate::SourceError;
use crate::attack::outsider;
use crate::frame::{self, FrameEndpoints};
use crate::poisson::Poisson;
use crate::usual::check_rate;
use crate::visit::{OngoingVisit, Visits};
use rheostat_io::{Arrival, Source};

/// The settings of visitors.
#[derive(Clone, Debug, PartialEq)]
pub struct VisitorsConfig {
    /// Packets per second, of visitors and service together.
    pub packets_per_second: u64,
    /// Visits under way at a time.
    pub at_once: u32,
    /// Where visitors connect to.
    pub target: SocketAddr,
    /// Where answers come from, if it is not the target: the host behind a NAT that has the target's address outside.
    pub server: Option<SocketAddr>,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Default for VisitorsConfig {
    fn default() -> VisitorsConfig {
        VisitorsConfig {
            packets_per_second: 1_000_000,
            at_once: 100,
            target: SocketAddr::from((Ipv4Addr::new(198, 51, 100, 1), 443)),
            server: None,
            seed: 1,
        }
    }
}

/// Visitors as a Poisson process, without an end.
#[derive(Debug)]
pub struct Visitors {
    config: VisitorsConfig,
    rng: SmallRng,
    arrivals: Poisson,
    visits: Visits,
}

impl Visitors {
    /// Visitors as `config` describes them; the same for the same seed.
    ///
    /// # Errors
    /// [`SourceError::Rate`] and [`SourceError::Visits`] when there are no visitors, [`SourceError::Families`] when target and
    /// server are not of the same version of IP.
    pub fn new(config: VisitorsConfig) -> Result<Visitors, SourceError> {
        check_rate(config.packets_per_second)?;
        if config.at_once == 0 {
            return Err(SourceError::Visits);
        }
        if let Some(server) = config.server
            && server.is_ipv4() != config.target.is_ipv4()
        {
            return Err(SourceError::Families { target: config.target, server });
        }
        let rng = SmallRng::seed_from_u64(config.seed);
        let arrivals = Poisson::new(config.packets_per_second as f64);
        let visits = Visits::new(config.at_once);
        Ok(Visitors { config, rng, arrivals, visits })
    }
}

impl Source for Visitors {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (target, server) = (self.config.target, self.config.server);
        let mut packet = self.visits.next_packet(&mut self.rng, |rng| {
            let visitor =
                (outsider::draw(target.is_ipv6(), rng), rng.random_range(1_024..=u16::MAX));
            OngoingVisit::new(visitor, target, false)
        });
        if let Some(server) = server.filter(|_| packet.from_client) {
            let visitor = packet.endpoints.reversed().source();
            packet.endpoints = FrameEndpoints::between((server.ip(), server.port()), visitor);
        }
        frame::write(&packet, frame);
        self.arrivals.pass(&mut self.rng);
        let wire_len = frame.len() as u32;
        let time = self.arrivals.now();
        Some(Arrival { time, len: frame.len(), wire_len, link: LinkType::Ethernet })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::IpAddr;

    use rheostat_packet::{Headers, Tuple};

    use super::*;

    /// Source and destination of the first packets of these visitors.
    fn ends(config: VisitorsConfig, packets: usize) -> Vec<[(IpAddr, u16); 2]> {
        let mut visitors = Visitors::new(config).unwrap();
        let mut frame = Vec::new();
        let mut next = || {
            let arrival = visitors.next(&mut frame).unwrap();
            let headers = Headers::parse_bytes(&frame, frame.len(), arrival.link).unwrap();
            let Tuple::Flow(key) = Tuple::of_bytes(&frame, &headers) else { panic!("a flow") };
            [(key.first(), key.first_port()), (key.second(), key.second_port())]
        };
        (0..packets).map(|_| next()).collect()
    }

    #[test]
    fn every_packet_is_for_the_target_or_an_answer_of_the_server() {
        for (target, server) in
            [("203.0.113.1:8080", "10.0.0.5:80"), ("[2001:db8::1]:80", "[fd00::5]:80")]
        {
            let (target, server): (SocketAddr, SocketAddr) =
                (target.parse().unwrap(), server.parse().unwrap());
            let config = VisitorsConfig {
                target,
                server: Some(server),
                at_once: 10,
                ..VisitorsConfig::default()
            };
            let packets = ends(config, 8_000);
            let asks = packets.iter().filter(|ends| ends[1] == (target.ip(), target.port()));
            let hosts: HashSet<_> = asks.clone().map(|ends| ends[0]).collect();
            let answers = packets.iter().filter(|ends| ends[0] == (server.ip(), server.port()));
            assert_eq!(asks.count() + answers.clone().count(), 8_000);
            // Three of the eight packets of a visit.
            assert!(answers.clone().count().abs_diff(3_000) < 50, "{}", answers.count());
            assert!(hosts.len() > 900, "{} visits of 1,000", hosts.len());
            assert!(answers.map(|ends| ends[1]).all(|visitor| hosts.contains(&visitor)));
        }
    }

    #[test]
    fn a_service_answers_itself_where_no_server_is_named() {
        let target = VisitorsConfig::default().target;
        let of_target = |end: (IpAddr, u16)| end == (target.ip(), target.port());
        let packets = ends(VisitorsConfig { at_once: 5, ..VisitorsConfig::default() }, 400);
        assert!(packets.iter().all(|ends| of_target(ends[0]) != of_target(ends[1])));
    }

    #[test]
    fn impossible_visitors_are_refused() {
        let error = |config| Visitors::new(config).unwrap_err();
        let usual = VisitorsConfig::default;
        assert_eq!(error(VisitorsConfig { packets_per_second: 0, ..usual() }), SourceError::Rate);
        assert_eq!(error(VisitorsConfig { at_once: 0, ..usual() }), SourceError::Visits);
        let server = "[fd00::5]:80".parse().unwrap();
        let mixed = error(VisitorsConfig { server: Some(server), ..usual() });
        assert_eq!(
            mixed.to_string(),
            "visitors of 198.51.100.1:443 cannot be answered from [fd00::5]:80: give both in one version of IP"
        );
    }
}
