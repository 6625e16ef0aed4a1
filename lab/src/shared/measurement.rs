//! The three things that are measured: rates, order, latencies.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rand_distr::Exp1;
use rheostat_base::{Clock, ClockSource, Histogram};
use rheostat_measure::quantiles::median;
use rheostat_packet::{Mempool, MempoolConfig};

use super::queue::Queue;
use super::reordering::Reordering;
use super::source::SharedSource;
use super::worker::{self, WorkerObservation, WorkerRun};
use super::{PacketWork, QueueKind, SharedBench};
use crate::error::BenchError;
use crate::testbed::Cores;

/// Longest run that ends by a number of packets.
const LONGEST: Duration = Duration::from_secs(20);
/// From the start of the threads to the first packet that is due.
const LEAD: u64 = 2_000_000;

/// Workers, bytes of a packet, and what is done with it.
pub(super) type SharedCase = (usize, usize, PacketWork);

/// Million packets per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub(super) mpps: f64,
    /// The median over rounds of the rate by that of a queue for each worker in the same round; 0 where none was measured.
    pub(super) by_own: f64,
}

/// What became of packets that were looked at one by one.
#[derive(Debug, Default)]
pub(super) struct Order {
    pub(super) reordering: Reordering,
    pub(super) preempted: u64,
    /// From when a worker was done with a claim to its departure, in nanoseconds.
    pub(super) delays: Histogram,
    /// From when packets were due to their departure, in nanoseconds.
    pub(super) latencies: Histogram,
}

fn queues(
    kind: QueueKind,
    case: SharedCase,
    bench: &SharedBench,
    sources: Vec<(u64, Vec<u64>)>,
) -> Vec<Queue> {
    let (_, size, _) = case;
    let source = |(count, due)| SharedSource::new(size, bench.descriptors, count, due);
    sources.into_iter().map(|each| Queue::new(kind, source(each))).collect()
}

/// How many queues workers have.
fn count(kind: QueueKind, workers: usize) -> usize {
    if kind == QueueKind::PerWorker { workers } else { 1 }
}

/// A buffer for every descriptor that may have been claimed and not have left, and what workers keep.
fn pool(bench: &SharedBench, (workers, size, _): SharedCase) -> Result<Mempool, BenchError> {
    let buffers = (bench.descriptors as usize * workers + 1_024 * (workers + 1)) as u32;
    let data_room = (size + 128).next_multiple_of(64) as u16;
    Ok(Mempool::new(&MempoolConfig { buffers, data_room, ..MempoolConfig::default() })?)
}

/// Runs the workers until `over`, which the calling thread waits for, or until all packets wanted have left.
fn work(
    run: &WorkerRun<'_>,
    workers: usize,
    cores: &Cores,
    pool: &Mempool,
    over: impl FnOnce(),
) -> Vec<WorkerObservation> {
    let (ready, cores) = (Barrier::new(workers + 1), cores.in_turn(workers));
    thread::scope(|scope| {
        let threads: Vec<_> = cores
            .into_iter()
            .enumerate()
            .map(|(number, core)| {
                let ready = &ready;
                scope.spawn(move || worker::run(run, number, core, pool, ready))
            })
            .collect();
        ready.wait();
        over();
        run.stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().expect("workers do not panic")).collect()
    })
}

/// The rate of each kind of queue, in turn in each round.
pub(super) fn measure_rates(
    bench: &SharedBench,
    case: SharedCase,
    cores: &Cores,
) -> Result<Vec<Rate>, BenchError> {
    let (workers, _, _) = case;
    let (clock, pool) = (Clock::new(), pool(bench, case)?);
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for _ in 0..=bench.windows {
        let mut round = Vec::new();
        for &kind in &bench.queues {
            let sources = vec![(u64::MAX, Vec::new()); count(kind, workers)];
            let queues = queues(kind, case, bench, sources);
            let (stop, left) = (AtomicBool::new(false), AtomicU64::new(0));
            let run = WorkerRun {
                queues: &queues,
                clock: &clock,
                work: case.2,
                stop: &stop,
                left: &left,
                wanted: u64::MAX,
                notes: false,
                yields: false,
            };
            let mut elapsed = Duration::ZERO;
            let seen = work(&run, workers, cores, &pool, || {
                let start = Instant::now();
                thread::sleep(bench.window);
                elapsed = start.elapsed();
            });
            let packets: u64 = seen.iter().map(|seen| seen.packets).sum();
            round.push(packets as f64 / elapsed.as_secs_f64() / 1e6);
        }
        rounds.push(round);
    }
    // The first has everything for the first time.
    let rounds = &rounds[1.min(rounds.len() - 1)..];
    let own = bench.queues.iter().position(|kind| *kind == QueueKind::PerWorker);
    let rate = |place: usize| Rate {
        mpps: median(rounds.iter().map(|round| round[place])),
        by_own: own.map_or(0.0, |own| median(rounds.iter().map(|round| round[place] / round[own]))),
    };
    Ok((0..bench.queues.len()).map(rate).collect())
}

/// What becomes of packets that are all there from the start.
pub(super) fn measure_order(
    bench: &SharedBench,
    kind: QueueKind,
    case: SharedCase,
    cores: &Cores,
) -> Result<Order, BenchError> {
    let each = bench.packets / count(kind, case.0) as u64;
    let sources = vec![(each, Vec::new()); count(kind, case.0)];
    measure_departures(bench, kind, case, (&Clock::new(), cores), sources)
}

/// How long packets take that arrive at so many per second, at random.
pub(super) fn measure_latency(
    bench: &SharedBench,
    kind: QueueKind,
    case: SharedCase,
    (pps, cores): (f64, &Cores),
) -> Result<Order, BenchError> {
    let queues = count(kind, case.0);
    let mut rng = StdRng::seed_from_u64(1);
    let mut due: Vec<Vec<u64>> = vec![Vec::new(); queues];
    let mut time = 0.0;
    for _ in 0..bench.packets {
        time += rng.sample::<f64, _>(Exp1) / pps * 1e9;
        // Which queue a packet comes to is random, as a hash is.
        due[rng.random_range(0..queues)].push(time as u64);
    }
    let clock = Clock::new();
    let start = clock.now().as_nanos() + LEAD;
    let sources = due.into_iter().map(|due| {
        let due: Vec<u64> = due.into_iter().map(|due| start + due).collect();
        (due.len() as u64, due)
    });
    measure_departures(bench, kind, case, (&clock, cores), sources.collect())
}

fn measure_departures(
    bench: &SharedBench,
    kind: QueueKind,
    case: SharedCase,
    (clock, cores): (&Clock, &Cores),
    sources: Vec<(u64, Vec<u64>)>,
) -> Result<Order, BenchError> {
    let (workers, _, work_done) = case;
    let pool = pool(bench, case)?;
    let queues = queues(kind, case, bench, sources);
    let wanted: u64 = queues.iter().map(|queue| queue.source().count()).sum();
    let (stop, left) = (AtomicBool::new(false), AtomicU64::new(0));
    let run = WorkerRun {
        queues: &queues,
        clock,
        work: work_done,
        stop: &stop,
        left: &left,
        wanted,
        notes: true,
        yields: workers > cores.count(),
    };
    let start = Instant::now();
    let seen = work(&run, workers, cores, &pool, || {
        // Relaxed: a figure.
        while left.load(Ordering::Relaxed) < wanted && start.elapsed() < LONGEST {
            thread::sleep(Duration::from_millis(1));
        }
    });
    let mut order = Order::default();
    for one in &seen {
        order.preempted += one.preempted;
        order.delays.add(&one.delays);
        order.latencies.add(&one.latencies);
    }
    order.reordering = match kind {
        // Each queue has a numbering of its own.
        QueueKind::PerWorker => {
            let mut sum = Reordering::default();
            for (one, queue) in seen.iter().zip(&queues) {
                sum.add(&judge(std::slice::from_ref(one), queue.source().count()));
            }
            sum
        }
        _ => judge(&seen, wanted),
    };
    Ok(order)
}

/// What became of the order of packets that left through these workers.
fn judge(seen: &[WorkerObservation], sent: u64) -> Reordering {
    let mut departures: Vec<(u64, u64)> =
        seen.iter().flat_map(|one| one.departures.iter().copied()).collect();
    departures.sort_unstable();
    let numbers: Vec<u64> = departures.into_iter().map(|(_, number)| number).collect();
    Reordering::of(&numbers, sent)
}
