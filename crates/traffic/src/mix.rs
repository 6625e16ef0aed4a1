//! A synthetic internet mix.
//!
//! The proportions are those of the campus trace of RSS++ (Barbette, Katsikas, Maguire, Kostić, CoNEXT '19,
//! section 5): half of the flows have one packet, 80 % fewer than 10, 95 % at most 30, and the rest a
//! power-law tail; a fifth of the packets is smaller than 74 bytes and half of full size. A tenth of
//! the flows is IPv6. Flows of one packet are DNS-like
//! queries without an answer (60 %), pings (15 %), and connection attempts, half of them scans from
//! outside (25 %). Longer ones are TCP connections that open and close as they should, UDP exchanges
//! and streams, and ping sessions.
//!
//! Clients live in 10.0.0.0/8 and fd00::/8, servers elsewhere; both directions are in one stream, unless
//! servers are behind a device that answers ([`MixConfig::clients_only`]).
//!
//! A fixed number of flows is under way at any time: where one ends, another starts. Which flow sends
//! next is decided by a wheel of virtual ticks (constant time whatever the number of flows), where each
//! flow has a rate of its own; when the packet arrives is decided by the rate of all: in an open loop, as a
//! Poisson process.
//!
//! All flows of the start are new ones, so that a firewall that sees the mix from its first packet sees
//! whole connections. Until each has come round once, flows of one packet are fewer than later on.

mod config;
mod flow;
mod wheel;

pub use config::{MixConfig, MixError};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rheostat_base::Time;
use rheostat_packet::LinkType;

use crate::frame::{self, FramePacket};
use crate::poisson::Poisson;
use flow::{FlowSizes, MixFlow};
use rheostat_io::{Arrival, Source};
use wheel::Wheel;

/// The mix as a source of frames.
#[derive(Debug)]
pub struct Mix {
    config: MixConfig,
    rng: SmallRng,
    flows: Vec<MixFlow>,
    wheel: Wheel,
    sizes: FlowSizes,
    /// Numbers flows in the order they start; no two have the same endpoints.
    started: u64,
    sent: u64,
    /// When the next packet arrives.
    arrivals: Poisson,
}

impl Mix {
    /// A mix as `config` describes it; the same for the same seed.
    ///
    /// # Errors
    /// [`MixError`] for a configuration that makes no sense.
    pub fn new(config: MixConfig) -> Result<Mix, MixError> {
        config.check()?;
        let mut rng = SmallRng::seed_from_u64(config.seed);
        let mut wheel = Wheel::new(config.flows);
        let mut flows = Vec::with_capacity(config.flows as usize);
        for index in 0..config.flows {
            flows.push(MixFlow::start(u64::from(index), &config, wheel.span(), &mut rng));
            wheel.schedule(index, rng.random_range(1..=wheel.span()));
        }
        let started = u64::from(config.flows);
        let sizes = FlowSizes::default();
        let arrivals = Poisson::new(config.packets_per_second as f64);
        Ok(Mix { config, rng, flows, wheel, sizes, started, sent: 0, arrivals })
    }

    /// Flows started so far.
    pub fn flows_started(&self) -> u64 {
        self.started
    }

    /// The next packet of the flow that is due next.
    fn next_packet(&mut self) -> FramePacket {
        let index = self.wheel.next();
        let flow = &mut self.flows[index as usize];
        let packet = flow.next_packet(self.config.clients_only, &mut self.sizes, &mut self.rng);
        if flow.is_over() {
            *flow = MixFlow::start(self.started, &self.config, self.wheel.span(), &mut self.rng);
            self.started += 1;
        }
        let pause = flow.pause(&mut self.rng);
        self.wheel.schedule(index, pause);
        packet
    }
}

impl Source for Mix {
    fn next(&mut self, frame: &mut Vec<u8>) -> Option<Arrival> {
        let time = self.arrivals.now();
        let ended = self.config.packets.is_some_and(|packets| self.sent >= packets)
            || self.config.duration.is_some_and(|length| time >= Time::ZERO + length);
        if ended {
            return None;
        }
        let mut packet = self.next_packet();
        while self.config.clients_only && !packet.from_client {
            packet = self.next_packet();
        }
        frame::write(&packet, frame);
        self.sizes.count(frame.len());
        self.sent += 1;
        self.arrivals.pass(&mut self.rng);
        let wire_len = frame.len() as u32;
        Some(Arrival { time, len: frame.len(), wire_len, link: LinkType::Ethernet })
    }

    fn progress(&self) -> Option<f64> {
        let by_packets =
            self.config.packets.map(|packets| self.sent as f64 / packets.max(1) as f64);
        let elapsed = self.arrivals.now().since(Time::ZERO).as_secs_f64();
        let by_time = self.config.duration.map(|length| elapsed / length.as_secs_f64().max(1e-9));
        by_packets.into_iter().chain(by_time).reduce(f64::max).map(|share| share.min(1.0))
    }
}

#[cfg(test)]
mod tests;
