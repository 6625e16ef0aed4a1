//! What the queues of a pumped NIC share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use rheostat_base::{ClockSource, DeviceId, QueueId, Time};
use rheostat_packet::{Burst, Mempool, PoolCache};
use rustix::time::{ClockId, clock_gettime};

use super::chunk_list::Link;
use super::drawer::Drawer;
use super::drawn::{DrawnArrivals, WINDOW};
use super::placement::{Placed, Placement};
use crate::Source;
use crate::backend::sim::answering::Answering;
use crate::backend::sim::counters::{Arrivals, Sent};
use crate::backend::sim::engine::Replaying;
use crate::backend::sim::nic_thread::{NicThread, Pause};
use crate::backend::sim::replies::Replies;
use crate::backend::sim::{Pacing, SimConfig};
use crate::device::{Rest, Stamping};
use crate::lock::{lock, try_lock};

/// Arrivals drawn at once, with the drawer's lock held, where lanes may want it.
pub(super) const AT_ONCE: usize = 256;
/// How far ahead the thread draws.
const AHEAD: Duration = Duration::from_secs(1);
/// Tables that a queue which is not polled keeps at most.
const TABLES: usize = 64;
/// The start of a source that has not started.
pub(super) const NOT_STARTED: u64 = u64::MAX;

/// The NIC: its queues and what is drawn for them.
pub(in crate::backend::sim) struct Pump {
    pub(super) queues: Box<[QueueState]>,
    pub(super) supply: Supply,
    /// What rewritten tables and the end of the source go by; without it, the latest poll.
    pub(super) clock: Option<Arc<dyn ClockSource>>,
    /// When the source started, on the clock of the run; the first lane to poll starts it.
    pub(super) origin: AtomicU64,
    /// Whether it may not start yet.
    pub(super) awaits_begin: AtomicBool,
    /// Whether packets are stamped with the time at which they are due.
    stamping: Stamping<'static>,
    /// The latest poll of all, where there is no clock.
    pub(super) latest: AtomicU64,
    pub(super) is_stopped: AtomicBool,
    /// Whether a thread draws, so that a lane which has to is late.
    is_ahead: bool,
    /// Arrivals that were needed before they were drawn.
    pub(super) late: AtomicU64,
    /// Nanoseconds of processor time that the thread has taken.
    pub(super) cpu: AtomicU64,
    pub(super) barrier: OnceLock<Replaying>,
    /// Where a peer answers what the device sends.
    pub(super) replies: Option<Arc<Replies>>,
    pub(in crate::backend::sim) sent: Vec<Arc<Sent>>,
    device: DeviceId,
}

/// Where arrivals come from.
#[expect(clippy::large_enum_variant, reason = "a device has one")]
pub(super) enum Supply {
    Drawer(Mutex<Drawer>),
    /// Everything was drawn before the run.
    Drawn(DrawnArrivals),
}

/// One receive queue, on cache lines of its own.
#[repr(align(128))]
pub(super) struct QueueState {
    pub(super) state: Mutex<Polled>,
    pub(super) arrivals: Arrivals,
}

pub(super) struct Polled {
    pub(super) placement: Placement,
    /// The latest poll, or rewriting of the table.
    seen: Option<u64>,
}

impl Pump {
    /// A NIC of `config` behind `table`, for which nothing is drawn yet. With a clock, [`Pump::start_drawing`] is
    /// called.
    pub(in crate::backend::sim) fn new(
        config: &SimConfig,
        source: Box<dyn Source>,
        table: &[QueueId],
        pool: &Mempool,
        clock: Option<Arc<dyn ClockSource>>,
        replies: Option<Arc<Replies>>,
    ) -> Pump {
        let mut drawer = Drawer::new(config, source, pool);
        let first = drawer.tail().clone();
        if clock.is_some() {
            drawer.draw(AHEAD.as_nanos() as u64, AT_ONCE);
        }
        Pump::of(config, Supply::Drawer(Mutex::new(drawer)), &first, table, clock, replies)
    }

    /// The same with all that arrives.
    pub(in crate::backend::sim) fn with_drawn(
        config: &SimConfig,
        drawn: &DrawnArrivals,
        table: &[QueueId],
        clock: Arc<dyn ClockSource>,
    ) -> Pump {
        let supply = Supply::Drawn(drawn.clone());
        Pump::of(config, supply, drawn.first(), table, Some(clock), None)
    }

    fn of(
        config: &SimConfig,
        supply: Supply,
        first: &Arc<Link>,
        table: &[QueueId],
        clock: Option<Arc<dyn ClockSource>>,
        replies: Option<Arc<Replies>>,
    ) -> Pump {
        let descriptors = config.descriptors.next_power_of_two() as usize;
        let queue = |number| {
            let placement = Placement::new(QueueId(number), descriptors, table, first.clone());
            let placement = match &replies {
                Some(replies) => placement.with_replies(Answering::new(replies.clone())),
                None => placement,
            };
            let state = Mutex::new(Polled { placement, seen: None });
            QueueState { state, arrivals: Arrivals::default() }
        };
        let origin = match config.pacing {
            Pacing::OpenLoop { origin: Some(origin) } => origin.as_nanos(),
            _ => NOT_STARTED,
        };
        Pump {
            queues: (0..config.queues).map(queue).collect(),
            is_ahead: clock.is_some() && matches!(supply, Supply::Drawer(_)),
            supply,
            clock,
            origin: AtomicU64::new(origin),
            awaits_begin: AtomicBool::new(false),
            stamping: config.pacing.stamping(),
            latest: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            late: AtomicU64::new(0),
            cpu: AtomicU64::new(0),
            barrier: OnceLock::new(),
            replies,
            sent: (0..config.queues).map(|_| Arc::default()).collect(),
            device: config.device,
        }
    }

    /// Has all queues that no thread is polling look for the replies that were due by `now`.
    pub(in crate::backend::sim) fn fetch_replies(&self, now: Time) {
        let now = now.as_nanos();
        self.catch_up(None, now.saturating_add(1), self.start(now));
    }

    /// With open-loop pacing, packets are stamped with the time at which they are due.
    pub(super) fn stamping(&self) -> Stamping<'static> {
        self.stamping
    }

    /// A poll of a queue: places what has arrived, and takes what fits into `burst`. Nothing, while another thread has
    /// the queue.
    pub(super) fn poll(
        &self,
        queue: usize,
        burst: &mut Burst,
        pool: &mut PoolCache,
        now: Time,
    ) -> usize {
        let Some(mut polled) = try_lock(&self.queues[queue].state) else { return 0 };
        let (now, origin) = self.bring(queue, &mut polled, now);
        let limit = burst.remaining_capacity();
        let place = (now, origin, self.device);
        let take = polled.placement.take(limit, place, pool, |packet| burst.push(packet));
        let (count, without_buffer) = take;
        self.queues[queue].arrivals.no_buffer.add(without_buffer as u64);
        count
    }

    /// Places what has arrived at a queue, and returns what a lane that has found nothing may do: the next packet is not
    /// announced, so the lane sleeps until it is due.
    pub(super) fn look(&self, queue: usize, now: Time) -> Rest {
        let mut polled = lock(&self.queues[queue].state);
        let (now, origin) = self.bring(queue, &mut polled, now);
        if polled.placement.backlog() > 0 {
            return Rest::Awake;
        }
        let due = polled.placement.next_due().map(|due| origin.saturating_add(due));
        let reply = polled.placement.next_reply(now);
        let due = due.map(|due| reply.map_or(due, |reply| reply.min(due)));
        // What is due and not drawn is being drawn by another thread.
        due.filter(|due| *due > now).map_or(Rest::Nap, |due| Rest::Until(Time::from_nanos(due)))
    }

    /// Packets that wait in a queue, as of its latest poll or the latest rewriting of the table, if that was later.
    pub(super) fn backlog(&self, queue: usize) -> usize {
        let mut polled = lock(&self.queues[queue].state);
        let until = polled.seen.map_or(0, |seen| seen.saturating_add(1));
        if polled.placement.placed() < until && !polled.placement.has_ended() {
            let origin = self.start(until);
            while self.place(queue, &mut polled, (until, origin), usize::MAX) == Drawn::Elsewhere {
                std::thread::yield_now();
            }
        }
        polled.placement.backlog()
    }

    /// Places a queue's arrivals up to `now`. Returns that and the start of the source.
    fn bring(&self, queue: usize, polled: &mut Polled, now: Time) -> (u64, u64) {
        let now = now.as_nanos();
        let origin = self.start(now);
        polled.seen = polled.seen.max(Some(now));
        if self.clock.is_none() {
            // Relaxed: a figure that orders nothing.
            self.latest.fetch_max(now, Ordering::Relaxed);
        }
        let most = if self.is_ahead { AT_ONCE } else { usize::MAX };
        self.place(queue, polled, (now.saturating_add(1), origin), most);
        (now, origin)
    }

    /// Places a queue's arrivals that are due before `until`; draws at most `most` for it if none are drawn.
    pub(super) fn place(
        &self,
        queue: usize,
        polled: &mut Polled,
        (until, origin): (u64, u64),
        mut most: usize,
    ) -> Drawn {
        loop {
            self.count(queue, polled.placement.place(until, origin));
            if polled.placement.placed() >= until || polled.placement.has_ended() {
                self.look_for_the_end(polled, until, origin);
                return Drawn::All;
            }
            if most == 0 {
                return Drawn::Part;
            }
            match self.draw(queue, until, origin, most) {
                Some(drawn) => most -= drawn.min(most),
                None => return Drawn::Elsewhere,
            }
        }
    }

    /// Where everything was drawn before the run, more may have been wanted.
    fn look_for_the_end(&self, polled: &Polled, until: u64, origin: u64) {
        if let Supply::Drawn(drawn) = &self.supply
            && drawn.is_cut()
            && until.saturating_sub(origin) > drawn.end()
            && !polled.placement.is_stopped()
        {
            self.late.store(1, Ordering::Relaxed);
        }
    }

    fn count(&self, queue: usize, placed: Placed) {
        if placed == Placed::default() {
            return;
        }
        let arrivals = &self.queues[queue].arrivals;
        arrivals.arrived.add(placed.arrived);
        arrivals.arrived_bytes.add(placed.arrived_bytes);
        arrivals.queue_full.add(placed.dropped);
        arrivals.oversize.add(placed.oversize);
        if let Some(Replaying { barrier, .. }) = self.barrier.get() {
            barrier.deliver(placed.enqueued);
        }
    }

    /// Draws up to `most` arrivals that are due before `until`, and returns how many; `None` while another thread draws.
    fn draw(&self, queue: usize, until: u64, origin: u64, most: usize) -> Option<usize> {
        let Supply::Drawer(drawer) = &self.supply else { return None };
        let mut drawer = try_lock(drawer)?;
        let before = drawer.drawn();
        drawer.draw(until.saturating_sub(origin), most.min(AT_ONCE));
        let drawn = drawer.drawn() - before;
        if self.is_ahead {
            self.late.fetch_add(drawn, Ordering::Relaxed);
        }
        if drawer.held_bytes() > WINDOW {
            self.catch_up(Some(queue), until, origin);
        }
        Some(drawn as usize)
    }

    /// Makes queues that were not polled for long pass what was due, so that it can be freed.
    fn catch_up(&self, but: Option<usize>, until: u64, origin: u64) {
        for (number, queue) in self.queues.iter().enumerate() {
            if Some(number) == but {
                continue;
            }
            if let Some(mut polled) = try_lock(&queue.state) {
                self.count(number, polled.placement.place(until, origin));
                polled.placement.compact();
            }
        }
    }

    /// Draws a little of what arrives within the next second, for a thread that does nothing else.
    fn draw_ahead(&self, clock: &dyn ClockSource) -> Pause {
        let Supply::Drawer(drawer) = &self.supply else { return Pause::End };
        let (now, origin) = (clock.now().as_nanos(), self.origin.load(Ordering::Relaxed));
        let elapsed = if origin == NOT_STARTED { 0 } else { now.saturating_sub(origin) };
        let mut drawer = lock(drawer);
        if drawer.has_ended() || self.is_stopped.load(Ordering::Relaxed) {
            return Pause::End;
        }
        let ahead = drawer.complete().saturating_sub(elapsed);
        if drawer.held_bytes() > WINDOW {
            if origin != NOT_STARTED {
                self.catch_up(None, now, origin);
            }
            let wait = Duration::from_nanos(ahead / 4);
            return Pause::Sleep(wait.clamp(Duration::from_millis(1), AHEAD / 4));
        }
        if ahead >= AHEAD.as_nanos() as u64 {
            return Pause::Sleep(AHEAD / 4);
        }
        drawer.draw(elapsed + AHEAD.as_nanos() as u64, AT_ONCE);
        // Lanes that have nothing left come first.
        Pause::Yield
    }

    /// Starts the thread that draws ahead of a run without end.
    ///
    /// # Errors
    /// What the operating system said.
    pub(in crate::backend::sim) fn start_drawing(
        self: Arc<Pump>,
        name: &str,
        clock: Arc<dyn ClockSource>,
    ) -> std::io::Result<NicThread> {
        NicThread::start(format!("source {name}"), move || {
            let pause = self.draw_ahead(&*clock);
            if pause != Pause::Yield {
                let cpu = clock_gettime(ClockId::ThreadCPUTime);
                let cpu = Duration::new(cpu.tv_sec as u64, cpu.tv_nsec as u32);
                self.cpu.store(cpu.as_nanos() as u64, Ordering::Relaxed);
            }
            pause
        })
    }

    /// The start of the source: `now`, unless it has started; the end of time while it may not start.
    pub(super) fn start(&self, now: u64) -> u64 {
        let origin = self.origin.load(Ordering::Relaxed);
        if origin != NOT_STARTED || self.awaits_begin.load(Ordering::Relaxed) {
            return origin;
        }
        // Relaxed: a figure that orders nothing.
        let (set, seen) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.origin.compare_exchange(NOT_STARTED, now, set, seen) {
            Ok(_) => now,
            Err(started) => started,
        }
    }

    /// Places arrivals by `table` from now on: those that are due after the moment at which this thread has all queues' locks.
    pub(super) fn rewrite(&self, table: &[QueueId]) {
        let table: Arc<[QueueId]> = table.into();
        let mut queues: Vec<_> = self.queues.iter().map(|queue| lock(&queue.state)).collect();
        let at = self.present(&queues);
        for polled in &mut queues {
            polled.placement.rewrite(at, &table);
            polled.seen = polled.seen.max(at);
        }
        drop(queues);
        let Some(at) = at else { return };
        for (number, queue) in self.queues.iter().enumerate() {
            let mut polled = lock(&queue.state);
            if polled.placement.tables() > TABLES {
                let origin = self.start(at);
                self.place(number, &mut polled, (at.saturating_add(1), origin), usize::MAX);
            }
        }
    }

    /// The latest time that is known.
    pub(super) fn now(&self) -> u64 {
        let latest = self.latest.load(Ordering::Relaxed);
        self.clock.as_ref().map_or(latest, |clock| clock.now().as_nanos().max(latest))
    }

    /// The present, while no lane polls; `None` without a clock before the first poll.
    pub(super) fn present(&self, queues: &[MutexGuard<'_, Polled>]) -> Option<u64> {
        let clock = self.clock.as_ref().map(|clock| clock.now().as_nanos());
        queues.iter().filter_map(|polled| polled.seen).chain(clock).max()
    }
}

/// How far a queue could be brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawn {
    All,
    /// More is to be drawn than this call may.
    Part,
    /// Another thread is drawing.
    Elsewhere,
}
