//! Where requests come from.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Exp1};

use super::workload::Workload;

/// A request that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestArrival {
    /// When, in picoseconds.
    pub(super) at: u64,
    /// What the application takes for it, in picoseconds.
    pub(super) service: u64,
    pub(super) connection: u32,
    /// Of the long class of a bimodal distribution.
    pub(super) is_long: bool,
}

/// An open loop: requests arrive at random (Poisson), on connections picked at random, whatever the service does.
#[derive(Debug)]
pub(super) struct RequestSource {
    random: SmallRng,
    workload: Workload,
    /// Picoseconds between requests, on average.
    between: f64,
    connections: u32,
    next: RequestArrival,
}

impl RequestSource {
    /// Requests at `rate` per second. What comes depends on nothing else, in particular not on the scheduler.
    pub(super) fn new(workload: Workload, rate: f64, connections: u32, seed: u64) -> RequestSource {
        let random = SmallRng::seed_from_u64(seed);
        let next = RequestArrival { at: 0, service: 0, connection: 0, is_long: false };
        let connections = connections.max(1);
        let mut source =
            RequestSource { random, workload, between: 1e12 / rate, connections, next };
        source.draw();
        source
    }

    /// When the next request arrives.
    pub(super) fn next_at(&self) -> u64 {
        self.next.at
    }

    /// The next request.
    pub(super) fn take(&mut self) -> RequestArrival {
        let arrival = self.next;
        self.draw();
        arrival
    }

    fn draw(&mut self) {
        let gap: f64 = Exp1.sample(&mut self.random);
        let luck: u64 = self.random.random();
        // The upper half picks the connection, the lower one the class.
        let connection = ((luck >> 32) * u64::from(self.connections)) >> 32;
        let (service, is_long) = self.workload.draw(luck as u32, &mut self.random);
        let at = self.next.at + (gap * self.between) as u64;
        self.next = RequestArrival { at, service, connection: connection as u32, is_long };
    }
}
