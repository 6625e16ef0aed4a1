//! `kind = "sim"`: the simulated NIC, with generated traffic behind it.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_io::{DeviceFacts, Refusal};
use rheostat_traffic::MixConfig;

use super::traffic::TrafficConfig;
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;
use rheostat_settings::reader::convert::choice;
use rheostat_settings::reader::convert::number::{bit_rate, count, duration, packet_rate};

/// A simulated NIC under open-loop load.
#[derive(Clone, Debug, PartialEq)]
pub struct SimConfig {
    /// Packets per second that arrive, whatever becomes of them; `None` where only replies do.
    pub rate: Option<u64>,
    /// Bits per second of the link, each frame with preamble, checksum and gap; what arrives is at
    /// most this.
    pub link: u64,
    /// How packets get into the queues.
    pub driver: Driver,
    /// Descriptors of each receive queue; rounded up to a power of two.
    pub queue: u32,
    /// How long after a packet is sent its reply arrives, from a server that stands behind the device; `None` without one.
    pub replies: Option<Duration>,
    /// The packets that arrive.
    pub traffic: TrafficConfig,
}

/// What takes the place of the hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Driver {
    /// The receiving lane itself: packets are drawn ahead and arrive when they are due, whichever worker polls and however late.
    #[default]
    Pumped,
    /// A thread of its own.
    Threaded,
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Driver::Pumped => "pumped",
            Driver::Threaded => "threaded",
        })
    }
}

impl Default for SimConfig {
    fn default() -> SimConfig {
        SimConfig {
            rate: Some(1_000_000),
            link: 10_000_000_000,
            driver: Driver::Pumped,
            queue: 1_024,
            replies: None,
            traffic: TrafficConfig::default(),
        }
    }
}

impl SimConfig {
    /// The keys that only this kind has.
    pub(super) const KEYS: [&str; 5] = ["rate", "link", "driver", "queue", "traffic"];

    /// Bytes of a descriptor of the simulated NIC.
    pub(super) const DESCRIPTOR: u64 = 64;

    /// Rates that can be set: up to what 400 Gb/s carry in the smallest frames.
    pub(crate) const RATES: RangeInclusive<u64> = 1..=600_000_000;

    /// Delays of replies that can be set. Short ones cost: a worker may sleep so long at most.
    const DELAYS: RangeInclusive<Duration> = Duration::from_micros(1)..=Duration::from_secs(10);

    /// The traffic for a generator, unless only replies arrive; `seed` is the run's, which counts where the traffic has none.
    pub fn mix(&self, seed: u64) -> Option<MixConfig> {
        let traffic = &self.traffic;
        Some(MixConfig {
            flows: traffic.flows,
            packets_per_second: self.rate?,
            clients_only: traffic.clients_only,
            ipv6_share: traffic.ipv6_share,
            zipf: traffic.zipf,
            longest: traffic.longest,
            seed: traffic.seed.unwrap_or(seed),
            packets: traffic.packets,
            duration: None,
        })
    }

    pub(super) fn facts(&self) -> DeviceFacts {
        let own_queues = Refusal {
            key: "replies",
            label: "",
            why: "each reply comes to a queue of one lane",
            help: "",
        };
        DeviceFacts {
            own_queues: self.replies.is_some().then_some(own_queues),
            ring_bytes: u64::from(self.queue) * SimConfig::DESCRIPTOR,
            ..DeviceFacts::PLAYED
        }
    }

    pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> SimConfig {
        let default = SimConfig::default();
        let rate = if table.has("replies") {
            table.read("rate", findings, packet_rate(Self::RATES))
        } else {
            table.require("rate", "rate = \"1Mpps\"", findings, packet_rate(Self::RATES))
        };
        let replies = table.read("replies", findings, duration(Self::DELAYS));
        let link = table.read("link", findings, bit_rate(1_000_000..=1_000_000_000_000));
        let drivers = [("pumped", Driver::Pumped), ("threaded", Driver::Threaded)];
        let driver = table.read("driver", findings, choice(&drivers));
        let queue = table.read("queue", findings, count(32..=32_768));
        let traffic = table.section("traffic", findings, TrafficConfig::read);
        SimConfig {
            rate,
            replies,
            link: link.unwrap_or(default.link),
            driver: driver.unwrap_or(default.driver),
            queue: queue.map_or(default.queue, |queue| queue as u32),
            traffic: traffic.unwrap_or(default.traffic),
        }
    }
}
