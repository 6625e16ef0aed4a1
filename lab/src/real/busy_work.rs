//! Work that takes the same time for every packet, at home or away.

use std::hint::black_box;
use std::time::Duration;

use rheostat_base::{Clock, ClockSource, Time};
use rheostat_packet::FlowKey;
use rheostat_run::{
    Batch, DeferredWork, FlowNumber, Metrics, MetricsPart, OffloadedFlows, OffloadingService,
    Output, Service, ServiceSpec, ShardSet,
};
use rheostat_state::{DetachedFlow, FlowHash, Shard};

/// Does so many rounds of arithmetic for every packet that another service has processed (RSS++ 5.4: "generates
/// W pseudo-random numbers for each packet received"); for none that another lane has to process.
pub(crate) struct BusyWork {
    service: Box<dyn Service>,
    rounds: u32,
    number: u64,
}

impl BusyWork {
    pub(crate) fn new(service: Box<dyn Service>, rounds: u32) -> BusyWork {
        BusyWork { service, rounds, number: 1 }
    }

    fn work(&mut self, packets: usize) {
        for _ in 0..packets {
            self.number = black_box(run(self.number, self.rounds));
        }
    }
}

/// Marsaglia's xorshift: each round needs the one before, so no processor does two at once.
pub(crate) fn run(mut number: u64, rounds: u32) -> u64 {
    for _ in 0..rounds {
        number ^= number << 13;
        number ^= number >> 7;
        number ^= number << 17;
    }
    number
}

/// How long a round takes on this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTime {
    nanos: f64,
}

impl RoundTime {
    /// The quickest of some attempts: the others were interrupted.
    pub(crate) fn measure() -> RoundTime {
        const ROUNDS: u32 = 200_000;
        let clock = Clock::new();
        let attempt = |_| {
            let start = clock.now();
            black_box(run(black_box(1), ROUNDS));
            clock.now().since(start).as_nanos() as f64 / f64::from(ROUNDS)
        };
        RoundTime { nanos: (0..20).map(attempt).fold(f64::INFINITY, f64::min) }
    }

    /// How many rounds fill `time`.
    pub(crate) fn rounds(self, time: Duration) -> u32 {
        (time.as_nanos() as f64 / self.nanos).round() as u32
    }
}

impl Service for BusyWork {
    fn spec(&self) -> ServiceSpec {
        self.service.spec()
    }

    fn process(&mut self, batch: &mut Batch, shards: &mut ShardSet, out: &mut Output) {
        let (packets, left) = (batch.len(), out.left_to_lane());
        self.service.process(batch, shards, out);
        self.work((packets + left).saturating_sub(out.left_to_lane()));
    }

    fn offloading(&mut self) -> Option<&mut dyn OffloadingService> {
        match self.service.offloading().is_some() {
            true => Some(self),
            false => None,
        }
    }

    fn deferred(&mut self) -> Option<&mut dyn DeferredWork> {
        self.service.deferred()
    }

    fn tick(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.service.tick(shards, out, now);
    }

    fn finish(&mut self, shards: &mut ShardSet, out: &mut Output, now: Time) {
        self.service.finish(shards, out, now);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.service.next_deadline()
    }

    fn metrics(&self, part: MetricsPart<'_>, metrics: &mut Metrics) {
        self.service.metrics(part, metrics);
    }
}

impl OffloadingService for BusyWork {
    fn detach(
        &mut self,
        shard: &mut Shard,
        flow: (FlowHash, &FlowKey),
        number: FlowNumber,
        now: Time,
    ) -> Option<DetachedFlow> {
        self.service.offloading()?.detach(shard, flow, number, now)
    }

    fn process_offloaded(
        &mut self,
        batch: &mut Batch,
        flows: &mut OffloadedFlows,
        out: &mut Output,
    ) {
        let (packets, left) = (batch.len(), out.left_to_lane());
        if let Some(service) = self.service.offloading() {
            service.process_offloaded(batch, flows, out);
        }
        self.work((packets + left).saturating_sub(out.left_to_lane()));
    }
}

#[cfg(test)]
mod tests {
    //! Timed: clock.

    use super::*;

    #[test]
    fn twice_the_time_is_twice_the_rounds() {
        let round = RoundTime { nanos: 2.5 };
        assert_eq!(round.rounds(Duration::from_micros(4)), 1_600);
        assert_eq!(round.rounds(Duration::from_micros(8)), 3_200);
        assert!(RoundTime::measure().nanos > 0.0);
        // None is left out, and none does nothing.
        let numbers: std::collections::HashSet<_> =
            (0..1_000).map(|rounds| run(1, rounds)).collect();
        assert_eq!(numbers.len(), 1_000);
    }
}
