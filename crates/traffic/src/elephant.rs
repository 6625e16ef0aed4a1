//! One flow that is a great part of the traffic.
//!
//! No way of spreading flows over lanes can split it, so it shows what a policy does with what is left. The
//! elephant is a download over TCP: two full segments from the server, an acknowledgement from the client
//! (RFC 9293, section 3.8.6.3), and so on without end. The mice are the mix.

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rheostat_packet::LinkType;

use crate::SourceError;
use crate::frame::{self, FrameEndpoints, FramePacket, FrameTransport, Tcp};
use crate::merged::Merged;
use crate::poisson::Poisson;
use crate::usual::{NUMBERS, Usual, check_rate, check_share};
use rheostat_io::{Arrival, Source};

/// The settings of an elephant over mice.
#[derive(Clone, Debug, PartialEq)]
pub struct ElephantConfig {
    /// Packets per second, the elephant's included.
    pub packets_per_second: u64,
    /// The elephant's share of the packets.
    pub share: f64,
    /// Whether the elephant uses IPv6.
    pub ipv6: bool,
    /// The mice.
    pub usual: Usual,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Default for ElephantConfig {
    fn default() -> ElephantConfig {
        ElephantConfig {
            packets_per_second: 1_000_000,
            share: 0.2,
            ipv6: false,
            usual: Usual::default(),
            seed: 1,
        }
    }
}

/// An elephant and mice, each a Poisson process.
pub struct Elephant(Merged<Box<dyn Source>>);

impl Elephant {
    /// An elephant as `config` describes it; the same for the same seed.
    ///
    /// # Errors
    /// [`SourceError`] for a configuration that makes no sense.
    pub fn new(config: &ElephantConfig) -> Result<Elephant, SourceError> {
        check_rate(config.packets_per_second)?;
        check_share("share", config.share)?;
        let rate = config.packets_per_second as f64;
        let mice = config.usual.mix(rate * (1.0 - config.share), config.seed)?;
        let mut rng = SmallRng::seed_from_u64(!config.seed);
        let mut arrivals = Poisson::new(rate * config.share);
        arrivals.pass(&mut rng);
        let endpoints = FrameEndpoints::of_flow(NUMBERS, config.ipv6, 443);
        let headers = if config.ipv6 { 74 } else { 54 };
        let segment = 1_514 - headers;
        let download =
            Download { rng, arrivals, endpoints, segment, sent: 0, client: 1, server: 1 };
        Ok(Elephant(Merged::new([Box::new(mice) as Box<dyn Source>, Box::new(download)])))
    }
}

impl Source for Elephant {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        self.0.next(frame)
    }
}

/// The elephant.
struct Download {
    rng: SmallRng,
    arrivals: Poisson,
    /// From the client's side.
    endpoints: FrameEndpoints,
    /// Bytes of a full segment.
    segment: usize,
    sent: u64,
    /// The next sequence numbers of either end.
    client: u32,
    server: u32,
}

impl Source for Download {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let (client, server) = (self.client, self.server);
        let (from_client, tcp, payload) = match self.sent {
            0 => (true, Tcp::syn(client), 0),
            1 => (false, Tcp::syn_ack(server, client), 0),
            sent if sent % 3 == 2 => (true, Tcp::ack(client, server), 0),
            _ => (false, Tcp::ack(server, client), self.segment),
        };
        let counter = if from_client { &mut self.client } else { &mut self.server };
        *counter = counter.wrapping_add(tcp.control_bytes() + payload as u32);
        let endpoints = if from_client { self.endpoints } else { self.endpoints.reversed() };
        let transport = FrameTransport::Tcp(tcp);
        frame::write(&FramePacket { endpoints, from_client, transport, payload }, frame);
        let time = self.arrivals.now();
        self.sent += 1;
        self.arrivals.pass(&mut self.rng);
        let wire_len = frame.len() as u32;
        Some(Arrival { time, len: frame.len(), wire_len, link: LinkType::Ethernet })
    }
}
