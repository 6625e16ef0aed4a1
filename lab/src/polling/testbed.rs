//! What a trial runs on: lanes behind a simulated NIC whose packets are drawn before, and clocks of their threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rheostat_base::{Clock, ClockSource, CoreId, QueueId};
use rheostat_io::{Device, DrawnArrivals, NullSink, OpenError, SimConfig, SimNic, Sink};
use rheostat_measure::quantiles::median;
use rheostat_packet::mbuf::PoolError;
use rheostat_packet::{Burst, Mempool, PoolCache};
use rheostat_run::poll::metronome::Mode;
use rheostat_run::{
    LanePolling, LaneSample, LoadReporting, Polling, Runtime, RuntimeConfig, Sample, WorkerPolling,
};
use rheostat_steer::Steering;

use super::chain::{Equipment, PollingChain};
use super::competitor::{Competitor, CompetitorProgress};
use super::slices::{Slice, SliceObservation, Slices};
use super::stopwatch::Stopwatch;
use crate::datagrams::{Datagrams, Spacing};
use crate::disturbance::Disturbance;
use crate::error::BenchError;
use crate::real::intervals::{arrived, no_room};
use crate::testbed::{Cores, dut, lanes};
use crate::worker_time::WorkersCpu;

/// Entries of the indirection table, and shards.
const BUCKETS: usize = 128;
/// Descriptors of a receive queue.
const DESCRIPTORS: u32 = 1_024;
const HANDOFF: usize = 1 << 10;
/// Flows of what arrives.
const FLOWS: u16 = 1_024;
/// Memory for the packets of a trial.
const MEMORY: usize = 640 << 20;
/// How long a slice is.
const SLICE: Duration = Duration::from_millis(100);
/// What is drawn beyond the end of a trial, which may come late.
const BEYOND: Duration = Duration::from_millis(200);

/// How long a trial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TestbedSpan {
    /// What is not measured at its start: workers calibrate their sleep, and policies settle.
    pub(super) warm_up: Duration,
    /// What is measured.
    pub(super) window: Duration,
}

impl TestbedSpan {
    fn whole(self) -> Duration {
        self.warm_up + self.window + BEYOND
    }

    /// As long as `packets` packets last at this rate, the warm-up whole.
    pub(super) fn within(self, packets: f64, rate: f64) -> TestbedSpan {
        let most = Duration::from_secs_f64((packets / rate.max(1.0)).min(3_600.0));
        let window = most.saturating_sub(self.warm_up + BEYOND);
        TestbedSpan { window: self.window.min(window.max(self.warm_up / 2)), ..self }
    }
}

/// What trials of one chain on so many lanes run on.
pub(super) struct PollingTestbed {
    lanes: usize,
    cores: Cores,
    equipment: Equipment,
    steering: Arc<Steering>,
    config: SimConfig,
    seed: u64,
}

impl PollingTestbed {
    pub(super) fn new(
        chain: PollingChain,
        lanes: usize,
        seed: u64,
    ) -> Result<PollingTestbed, BenchError> {
        let steering = Arc::new(dut::steering(BUCKETS, BUCKETS)?);
        let config = SimConfig::new("polling", lanes as u16, steering.clone());
        let cores = Cores::available()?;
        cores.require(lanes)?;
        Ok(PollingTestbed {
            lanes,
            cores,
            equipment: Equipment::new(chain)?,
            steering,
            config: SimConfig { descriptors: DESCRIPTORS, ..config },
            seed,
        })
    }

    /// The cores that so many workers are pinned to.
    pub(super) fn cores(&self, workers: usize) -> Vec<CoreId> {
        self.cores.in_turn(workers)
    }

    /// What arrives in a trial at so many packets a second.
    pub(super) fn draw(&self, rate: f64, span: TestbedSpan) -> Result<DrawnArrivals, BenchError> {
        let pool = lanes::pool(64)?;
        let source = Box::new(Datagrams::new(FLOWS, Spacing::Poisson, rate, self.seed));
        let within = (span.whole(), MEMORY);
        Ok(DrawnArrivals::draw_within(&self.config, source, &pool, within)?)
    }

    fn nic(
        &self,
        drawn: &DrawnArrivals,
        clock: &Clock,
        sink: impl FnMut(QueueId) -> Box<dyn Sink>,
    ) -> Result<SimNic, OpenError> {
        let clock: Arc<dyn ClockSource> = Arc::new(clock.clone());
        SimNic::open_drawn(&self.config, drawn, clock, sink)
    }

    fn pool(&self) -> Result<Mempool, PoolError> {
        lanes::pool(self.lanes as u32 * (DESCRIPTORS + 3 * HANDOFF as u32) + 4_096)
    }

    /// Runs one trial: `workers` workers that poll so, what arrives, and perhaps another program.
    pub(super) fn run(
        &self,
        (polling, workers): (Polling, usize),
        (drawn, span): (&DrawnArrivals, TestbedSpan),
        mut beside: Option<&mut Competitor>,
    ) -> Result<SliceObservation, BenchError> {
        let clock = Clock::new();
        let stopwatch = Stopwatch::new(clock.clone());
        let nic = self.nic(drawn, &clock, |_| stopwatch.sink())?;
        let source = nic.monitor();
        let hasher = lanes::hasher(self.seed);
        let config = RuntimeConfig {
            polling,
            workers: self.cores.bound(workers),
            handoff_capacity: HANDOFF,
            reporting: LoadReporting::Lanes,
            ..RuntimeConfig::new(self.lanes, self.pool()?, self.steering.clone(), hasher)
        };
        let shards = self.equipment.shards(&self.steering, (hasher, self.seed))?;
        let service = self.equipment.service();
        let device: Vec<Box<dyn Device>> = vec![Box::new(nic)];
        let mut runtime = Runtime::start(config, device, clock, service, shards)?;
        let started = Instant::now();
        std::thread::sleep(span.warm_up);
        stopwatch.take();
        let mut last = TestbedReading::take(&mut runtime, beside.as_deref_mut())?;
        let mut slices = Slices::new(beside.is_some());
        let count = (span.window.as_secs_f64() / SLICE.as_secs_f64()).round().max(1.0) as u32;
        for slice in 1..=count {
            let end = span.warm_up + span.window * slice / count;
            std::thread::sleep(end.saturating_sub(started.elapsed()));
            let latencies = stopwatch.take();
            let reading = TestbedReading::take(&mut runtime, beside.as_deref_mut())?;
            slices.add(reading.since(&last), latencies);
            last = reading;
        }
        lanes::drain(&runtime);
        let ended = lanes::finish(runtime);
        lanes::in_time(source.as_ref())?;
        ended?;
        Ok(slices.finish())
    }

    /// What a packet costs the lane that takes it from the device before anything is done with it, in nanoseconds: to
    /// place it and to write it into a buffer, as the DMA of a NIC would. The median of full bursts, so the least that it
    /// can be: smaller bursts cost more per packet.
    pub(super) fn source_ns(&self) -> Result<f64, BenchError> {
        const RATE: f64 = 10e6;
        let length = Duration::from_secs_f64(f64::from(DESCRIPTORS) * 20.0 / RATE);
        let drawn = self.draw(RATE, TestbedSpan { warm_up: Duration::ZERO, window: length })?;
        let clock = Clock::new();
        let mut nic = self.nic(&drawn, &clock, |_| Box::new(NullSink))?;
        let mut rx = nic.queues().remove(0).rx;
        let mut cache = PoolCache::new(self.pool()?);
        let mut burst = Burst::new();
        let mut receive = |now| {
            let from = clock.cycles();
            let taken = rx.recv(&mut burst, &mut cache, now);
            let nanos = clock.nanos_between(from, clock.cycles());
            burst.drain(..).for_each(|packet| cache.free(packet));
            (taken, nanos)
        };
        // The first poll starts the source.
        let mut now = clock.now();
        receive(now);
        let mut times = Vec::new();
        let end = now + length;
        while now < end {
            // About two hundred packets: several full bursts, and nothing dropped.
            now += Duration::from_micros(20);
            loop {
                let (taken, nanos) = receive(now);
                if taken == rheostat_packet::BURST {
                    times.push(nanos as f64 / taken as f64);
                } else {
                    break;
                }
            }
        }
        Ok(median(times))
    }
}

/// Counters at one moment.
struct TestbedReading {
    at: Instant,
    cpu: WorkersCpu,
    sample: Sample,
    beside: Option<CompetitorProgress>,
    disturbance: Disturbance,
}

impl TestbedReading {
    fn take(
        runtime: &mut Runtime,
        beside: Option<&mut Competitor>,
    ) -> Result<TestbedReading, BenchError> {
        let beside = beside.map(Competitor::progress).transpose()?;
        let (at, cpu) = (Instant::now(), WorkersCpu::now());
        Ok(TestbedReading {
            at,
            cpu,
            sample: runtime.sample(),
            beside,
            disturbance: Disturbance::read(),
        })
    }

    /// What was done since `first`.
    fn since(&self, first: &TestbedReading) -> Slice {
        let lanes = |reading: &TestbedReading| LaneSample::sum(&reading.sample.lanes);
        let sum = lanes(self).since(&lanes(first));
        let of_lanes = |of: fn(&LanePolling) -> u64| {
            let sum =
                |reading: &TestbedReading| reading.sample.polling.lanes.iter().map(of).sum::<u64>();
            sum(self).saturating_sub(sum(first))
        };
        let of_workers = |of: fn(&WorkerPolling) -> u64| {
            let sum = |reading: &TestbedReading| {
                reading.sample.polling.workers.iter().map(of).sum::<u64>()
            };
            sum(self).saturating_sub(sum(first))
        };
        let spent = Mode::ALL.map(|mode| {
            let lanes = |reading: &TestbedReading| {
                let lanes = reading.sample.polling.lanes.iter();
                lanes.map(|lane| lane.spent[mode as usize]).sum::<Duration>()
            };
            lanes(self).saturating_sub(lanes(first)).as_secs_f64()
        });
        Slice {
            seconds: (self.at - first.at).as_secs_f64(),
            cpu: self.cpu.since(&first.cpu).as_secs_f64(),
            arrived: arrived(&self.sample) - arrived(&first.sample),
            lost: no_room(&self.sample) - no_room(&first.sample),
            delivered: sum.sent,
            busy: sum.busy_ns as f64 / 1e9,
            idle_polls: sum.idle_polls,
            vacations: of_lanes(|lane| lane.vacations.count),
            vacation_ns: of_lanes(|lane| lane.vacations.count * lane.vacations.mean),
            spent,
            tries: of_workers(|worker| worker.tries),
            lost_tries: of_workers(|worker| worker.lost),
            wake_ups: of_workers(|worker| worker.sleeps + worker.blocks),
            beside: self.beside.zip(first.beside).map(|(now, then)| now.since(then)),
            disturbance: self.disturbance.since(first.disturbance),
        }
    }
}
