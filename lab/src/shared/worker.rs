//! A thread that receives, processes and sends.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rheostat_base::{Clock, ClockSource, CoreId, Histogram};
use rheostat_kernel::core_set::pin_current_thread;
use rheostat_packet::{Burst, Mbuf, Mempool, PoolCache};

use super::PacketWork;
use super::queue::{Departure, Hold, Queue};
use super::source::number_of;

/// Longer from the start of a poll to the end of receiving is a preemption.
const PREEMPTED: u64 = 50_000;
/// Routes: enough that looking one up is an access to memory beyond the nearest cache.
const ROUTES: usize = 1 << 16;
/// Numbers drawn for a packet of heavy work.
const DRAWS: u32 = 100;

/// What the workers of a run share.
pub(super) struct WorkerRun<'a> {
    /// One, or one per worker.
    pub(super) queues: &'a [Queue],
    pub(super) clock: &'a Clock,
    pub(super) work: PacketWork,
    /// Set when the time is over.
    pub(super) stop: &'a AtomicBool,
    /// Packets that have left, where their number is what ends a run.
    pub(super) left: &'a AtomicU64,
    pub(super) wanted: u64,
    /// Whether departures are noted one by one.
    pub(super) notes: bool,
    /// Whether there are more workers than cores.
    pub(super) yields: bool,
}

/// What a worker has seen.
#[derive(Debug, Default)]
pub(super) struct WorkerObservation {
    pub(super) packets: u64,
    /// Times that receiving took so long that the worker must have been away.
    pub(super) preempted: u64,
    /// When each packet left, as a place in the order of departures, and its number.
    pub(super) departures: Vec<(u64, u64)>,
    /// From when a packet was due to its departure, in nanoseconds.
    pub(super) latencies: Histogram,
    /// From when a worker was done with packets to their departure, in nanoseconds, per claim.
    pub(super) delays: Histogram,
}

/// The packets' way through one worker.
struct Worker<'a> {
    run: &'a WorkerRun<'a>,
    queue: &'a Queue,
    pool: PoolCache,
    routes: Box<[u32]>,
    hold: Hold,
    seen: WorkerObservation,
}

/// Runs worker `number` on `core` until the run is over, once all are ready.
pub(super) fn run(
    run: &WorkerRun<'_>,
    number: usize,
    core: CoreId,
    pool: &Mempool,
    ready: &Barrier,
) -> WorkerObservation {
    // A core that cannot be had makes the figures worse, and nothing wrong.
    let _ = pin_current_thread(core);
    let queue = &run.queues[number % run.queues.len()];
    let mut worker = Worker {
        run,
        queue,
        pool: PoolCache::new(pool.clone()),
        routes: (0..ROUTES as u32).collect(),
        hold: Hold::new(queue.source().descriptors()),
        seen: WorkerObservation::default(),
    };
    ready.wait();
    // Relaxed, here and below: nothing is read on the strength of it.
    while !run.stop.load(Ordering::Relaxed) && run.left.load(Ordering::Relaxed) < run.wanted {
        if !worker.poll() {
            worker.pool.flush();
            if run.yields { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
    worker.pool.flush();
    worker.seen
}

impl Worker<'_> {
    /// Receives, processes and sends a burst; whether there was one.
    #[inline]
    fn poll(&mut self) -> bool {
        let mut packets = Burst::new();
        let start = self.run.clock.now().as_nanos();
        let Some(received) =
            self.queue.receive(&mut self.hold, &mut packets, &mut self.pool, start)
        else {
            return false;
        };
        let taken = self.run.clock.now().as_nanos();
        self.seen.preempted += u64::from(taken.saturating_sub(start) > PREEMPTED);
        for packet in &mut packets {
            process(packet, self.run.work, &mut self.routes);
        }
        self.seen.packets += packets.len() as u64;
        let Worker { run, queue, pool, seen, .. } = self;
        let closed = if run.notes { run.clock.now().as_nanos() } else { taken };
        queue.send(received, Departure { packets, closed }, |departure| {
            depart(departure, run, queue, pool, seen);
        });
        true
    }
}

/// Packets leave.
#[inline]
fn depart(
    mut departure: Departure,
    run: &WorkerRun<'_>,
    queue: &Queue,
    pool: &mut PoolCache,
    seen: &mut WorkerObservation,
) {
    if run.notes {
        let count = departure.packets.len() as u64;
        let now = run.clock.now().as_nanos();
        // Relaxed: of one word, and what is noted with it is looked at when all threads have ended.
        let place = run.left.fetch_add(count, Ordering::Relaxed);
        seen.delays.record(now.saturating_sub(departure.closed));
        for (packet, place) in departure.packets.iter().zip(place..) {
            let number = number_of(packet);
            seen.departures.push((place, number));
            if let Some(due) = queue.source().due(number) {
                seen.latencies.record(now.saturating_sub(due));
            }
        }
    }
    departure.packets.drain(..).for_each(|packet| pool.free(packet));
}

/// What a router does, and more where the work is heavy.
#[inline]
fn process(packet: &mut Mbuf, work: PacketWork, routes: &mut [u32]) {
    let data = packet.data_mut();
    let destination = u32::from_be_bytes(*data[30..].first_chunk().expect("a header of IPv4"));
    let number = u32::from_be_bytes(*data[46..].first_chunk().expect("the number's lower half"));
    // Each packet's own route: one destination's would stay in the nearest cache.
    let place = (destination ^ number).wrapping_mul(0x9E37_79B1) >> 16;
    let hop = routes[place as usize % ROUTES];
    data[0..4].copy_from_slice(&hop.to_ne_bytes());
    data[22] -= 1;
    // RFC 1624: the TTL is the upper byte of its word.
    let checksum = u16::from_be_bytes([data[24], data[25]]);
    let (sum, carry) = checksum.overflowing_add(0x0100);
    data[24..26].copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
    if work == PacketWork::Heavy {
        let mut state = u64::from(hop) | 1;
        for _ in 0..DRAWS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        data[4..12].copy_from_slice(&std::hint::black_box(state).to_ne_bytes());
    }
}
