//! Packets of three sizes, as testers of routers send them.
//!
//! The "simple IMIX": IP packets of 40, 576 and 1,500 bytes as 7 : 4 : 1. In the notation of RFC 6985
//! (IMIX genome: one letter per packet, repeated in this order; capitals are sizes of one's own) it is
//! `AABAABAABABC` with A = 40, B = 576, C = 1500 bytes of IP. An IPv6 packet of 40 bytes would be nothing but
//! its header: there A is 48.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_packet::LinkType;

use crate::SourceError;
use crate::frame::{self, FrameEndpoints, FramePacket, FrameTransport};
use crate::poisson::Poisson;
use crate::usual::check_rate;
use rheostat_io::{Arrival, Source};

/// Bytes of the IP packets of one round.
const GENOME: [usize; 12] = [40, 40, 576, 40, 40, 576, 40, 40, 576, 40, 576, 1_500];
const UDP_HEADER: usize = 8;

/// The settings of an IMIX.
#[derive(Clone, Debug, PartialEq)]
pub struct ImixConfig {
    /// Packets per second, all flows together.
    pub packets_per_second: u64,
    /// Flows, of which each packet's is drawn evenly; up to 10 million.
    pub flows: u32,
    /// The share of flows that use IPv6.
    pub ipv6_share: f64,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Default for ImixConfig {
    fn default() -> ImixConfig {
        ImixConfig { packets_per_second: 1_000_000, flows: 10_000, ipv6_share: 0.0, seed: 1 }
    }
}

/// An IMIX of UDP flows from inside to outside, as a Poisson process. Sizes do not depend on flows.
#[derive(Debug)]
pub struct Imix {
    config: ImixConfig,
    rng: SmallRng,
    arrivals: Poisson,
    place: usize,
}

impl Imix {
    /// An IMIX as `config` describes it; the same for the same seed.
    ///
    /// # Errors
    /// [`SourceError`] for a configuration that makes no sense.
    pub fn new(config: ImixConfig) -> Result<Imix, SourceError> {
        check_rate(config.packets_per_second)?;
        if !(1..=10_000_000).contains(&config.flows) {
            return Err(SourceError::Flows(config.flows));
        }
        if !(0.0..=1.0).contains(&config.ipv6_share) {
            return Err(SourceError::Ipv6Share(config.ipv6_share));
        }
        let rng = SmallRng::seed_from_u64(config.seed);
        let arrivals = Poisson::new(config.packets_per_second as f64);
        Ok(Imix { config, rng, arrivals, place: 0 })
    }
}

impl Source for Imix {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let flow = self.rng.random_range(0..self.config.flows);
        let ipv6 = f64::from(flow) < f64::from(self.config.flows) * self.config.ipv6_share;
        let headers = UDP_HEADER + if ipv6 { 40 } else { 20 };
        let packet = FramePacket {
            endpoints: FrameEndpoints::of_flow(flow.into(), ipv6, 5_001),
            from_client: true,
            transport: FrameTransport::Udp,
            payload: GENOME[self.place].saturating_sub(headers),
        };
        frame::write(&packet, frame);
        self.place = (self.place + 1) % GENOME.len();
        self.arrivals.pass(&mut self.rng);
        let wire_len = frame.len() as u32;
        let time = self.arrivals.now();
        Some(Arrival { time, len: frame.len(), wire_len, link: LinkType::Ethernet })
    }
}
