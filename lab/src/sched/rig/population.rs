//! All clients, and what the ends of queues share.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::{ClockSource, DeviceId};
use rheostat_packet::{FlowKey, HashKind};
use rheostat_steer::Steering;
use rheostat_traffic::clients::frame::Ends;

use super::client::RigClient;
use super::counters::{RigCounters, RigTotals};
use super::request_frame::RequestFrame;
use super::samples::Samples;
use super::schedule::Plan;
use super::stages::Stages;

/// The first port of a client.
const FIRST_PORT: u16 = 1_024;
/// Clients at most.
pub(crate) const MOST_CLIENTS: u32 = 16_384;

/// What clients are.
#[derive(Clone, Debug)]
pub(crate) struct RigConfig {
    pub(crate) device: DeviceId,
    /// Receive queues.
    pub(crate) queues: usize,
    /// Connections, spread evenly over the queues.
    pub(crate) connections: u32,
    /// The link addresses of the clients' router and of the server.
    pub(crate) macs: [[u8; 6]; 2],
    /// The address of all clients.
    pub(crate) client: Ipv4Addr,
    /// Where the service is.
    pub(crate) server: (Ipv4Addr, u16),
    /// Whether replies are those of a probe, whose stages are recorded.
    pub(crate) records_stages: bool,
}

/// All clients.
pub(super) struct Population {
    pub(super) config: RigConfig,
    pub(super) clock: Arc<dyn ClockSource>,
    pub(super) frame: RequestFrame,
    /// What hashes of their packets cover.
    pub(super) covered: HashKind,
    /// A lock is held for a packet at a time.
    clients: Vec<ConnectionSlot>,
    /// The receive queue of each.
    pub(super) queue_of: Vec<u16>,
    /// By port, from the first on.
    by_port: Vec<Option<u32>>,
    pub(super) queues: Vec<QueueShare>,
    plan: Mutex<Arc<Plan>>,
    /// Counted up when the plan has changed.
    pub(super) generation: AtomicU64,
    pub(super) is_stopped: AtomicBool,
}

/// Two lanes may have to do with one client under some schedulers; no two clients share a line, nor one that is fetched with it.
#[repr(align(128))]
struct ConnectionSlot(Mutex<RigClient>);

/// What the two ends of a queue share, and others see of it.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct QueueShare {
    pub(super) receiving: RigCounters,
    pub(super) transmitting: RigCounters,
    /// Requests under way on clients of this receive queue.
    pub(super) under_way: AtomicI64,
    /// Connections of this receive queue that are open.
    pub(super) opened: AtomicUsize,
    /// Clients of this receive queue that have something to send.
    pub(super) ready: Mutex<Vec<u32>>,
    pub(super) is_ready: AtomicBool,
    /// What was sent through this transmit queue.
    pub(super) samples: Mutex<Samples>,
    /// When the latest poll that brought something had ended, in ticks.
    pub(super) received_at: AtomicU64,
    /// Of what was sent through this transmit queue, as far as its capacity reaches.
    pub(super) stages: Mutex<Vec<Stages>>,
}

impl Population {
    /// `None` when there are not enough ports for so many clients that are spread evenly.
    pub(super) fn new(
        config: RigConfig,
        steering: &Steering,
        clock: Arc<dyn ClockSource>,
    ) -> Option<Population> {
        let mut missing: Vec<u32> =
            (0..config.queues as u32).map(|queue| share(&config, queue)).collect();
        let (mut clients, mut queue_of) = (Vec::new(), Vec::new());
        let mut by_port = vec![None; usize::from(u16::MAX - FIRST_PORT)];
        let mut covered = HashKind::default();
        for (place, slot) in by_port.iter_mut().enumerate() {
            if clients.len() as u32 == config.connections {
                break;
            }
            let port = FIRST_PORT + place as u16;
            let key = FlowKey::v4((config.client, port), config.server, 6, 0);
            let key = steering.orient(config.device, key).key;
            covered = steering.kind_of(&key);
            let hash = steering.hash(&key, covered);
            let queue = steering.bucket_of_hash(hash) % config.queues;
            if let Some(left) = missing[queue].checked_sub(1) {
                missing[queue] = left;
                *slot = Some(clients.len() as u32);
                queue_of.push(queue as u16);
                clients.push(ConnectionSlot(Mutex::new(RigClient::new(port, hash))));
            }
        }
        if (clients.len() as u32) < config.connections {
            return None;
        }
        Some(Population {
            clock,
            frame: RequestFrame::new(config.macs, config.client, config.server),
            covered,
            clients,
            queue_of,
            by_port,
            queues: (0..config.queues).map(|_| QueueShare::default()).collect(),
            plan: Mutex::new(Arc::new(Plan::Idle)),
            generation: AtomicU64::new(0),
            is_stopped: AtomicBool::new(false),
            config,
        })
    }

    pub(super) fn client(&self, number: u32) -> MutexGuard<'_, RigClient> {
        lock(&self.clients[number as usize].0)
    }

    /// The client with these ends.
    pub(super) fn find(&self, client: (Ipv4Addr, u16), server: (Ipv4Addr, u16)) -> Option<u32> {
        if (client.0, server) != (self.config.client, self.config.server) {
            return None;
        }
        let place = usize::from(client.1.checked_sub(FIRST_PORT)?);
        self.by_port.get(place).copied().flatten()
    }

    pub(super) fn ends(&self, port: u16) -> Ends {
        let RigConfig { macs, client, server, .. } = self.config;
        Ends { macs, client: (client, port), server }
    }

    /// The clients of a receive queue.
    pub(super) fn of_queue(&self, queue: usize) -> Vec<u32> {
        let own = |number: &u32| usize::from(self.queue_of[*number as usize]) == queue;
        (0..self.clients.len() as u32).filter(own).collect()
    }

    /// Has the queue of a client look at it.
    pub(super) fn announce(&self, number: u32) {
        let share = &self.queues[usize::from(self.queue_of[number as usize])];
        lock(&share.ready).push(number);
        // Relaxed: what is ready is behind the lock.
        share.is_ready.store(true, Ordering::Relaxed);
    }

    pub(super) fn set_plan(&self, plan: Plan) {
        *lock(&self.plan) = Arc::new(plan);
        // Relaxed: the plan is behind the lock; one that is seen late begins late.
        self.generation.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn plan(&self) -> Arc<Plan> {
        lock(&self.plan).clone()
    }

    pub(super) fn totals(&self) -> RigTotals {
        let mut totals = RigTotals::default();
        for queue in &self.queues {
            totals.add(&queue.receiving);
            totals.add(&queue.transmitting);
        }
        totals
    }
}

/// How many of the clients a queue has.
fn share(config: &RigConfig, queue: u32) -> u32 {
    let queues = config.queues as u32;
    config.connections / queues + u32::from(queue < config.connections % queues)
}

/// A client stays a client, whatever panicked.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
