//! `kind = "sim"`: the simulated NIC, with generated traffic behind it.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use rheostat_io::{DeviceFacts, Refusal};
use rheostat_traffic::MixConfig;

use super::traffic::TrafficConfig;
use rheostat_settings::declared::kind::{bit_rate, choice, count, duration, packet_rate};
use rheostat_settings::declared::{DeclaredSettings, Setting};
use rheostat_settings::findings::Findings;
use rheostat_settings::reader::Table;

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

    /// The keys of its table.
    pub(super) fn keys() -> Vec<Setting> {
        let traffic =
            Setting::table("traffic", "The packets that arrive.", TrafficConfig::declarations());
        Keys::new().settings().into_iter().chain([traffic]).collect()
    }

    pub(super) fn read(table: &mut Table<'_>, findings: &mut Findings) -> SimConfig {
        let keys = Keys::new();
        // Where replies arrive, nothing else has to.
        let rate = match table.has("replies") {
            true => keys.rate.read_given(table, findings),
            false => keys.rate.read(table, findings),
        };
        let replies = keys.replies.read(table, findings);
        let link = keys.link.read_or_default(table, findings);
        let driver = keys.driver.read_or_default(table, findings);
        let queue = keys.queue.read_or_default(table, findings);
        let traffic = table.section("traffic", findings, TrafficConfig::read).flatten();
        SimConfig { rate, replies, link, driver, queue, traffic: traffic.unwrap_or_default() }
    }
}

rheostat_settings::keys! {
    struct Keys {
        /// Packets per second that arrive, whatever becomes of them. It may be left out beside `replies`, where only replies arrive then.
        rate: u64 = packet_rate(SimConfig::RATES), required("rate = \"1Mpps\"");
        /// How long after a packet is sent its reply arrives, from a server that stands behind the device; no replies without it.
        replies: Duration = duration(SimConfig::DELAYS), example("\"1ms\"");
        /// Bits per second of the link, each frame with preamble, checksum and gap; at most so much arrives.
        link: u64 = bit_rate(1_000_000..=1_000_000_000_000), default(SimConfig::default().link);
        /// How packets get into the queues: pumped (by the receiving lane, when they are due) or threaded (by a thread of its own).
        driver: Driver = choice([("pumped", Driver::Pumped), ("threaded", Driver::Threaded)]), default(SimConfig::default().driver);
        /// Descriptors of each receive queue; rounded up to a power of two.
        queue: u32 = count(32..=32_768), default(SimConfig::default().queue);
    }
}
