//! Which thread drives the NIC, and when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rheostat_base::{ClockSource, Time};
use rheostat_packet::{Mbuf, Mempool, PoolCache};
use rheostat_steer::GenerationTable;

use super::counters::{self, Arrivals, Sent};
use super::descriptor_ring::{Gauge, NicSide};
use super::engine::Engine;
use super::nic::Nic;
use super::nic_thread::{NicThread, Pause};
use super::queue_event::QueueEvent;
use super::replies::Replies;
use super::{Pacing, SimConfig};
use crate::Source;
use crate::backend::shared_ring::Claimants;
use crate::device::{DeviceCounters, DeviceMonitor, SourceMonitor};
use crate::lock::{lock, try_lock};
use crate::replay_barrier::ReplayBarrier;
use crate::sharing::SharingCounters;

/// Frames one poll of the pumped driver, or one turn of the thread, delivers at most.
const TURN: usize = 64;

/// Longest sleep of the thread: how soon it notices a rewritten table or the end.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// Shorter waits are spent awake: a sleep overshoots by about this much.
const SHORTEST_SLEEP: Duration = Duration::from_micros(100);

/// The NIC behind its lock, shared by all threads that may drive it.
pub(super) struct Drive {
    /// A panic in a source leaves it at a packet boundary.
    nic: Mutex<Nic>,
    /// Set (Release) under the lock, after the last packet was enqueued; read (Acquire) by monitors,
    /// which then look at the queues.
    ended: AtomicBool,
    /// Whether nothing arrives yet. Relaxed: the NIC's lock orders what follows.
    awaits_begin: AtomicBool,
    lossless: bool,
    arrivals: Arc<[Arrivals]>,
    waiting: Vec<Gauge<Mbuf>>,
    /// Of each ring that several lanes empty.
    claimants: Vec<Arc<Claimants>>,
    /// Where a peer answers what the device sends.
    replies: Option<Arc<Replies>>,
    pub(super) sent: Vec<Arc<Sent>>,
}

impl Drive {
    /// A NIC of `config` that puts what `source` has into `rings`, behind `table`.
    pub(super) fn new(
        config: &SimConfig,
        source: Box<dyn Source>,
        (rings, claimants): (Vec<NicSide<Mbuf>>, Vec<Arc<Claimants>>),
        table: Arc<GenerationTable>,
        events: Vec<Arc<QueueEvent>>,
        replies: Option<Arc<Replies>>,
    ) -> Drive {
        let arrivals: Arc<[Arrivals]> = rings.iter().map(|_| Arrivals::default()).collect();
        let waiting = rings.iter().map(NicSide::gauge).collect();
        let nic = Nic::new(config, source, rings, table, arrivals.clone(), events, replies.clone());
        Drive {
            nic: Mutex::new(nic),
            ended: AtomicBool::new(false),
            awaits_begin: AtomicBool::new(false),
            lossless: config.pacing == Pacing::Lossless,
            arrivals,
            waiting,
            claimants,
            replies,
            sent: (0..config.queues).map(|_| Arc::default()).collect(),
        }
    }

    fn has_begun(&self) -> bool {
        !self.awaits_begin.load(Ordering::Relaxed)
    }

    /// One turn of the pumped driver. Nothing happens while another lane has its turn.
    pub(super) fn pump(&self, now: Time, pool: &mut PoolCache) {
        if let Some(nic) = try_lock(&self.nic)
            && self.has_begun()
        {
            self.turn(nic, |nic| nic.deliver(now, TURN, pool));
        }
    }

    /// A turn of the pumped driver without loss that waits until other lanes have had theirs. Returns whether lanes are
    /// notified of what arrives later, so that none has to poll for it.
    pub(super) fn pump_before_rest(&self, now: Time, pool: &mut PoolCache) -> bool {
        self.turn(lock(&self.nic), |nic| {
            nic.deliver(now, TURN, pool);
            nic.announces()
        })
    }

    fn turn<T>(&self, mut nic: MutexGuard<'_, Nic>, f: impl FnOnce(&mut Nic) -> T) -> T {
        let result = f(&mut nic);
        if nic.ended() {
            self.ended.store(true, Ordering::Release);
        }
        result
    }
}

impl Engine for Drive {
    fn await_begin(&self) {
        self.awaits_begin.store(!self.lossless, Ordering::Relaxed);
    }

    fn replay_by(&self, barrier: Arc<ReplayBarrier>) {
        self.turn(lock(&self.nic), |nic| nic.replay_by(barrier));
    }
}

impl DeviceMonitor for Drive {
    fn counters(&self) -> DeviceCounters {
        counters::sum(self.arrivals.iter(), &self.sent)
    }

    fn is_exhausted(&self) -> bool {
        self.ended.load(Ordering::Acquire)
            && self.replies.as_ref().is_none_or(|replies| replies.is_empty())
            && self.waiting.iter().all(|queue| queue.backlog() == 0)
    }

    fn stop(&self) {
        self.turn(lock(&self.nic), |nic| {
            nic.stop();
            self.replies.iter().for_each(|replies| replies.stop());
        });
    }

    fn sharing(&self) -> Vec<SharingCounters> {
        self.claimants.iter().map(|claimants| claimants.sample()).collect()
    }

    fn source(&self) -> Option<&dyn SourceMonitor> {
        Some(self)
    }
}

impl SourceMonitor for Drive {
    fn begin(&self, _now: Time) {
        self.awaits_begin.store(false, Ordering::Relaxed);
    }

    fn progress(&self) -> Option<f64> {
        lock(&self.nic).progress()
    }
}

/// Drives a stepped NIC: nothing arrives but what a call delivers, so that a run is repeatable.
pub struct Stepper {
    drive: Arc<Drive>,
}

impl Stepper {
    pub(super) fn new(drive: Arc<Drive>) -> Stepper {
        Stepper { drive }
    }

    /// Delivers everything that has arrived by `now`, under the table in force, and returns how many
    /// packets that were, drops included. Without loss, delivers what fits.
    pub fn deliver_until(&mut self, now: Time, pool: &mut PoolCache) -> usize {
        self.drive.turn(lock(&self.drive.nic), |nic| nic.deliver(now, usize::MAX, pool))
    }

    /// When the next packet is due; `None` when there is none. Reads the source one packet ahead.
    pub fn next_arrival(&mut self, now: Time) -> Option<Time> {
        self.drive.turn(lock(&self.drive.nic), |nic| nic.next_due(now))
    }
}

/// Starts a thread that drives a NIC by `clock`, with buffers from `pool`. After the source has ended it goes on acknowledging
/// rewritten tables.
///
/// # Errors
/// What the operating system said.
pub(super) fn start_thread(
    name: &str,
    drive: Arc<Drive>,
    clock: Arc<dyn ClockSource>,
    pool: Mempool,
) -> std::io::Result<NicThread> {
    let mut pool = PoolCache::new(pool);
    NicThread::start(format!("nic {name}"), move || {
        if !drive.has_begun() {
            return Pause::Sleep(SHORTEST_SLEEP);
        }
        let now = clock.now();
        let (delivered, next) = drive
            .turn(lock(&drive.nic), |nic| (nic.deliver(now, TURN, &mut pool), nic.next_due(now)));
        match next.map(|next| next.since(now)) {
            _ if delivered > 0 => Pause::None,
            // Due, and still not delivered: lanes have to make room.
            Some(Duration::ZERO) => Pause::Yield,
            Some(short) if short <= SHORTEST_SLEEP => Pause::None,
            Some(long) => Pause::Sleep((long - SHORTEST_SLEEP).min(LONGEST_SLEEP)),
            None => Pause::Sleep(LONGEST_SLEEP),
        }
    })
}
