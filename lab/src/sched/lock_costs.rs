//! What receive queues and shards cost that lanes share: two threads on cores of their own, which take packets in turn, or whenever they
//! can.
//!
//! Queues are those of [`share_receive`] in front of a device that always has packets. A time is that of
//! [`RxQueue::recv`] and [`SharedQueue::release`](rheostat_io::SharedQueue::release) without a look at the device. A shard is entered as one is that lanes own together: a
//! ticket is drawn and due, the shard is taken out of its cell, written to and put back.
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use rheostat_base::clock::Cycles;
use rheostat_base::sync::load_fence::wait_for_loads;
use rheostat_base::sync::take_cell::TakeCell;
use rheostat_base::{Clock, CoreId, Time};
use rheostat_io::layer::shared_receive::{Sharing, share_receive};
use rheostat_io::{Rest, RxQueue};
use rheostat_kernel::core_set::{CoreError, pin_current_thread};
use rheostat_packet::{Burst, PoolCache};

use super::error::SchedBenchError;
use crate::costs::Distribution;
use crate::testbed::lanes;

/// Times of each kind.
const TIMES: usize = 20_000;
/// Readings of the clock of which the median counts.
const READINGS: usize = 10_001;
/// Packets that two threads take as fast as they can.
const CONTENDED: usize = 200_000;

/// Looks of a thread whose turn it is not, before it yields its core, which the other may need.
const PATIENCE: u32 = 1_000;

/// What was found, in nanoseconds.
pub(super) struct LockCosts {
    /// Taking a packet: by the thread that took the last, and by another.
    pub(super) queue_free: Distribution,
    pub(super) queue_taken: Distribution,
    /// From packet to packet, where both threads take them all the time.
    pub(super) queue_contended: f64,
    /// Entering a shard and leaving it: by the thread that did so last, and by another.
    pub(super) shard_same: Distribution,
    pub(super) shard_other: Distribution,
    /// What stealing takes beyond taking.
    pub(super) steal: f64,
}

/// Measures on two cores, for less than a second.
pub(super) fn measure_locks(
    clock: &Clock,
    cores: [CoreId; 2],
) -> Result<LockCosts, SchedBenchError> {
    let reading = reading_ns(clock, cycles_in_order);
    let of = |times: Vec<u64>| {
        let nanos = |time: &u64| ((*time as f64 - reading).max(0.0), 1.0);
        Distribution::of(&times.iter().map(nanos).collect::<Vec<_>>())
    };
    let [mut one, mut other] = receivers(Sharing::CENTRAL)?;
    let [alone, _] = in_turn(TIMES, cores, [2, 0], [&mut || one.receive(clock), &mut || None])?;
    let times =
        in_turn(TIMES, cores, [1, 1], [&mut || one.receive(clock), &mut || other.receive(clock)])?;
    let queue_contended = contended(cores, [&mut one, &mut other], clock)?;
    let [mut owner, mut thief] = receivers(Sharing::STEALING)?;
    let [_, thefts] = in_turn(
        TIMES,
        cores,
        [1, 1],
        [&mut || owner.receive(clock), &mut || thief.receive(clock)],
    )?;
    let shard = SharedShard::new();
    let visit = || Some(shard.visit(clock));
    let [same, _] = in_turn(TIMES, cores, [2, 0], [&mut { visit }, &mut || None])?;
    let [others, _] = in_turn(TIMES, cores, [1, 1], [&mut { visit }, &mut { visit }])?;
    let queue_taken = of(times.concat());
    Ok(LockCosts {
        steal: (of(thefts).median() - queue_taken.median()).max(0.0),
        queue_free: of(alone),
        queue_taken,
        queue_contended,
        shard_same: of(same),
        shard_other: of(others),
    })
}

/// A device that always has packets, or never.
struct LockSource {
    is_empty: bool,
}

impl RxQueue for LockSource {
    fn recv(&mut self, burst: &mut Burst, pool: &mut PoolCache, _now: Time) -> usize {
        let before = burst.len();
        while !self.is_empty
            && !burst.is_full()
            && let Ok(packet) = pool.alloc_from(&[0; 64])
        {
            burst.push(packet);
        }
        burst.len() - before
    }

    fn backlog(&self) -> usize {
        usize::from(!self.is_empty)
    }

    fn rest(&mut self, _: &mut PoolCache, _: Time) -> Rest {
        Rest::Awake
    }
}

/// A thread's part in queues.
struct LockReceiver {
    queue: Box<dyn RxQueue>,
    burst: Burst,
    pool: PoolCache,
}

/// The parts of two threads. Only the first one's device has packets.
fn receivers(sharing: Sharing) -> Result<[LockReceiver; 2], SchedBenchError> {
    let pool = lanes::pool(1_024)?;
    let source = |is_empty| Box::new(LockSource { is_empty }) as Box<dyn RxQueue>;
    let mut queues = share_receive(vec![source(false), source(true)], sharing).into_iter();
    Ok([(); 2].map(|()| LockReceiver {
        queue: queues.next().expect("there are two"),
        burst: Burst::new(),
        pool: PoolCache::new(pool.clone()),
    }))
}

impl LockReceiver {
    /// Takes what the thread may, and returns how long that took; `None` if the device was looked at, or there was nothing.
    fn receive(&mut self, clock: &Clock) -> Option<u64> {
        let from = cycles_in_order(clock);
        let count = self.queue.recv(&mut self.burst, &mut self.pool, Time::ZERO);
        let left = self.queue.as_shared().map_or(0, |queue| queue.release());
        let taken = clock.nanos_between(from, cycles_in_order(clock));
        let is_read = left > 0;
        self.burst.drain(..).for_each(|packet| self.pool.free(packet));
        (count > 0 && !is_read).then_some(taken)
    }
}

/// What lanes that own a shard together share of it.
#[repr(align(128))]
struct SharedShard {
    next: AtomicU32,
    due: AtomicU32,
    cell: TakeCell<Box<[u64; 16]>>,
}

impl SharedShard {
    fn new() -> SharedShard {
        let cell = TakeCell::new(Box::new([0; 16]));
        SharedShard { next: AtomicU32::new(0), due: AtomicU32::new(0), cell }
    }

    /// Enters the shard, writes to it and leaves it; returns how long that took.
    fn visit(&self, clock: &Clock) -> u64 {
        let from = cycles_in_order(clock);
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        while self.due.load(Ordering::Relaxed) != ticket {
            std::hint::spin_loop();
        }
        if let Some(mut shard) = self.cell.take() {
            shard[0] += 1;
            self.due.store(ticket + 1, Ordering::Relaxed);
            let back = self.cell.put_back(shard);
            debug_assert!(back.is_ok(), "a shard is put back once");
        }
        clock.nanos_between(from, cycles_in_order(clock))
    }
}

/// Reads the clock behind all that came before, and before all that follows. Otherwise a processor may read it while it waits for a line
/// of another core: a lock that the other thread had then seems to be free.
fn cycles_in_order(clock: &Clock) -> Cycles {
    wait_for_loads();
    let cycles = clock.cycles();
    wait_for_loads();
    cycles
}

/// Nanoseconds that it takes to read the clock in this way.
pub(super) fn reading_ns(clock: &Clock, read: impl Fn(&Clock) -> Cycles) -> f64 {
    let mut times: Vec<u64> = (0..READINGS)
        .map(|_| {
            let from = read(clock);
            clock.nanos_between(from, read(clock))
        })
        .collect();
    times.sort_unstable();
    times[READINGS / 2] as f64
}

/// One step of a thread, timed if it is one that counts.
type LockStep<'a> = &'a mut (dyn FnMut() -> Option<u64> + Send);

/// Times steps of two threads, each of which has so many turns of so many steps in a row.
fn in_turn(
    turns: usize,
    cores: [CoreId; 2],
    row: [usize; 2],
    steps: [LockStep<'_>; 2],
) -> Result<[Vec<u64>; 2], CoreError> {
    let turn = AtomicUsize::new(0);
    let run = |number: usize, step: LockStep<'_>| {
        let mut times = Vec::with_capacity(turns);
        let pinned = pin_current_thread(cores[number]);
        for _ in 0..turns {
            let mut looks = 0_u32;
            // Acquire: pairs with the Release store of the other thread, so that its step is over.
            while turn.load(Ordering::Acquire) != number {
                looks += 1;
                match looks < PATIENCE {
                    true => std::hint::spin_loop(),
                    false => thread::yield_now(),
                }
            }
            times.extend((0..row[number]).filter_map(|_| step()).last());
            turn.store(1 - number, Ordering::Release);
        }
        pinned.map(|()| times)
    };
    let [first, second] = steps;
    thread::scope(|scope| {
        let other = scope.spawn(|| run(1, second));
        let first = scope.spawn(|| run(0, first)).join().expect("no step panics")?;
        Ok([first, other.join().expect("no step panics")?])
    })
}

/// The time from packet to packet, where both threads take them as fast as they can.
fn contended(
    cores: [CoreId; 2],
    receivers: [&mut LockReceiver; 2],
    clock: &Clock,
) -> Result<f64, CoreError> {
    let start = Barrier::new(2);
    let run = |core: CoreId, receiver: &mut LockReceiver| {
        let pinned = pin_current_thread(core);
        start.wait();
        let from = Instant::now();
        for _ in 0..CONTENDED {
            receiver.receive(clock);
        }
        pinned.map(|()| from.elapsed().as_nanos() as f64)
    };
    let [one, other] = receivers;
    let times = thread::scope(|scope| {
        let threads = [scope.spawn(|| run(cores[0], one)), scope.spawn(|| run(cores[1], other))];
        threads.map(|thread| thread.join().expect("no step panics"))
    });
    let [one, other] = times;
    Ok(one?.max(other?) / (2 * CONTENDED) as f64)
}

#[cfg(test)]
mod tests {
    //! Timed: threads, clock.

    use super::*;

    #[test]
    fn threads_take_packets_one_at_a_time_and_steal_half() {
        let clock = Clock::new();
        let [mut one, mut other] = receivers(Sharing::CENTRAL).unwrap();
        assert_eq!(one.receive(&clock), None, "the device was read");
        assert!(one.receive(&clock).is_some() && other.receive(&clock).is_some());
        let [mut owner, mut thief] = receivers(Sharing::STEALING).unwrap();
        assert_eq!(owner.receive(&clock), None);
        assert!(thief.receive(&clock).is_some());
    }

    #[test]
    fn steps_of_two_threads_follow_one_another() {
        let core = crate::testbed::Cores::available().unwrap().first();
        let order = std::sync::Mutex::new(Vec::new());
        let step = |name: u64| {
            let order = &order;
            move || {
                order.lock().unwrap().push(name);
                Some(name)
            }
        };
        let (mut one, mut other) = (step(1), step(2));
        let times = in_turn(100, [core; 2], [2, 1], [&mut one, &mut other]).unwrap();
        assert_eq!(times.map(|times| times.len()), [100; 2]);
        assert!(order.into_inner().unwrap().chunks(3).all(|turn| turn == [1, 1, 2]));
    }
}
