//! What all lanes of a service share, and how it is steered from outside.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rheostat_base::sync::calls::Calls;
use rheostat_base::{LaneId, ShardId};
use rheostat_run::{HomeDeadlines, LaneNotifier, Metrics};
use rheostat_tcp::{InitialNumbers, MemoryBudget, SynCookies};

use crate::budget::Budget;
use crate::config::{ListenerConfig, ServeConfig};
use crate::cookies_under_way::CookiesUnderWay;
use crate::counters::{Counters, Totals};
use crate::inspection::{ConnectionFilter, ConnectionList, ConnectionRecord, Inspection};
use crate::scarcity::Scarcity;
use crate::times::{RequestTimes, TimesRecord};

/// Shards of a run at most: all that a [`ShardId`] can name.
const SHARDS: usize = 1 << 16;

/// Adds the counts of an application.
pub(crate) type ReadMetrics = Arc<dyn Fn(&mut Metrics) + Send + Sync>;

/// What all lanes of a service share.
pub(crate) struct Shared {
    /// Adds the application's own counts.
    metrics: ReadMetrics,
    pub(crate) budget: Budget,
    pub(crate) numbers: InitialNumbers,
    /// What lanes begin with: each lane has keys of its own, which are the same.
    pub(crate) syn_cookies: SynCookies,
    pub(crate) cookies: CookiesUnderWay,
    pub(crate) listeners: Vec<ListenerConfig>,
    counters: Vec<Arc<Counters>>,
    /// What the connections of each shard may take.
    pub(crate) shards: Mutex<Vec<Arc<MemoryBudget>>>,
    /// Publishes nothing: every lane looks at it now and then.
    draining: AtomicBool,
    /// For each lane, what it has to look at.
    inboxes: Vec<Inbox>,
    notifiers: OnceLock<Vec<LaneNotifier>>,
    /// What lanes find out about the times of requests, if they do, and how many of the slowest are wanted.
    pub(crate) times: OnceLock<(Vec<Arc<Mutex<TimesRecord>>>, usize)>,
    /// Shards for which another thread has something to be done.
    pub(crate) calls: Calls,
    /// Deadlines in shards that lanes own together.
    pub(crate) deadlines: HomeDeadlines,
    /// Whether memory for connections is scarce.
    pub(crate) scarcity: Scarcity,
}

/// Inspections that a lane has not begun.
#[derive(Debug, Default)]
struct Inbox {
    /// Whether there are any, so that a lane need not lock to know.
    is_full: AtomicBool,
    waiting: Mutex<Vec<Arc<Inspection>>>,
}

impl Shared {
    pub(crate) fn new(
        metrics: ReadMetrics,
        listeners: Vec<ListenerConfig>,
        limits: ServeConfig,
        lanes: usize,
        secret: &[u8; 16],
    ) -> Shared {
        Shared {
            metrics,
            budget: Budget::new(limits),
            numbers: InitialNumbers::new(secret),
            syn_cookies: SynCookies::new(secret),
            cookies: CookiesUnderWay::default(),
            listeners,
            counters: (0..lanes).map(|_| Arc::default()).collect(),
            shards: Mutex::default(),
            draining: AtomicBool::new(false),
            inboxes: (0..lanes).map(|_| Inbox::default()).collect(),
            notifiers: OnceLock::new(),
            times: OnceLock::new(),
            calls: Calls::new(SHARDS),
            deadlines: HomeDeadlines::new(lanes, SHARDS),
            scarcity: Scarcity::new(lanes),
        }
    }

    pub(crate) fn limits(&self) -> &ServeConfig {
        self.budget.limits()
    }

    pub(crate) fn counters(&self, lane: LaneId) -> Arc<Counters> {
        self.counters[lane.index()].clone()
    }

    /// Whether a lane has inspections to begin.
    pub(crate) fn has_inspections(&self, lane: LaneId) -> bool {
        // Acquire: pairs with the Release in `inspect`, behind which the lane's wake-up comes.
        self.inboxes[lane.index()].is_full.load(Ordering::Acquire)
    }

    /// The inspections that a lane has to begin.
    pub(crate) fn take_inspections(&self, lane: LaneId) -> Vec<Arc<Inspection>> {
        let inbox = &self.inboxes[lane.index()];
        let mut waiting = inbox.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        inbox.is_full.store(false, Ordering::Relaxed);
        std::mem::take(&mut waiting)
    }

    fn inspect(&self, inspection: &Arc<Inspection>) {
        for inbox in &self.inboxes {
            let mut waiting = inbox.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push(inspection.clone());
            inbox.is_full.store(true, Ordering::Release);
        }
        self.wake();
    }

    /// Wakes the lanes that sleep. Without notifiers they look by themselves within half a second.
    fn wake(&self) {
        self.notifiers.get().into_iter().flatten().for_each(LaneNotifier::wake);
    }

    /// Memory was refused to a connection, or one has exceeded its limit: lanes look for connections to end.
    #[cold]
    pub(crate) fn note_scarcity(&self) {
        if self.scarcity.note() {
            self.wake();
        }
    }

    /// How many lanes there are.
    pub(crate) fn lanes(&self) -> usize {
        self.counters.len()
    }

    /// How many shards there are; none before they are made.
    pub(crate) fn shard_count(&self) -> usize {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Wakes a lane, if it sleeps.
    pub(crate) fn wake_lane(&self, lane: LaneId) {
        let notifiers = self.notifiers.get().into_iter().flatten();
        notifiers.skip(lane.index()).take(1).for_each(LaneNotifier::wake);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// Looks at a running service from outside, and ends it.
#[derive(Clone)]
pub struct ServeControl(pub(crate) Arc<Shared>);

impl ServeControl {
    /// Ends the service in good order: listeners refuse connections, those that are idle are closed, and the others when the
    /// request at hand is answered. Lanes notice at once, or within half a second if
    /// [`ServeControl::wake_by`] was not called.
    pub fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
        self.0.wake();
    }

    /// Lets lanes that sleep learn at once of what is wanted of them.
    pub fn wake_by(&self, notifiers: Vec<LaneNotifier>) {
        let _ = self.0.notifiers.set(notifiers);
    }

    /// Has [`Handler::called`](crate::Handler::called) come on the lane that has `shard`, wherever that is by then. Never blocks.
    pub fn call(&self, shard: ShardId) {
        self.0.calls.call(shard.index());
        self.0.wake();
    }

    /// How many shards there are; none before they are made.
    pub fn shards(&self) -> usize {
        self.0.shard_count()
    }

    /// Lists connections, `most` of them at most. Each lane looks at 256 places between packets; those that have not answered
    /// after `timeout` are counted.
    pub fn list(&self, filter: ConnectionFilter, most: usize, timeout: Duration) -> ConnectionList {
        let inspection = Arc::new(Inspection::new(filter, most));
        self.0.inspect(&inspection);
        inspection.wait(self.0.inboxes.len(), timeout)
    }

    /// Calls `each` with the connections that the filter lets pass, in no order, as lanes come by them; one that moves meanwhile may
    /// come twice. Keeps no connection longer than `each` takes for the ones before. Returns how many lanes have not answered after
    /// `timeout`.
    pub fn visit(
        &self,
        filter: ConnectionFilter,
        timeout: Duration,
        each: impl FnMut(ConnectionRecord),
    ) -> usize {
        let inspection = Arc::new(Inspection::new(filter, usize::MAX));
        self.0.inspect(&inspection);
        inspection.drain(self.0.inboxes.len(), timeout, each)
    }

    /// Connections that are not closed, half-open ones included.
    pub fn connections(&self) -> usize {
        self.0.budget.taken()[0]
    }

    /// Connections whose handshake goes on. Of SYNs answered with cookies, nothing is known.
    pub fn half_open(&self) -> usize {
        self.0.budget.taken()[1]
    }

    /// Closed connections in TIME-WAIT.
    pub fn time_wait(&self) -> usize {
        self.0.budget.taken()[2]
    }

    /// Bytes allocated for data of connections.
    pub fn memory(&self) -> usize {
        self.0.budget.memory().used()
    }

    /// Bytes allocated for data of each shard's connections, without what applications are in the middle of.
    pub fn shard_memory(&self) -> Vec<usize> {
        let shards = self.0.shards.lock().unwrap_or_else(PoisonError::into_inner);
        shards.iter().map(|shard| shard.used()).collect()
    }

    /// Whether memory is scarce: windows close, and SYNs are dropped.
    pub fn is_under_pressure(&self) -> bool {
        self.0.budget.memory().is_under_pressure()
    }

    /// Where the time of requests went so far, if they are [timed](crate::TcpServer::timing).
    pub fn request_times(&self) -> Option<RequestTimes> {
        let (records, slowest) = self.0.times.get()?;
        let locked =
            records.iter().map(|record| record.lock().unwrap_or_else(PoisonError::into_inner));
        Some(RequestTimes::of(locked, *slowest))
    }

    /// What the application has counted by itself ([`Application::metrics`](crate::Application::metrics)).
    pub fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::default();
        (self.0.metrics)(&mut metrics);
        metrics
    }

    /// What all lanes have counted.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.0.counters.iter().for_each(|lane| totals.add(lane));
        totals
    }
}

impl std::fmt::Debug for ServeControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeControl").field("connections", &self.connections()).finish()
    }
}
