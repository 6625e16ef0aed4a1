//! Exchanges of datagrams that are unequal and go on for ever, as measurements of Dyssect have them (thesis, 5.2): flows by Zipf's
//! law, packets of one size, alone or several of a flow in a row, and among them a few packets of signalling.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution as _, Zipf};
use rheostat_packet::LinkType;

use crate::SourceError;
use crate::frame::{self, FrameEndpoints, FramePacket, FrameTransport};
use crate::poisson::Poisson;
use crate::usual::{NUMBERS, check_rate, check_share};
use rheostat_io::{Arrival, Source};

/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;
/// The server's port of all exchanges but signalling.
const PORT: u16 = 443;
/// Exchanges of signalling.
const SIGNALLING_FLOWS: u64 = 64;

/// The settings of exchanges.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangesConfig {
    /// Packets per second, signalling included.
    pub packets_per_second: u64,
    /// Flows, up to 10 million, without signalling.
    pub flows: u32,
    /// The exponent of Zipf's law; 0 draws all flows evenly.
    pub zipf: f64,
    /// Packets of a flow that arrive together, at least 1.
    pub burst: u32,
    /// Bytes of each frame, from 60 to 1,514.
    pub size: usize,
    /// The share of the packets that belongs to signalling; 0 for none.
    pub signalling: f64,
    /// The seed of all random choices.
    pub seed: u64,
}

impl ExchangesConfig {
    /// The server's port of signalling (RFC 3261 names it for SIP).
    pub const SIGNALLING_PORT: u16 = 5_060;
}

impl Default for ExchangesConfig {
    fn default() -> ExchangesConfig {
        ExchangesConfig {
            packets_per_second: 1_000_000,
            flows: 10_000,
            zipf: 1.0,
            burst: 1,
            size: 128,
            signalling: 0.0,
            seed: 1,
        }
    }
}

/// Exchanges of datagrams over IPv4, bursts of which are a Poisson process. Ends of an exchange take turns, the client first.
/// 1 byte per flow.
#[derive(Debug)]
pub struct Exchanges {
    config: ExchangesConfig,
    rng: SmallRng,
    arrivals: Poisson,
    popularity: Option<Zipf<f64>>,
    /// Which flow is the most popular.
    first: u32,
    /// By flow, signalling last: whether the server is next.
    answers: Vec<bool>,
    /// The flow that arrives, and how many packets of it are still to come.
    burst: (u64, u32),
}

impl Exchanges {
    /// Exchanges as `config` describes them; the same for the same seed.
    ///
    /// # Errors
    /// [`SourceError`] for a configuration that makes no sense.
    pub fn new(config: ExchangesConfig) -> Result<Exchanges, SourceError> {
        check_rate(config.packets_per_second)?;
        if !(1..=10_000_000).contains(&config.flows) {
            return Err(SourceError::Flows(config.flows));
        }
        if !(60..=1_514).contains(&config.size) {
            return Err(SourceError::Size(config.size));
        }
        if config.burst == 0 {
            return Err(SourceError::Burst);
        }
        if config.signalling != 0.0 {
            check_share("signalling", config.signalling)?;
        }
        let popularity = match config.zipf {
            0.0 => None,
            zipf => Some(
                Zipf::new(f64::from(config.flows), zipf)
                    .ok()
                    .filter(|_| zipf.is_finite() && zipf > 0.0)
                    .ok_or(SourceError::Exponent(zipf))?,
            ),
        };
        let mut rng = SmallRng::seed_from_u64(config.seed);
        let arrivals = Poisson::new(config.packets_per_second as f64 / f64::from(config.burst));
        let first = rng.random_range(0..config.flows);
        let answers = vec![false; config.flows as usize + SIGNALLING_FLOWS as usize];
        Ok(Exchanges { config, rng, arrivals, popularity, first, answers, burst: (0, 0) })
    }

    /// The flow that arrives next.
    fn pick(&mut self) -> u64 {
        let Exchanges { config, rng, popularity, first, .. } = self;
        let flows = u64::from(config.flows);
        if config.signalling > 0.0 && rng.random_bool(config.signalling) {
            return flows + rng.random_range(0..SIGNALLING_FLOWS);
        }
        match popularity {
            None => rng.random_range(0..flows),
            // A prime above all numbers of flows: popular ones are not neighbours.
            Some(zipf) => {
                let rank = zipf.sample(rng) as u64 - 1;
                (rank * 4_294_967_291 + u64::from(*first)) % flows
            }
        }
    }
}

impl Source for Exchanges {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        if self.burst.1 == 0 {
            self.burst = (self.pick(), self.config.burst);
            self.arrivals.pass(&mut self.rng);
        }
        self.burst.1 -= 1;
        let flow = self.burst.0;
        let (number, port) = match flow.checked_sub(self.config.flows.into()) {
            Some(signalling) => (NUMBERS + signalling, ExchangesConfig::SIGNALLING_PORT),
            None => (flow, PORT),
        };
        let answers = &mut self.answers[flow as usize];
        let from_client = !std::mem::replace(answers, !*answers);
        let endpoints = FrameEndpoints::of_flow(number, false, port);
        let packet = FramePacket {
            endpoints: if from_client { endpoints } else { endpoints.reversed() },
            from_client,
            transport: FrameTransport::Udp,
            payload: self.config.size - HEADERS,
        };
        frame::write(&packet, frame);
        let (time, wire_len) = (self.arrivals.now(), frame.len() as u32);
        Some(Arrival { time, len: frame.len(), wire_len, link: LinkType::Ethernet })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::net::Ipv4Addr;

    use rheostat_packet::FlowKey;

    use super::*;

    /// The frames of so many packets.
    fn frames(config: &ExchangesConfig, count: usize) -> Vec<(Arrival, Vec<u8>)> {
        let mut source = Exchanges::new(config.clone()).expect("sound");
        let mut next = || {
            let mut frame = Vec::new();
            source.next(&mut frame).map(|arrival| (arrival, frame))
        };
        (0..count).map(|_| next().expect("it never ends")).collect()
    }

    /// The two addresses with their ports, the client's first.
    fn ends(frame: &[u8]) -> (bool, FlowKey) {
        let address =
            |at: usize| Ipv4Addr::from_octets(*frame[at..].first_chunk().expect("an address"));
        let port = |at: usize| u16::from_be_bytes(*frame[at..].first_chunk().expect("a port"));
        let (from, to) = ((address(26), port(34)), (address(30), port(36)));
        let from_client = from.0.octets()[0] == 10;
        let (client, server) = if from_client { (from, to) } else { (to, from) };
        (from_client, FlowKey::v4(client, server, 17, 0))
    }

    #[test]
    fn flows_have_the_shares_of_zipfs_law_and_their_ends_take_turns() {
        let config = ExchangesConfig { flows: 100, zipf: 1.0, ..ExchangesConfig::default() };
        let mut counts: HashMap<FlowKey, u32> = HashMap::new();
        for (arrival, frame) in frames(&config, 20_000) {
            assert_eq!((arrival.len, frame.len()), (128, 128));
            let (from_client, key) = ends(&frame);
            let count = counts.entry(key).or_default();
            assert_eq!(from_client, count.is_multiple_of(2), "ends take turns");
            *count += 1;
        }
        let mut counts: Vec<u32> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // 1 ÷ (1 + 1/2 + … + 1/100) of 20,000, and half of it.
        assert!(counts[0].abs_diff(3_855) < 250 && counts[1].abs_diff(1_928) < 200, "{counts:?}");
        assert_eq!(counts.len(), 100);
    }

    #[test]
    fn bursts_are_of_one_flow_and_arrive_together_at_the_rate_asked_for() {
        let config = ExchangesConfig { burst: 4, zipf: 0.0, ..ExchangesConfig::default() };
        let frames = frames(&config, 40_000);
        for burst in frames.chunks(4) {
            let (time, key) = (burst[0].0.time, ends(&burst[0].1).1);
            assert!(
                burst.iter().all(|(arrival, frame)| arrival.time == time && ends(frame).1 == key)
            );
        }
        let last = frames.last().expect("packets").0.time.as_nanos() as f64;
        assert!((last / 40e6 - 1.0).abs() < 0.05, "a million packets per second: {last}");
    }

    #[test]
    fn signalling_has_its_share_and_its_port() {
        let config = ExchangesConfig { signalling: 0.05, ..ExchangesConfig::default() };
        let ports =
            frames(&config, 20_000).into_iter().map(|(_, frame)| ends(&frame).1.second_port());
        let of: Vec<u16> = ports.collect();
        let count = of.iter().filter(|port| **port == ExchangesConfig::SIGNALLING_PORT).count();
        assert!(count.abs_diff(1_000) < 150, "{count}");
        assert!(of.iter().all(|port| [PORT, ExchangesConfig::SIGNALLING_PORT].contains(port)));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = |config: ExchangesConfig| Exchanges::new(config).expect_err("refused");
        let usual = ExchangesConfig::default;
        assert_eq!(refused(ExchangesConfig { flows: 0, ..usual() }), SourceError::Flows(0));
        assert_eq!(refused(ExchangesConfig { size: 59, ..usual() }), SourceError::Size(59));
        assert_eq!(refused(ExchangesConfig { burst: 0, ..usual() }), SourceError::Burst);
        assert_eq!(refused(ExchangesConfig { zipf: -1.0, ..usual() }), SourceError::Exponent(-1.0));
        let share = SourceError::Share { what: "signalling", value: 1.0 };
        assert_eq!(refused(ExchangesConfig { signalling: 1.0, ..usual() }), share);
    }
}
