//! One run of servers and queues.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};

use super::super::ledger::Ledger;
use super::super::machine::{CorePlacement, SimMachine, Size};
use super::super::packet::SimPacket;
use super::super::pauses::Pauses;
use super::super::work::SimWork;
use super::placing::QueueSystem;
use super::service::{MEAN_NS, Service};

/// Packets that a queue holds: more than ever wait, so that none is dropped.
const ENDLESS: usize = 1 << 24;

/// What is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) system: QueueSystem,
    pub(crate) service: Service,
    pub(crate) servers: u16,
    /// Below 1.
    pub(crate) load: f64,
    /// Packets that a server takes at once, and lets go together.
    pub(crate) burst: usize,
    /// Packets that do not count, of all servers.
    pub(crate) warm_up: u64,
    /// Packets that count.
    pub(crate) packets: u64,
}

/// What packets of a run took, in mean service times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sojourn {
    /// The mean from arrival to the begin of service.
    pub(crate) wait: f64,
    /// The 99th percentile from arrival to departure, to three significant digits.
    pub(crate) p99: f64,
}

impl Trial {
    /// Runs it with the random numbers of `seed`. The arrivals do not depend on the system.
    pub(crate) fn run(&self, seed: u64) -> Sojourn {
        let mut random = SmallRng::seed_from_u64(seed);
        let size = Size { burst: self.burst, ..Size::of(self.servers, 1, ENDLESS) };
        let between = MEAN_NS / (self.load * f64::from(self.servers));
        let start = (self.warm_up as f64 * between) as u64;
        let ledger = Ledger::new(start..u64::MAX);
        let placement = CorePlacement::Dispatch(Box::new(self.system));
        let mut machine =
            SimMachine::new(size, self.service, placement, |_| Pauses::none(), ledger);
        let (mut now, mut service) = (0.0, 0);
        for _ in 0..self.warm_up + self.packets {
            let gap: f64 = Exp1.sample(&mut random);
            now += gap * between;
            let (at, hash, luck) = (now as u64, random.random(), random.random());
            let packet =
                SimPacket { at, flow: 0, hash, luck, bytes: 0, checksum: 0, connection: false };
            machine.advance(at);
            machine.arrive(&packet, at);
            if at >= start {
                service += self.service.packet(luck, 0);
            }
        }
        machine.run_dry(now as u64, 1_000_000_000, u64::MAX / 2);
        let ledger = &machine.ledger;
        assert_eq!(
            (ledger.lost(), ledger.dropped, ledger.duplicated),
            (0, 0, 0),
            "each leaves once"
        );
        let waited = (ledger.waited_ns - service) as f64;
        // The histogram's answer is the upper end of a bin.
        let p99 = ledger.latency.median_equivalent(ledger.latency.value_at_quantile(0.99));
        Sojourn {
            wait: waited / ledger.delivered.max(1) as f64 / MEAN_NS,
            p99: p99 as f64 / MEAN_NS,
        }
    }
}
