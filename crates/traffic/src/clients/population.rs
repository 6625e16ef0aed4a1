//! All clients, by bucket of the indirection table.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::{QueueId, Time};
use rheostat_packet::{FlowKey, HashKind};
use rheostat_steer::Steering;

use super::ClientsConfig;
use super::client::ExchangeClient;
use super::counters::ClientCounters;
use super::frame::Ends;
use super::side::ClientSide;

/// Where a client is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PopulationPlace {
    pub(super) bucket: u16,
    pub(super) index: u32,
}

/// All clients.
pub(super) struct Population {
    pub(super) config: ClientsConfig,
    /// What hashes of their packets cover.
    pub(super) covered: HashKind,
    /// A lock is held for a packet at a time; nothing else is locked meanwhile.
    buckets: Vec<PopulationBucket>,
    /// By number.
    places: Vec<PopulationPlace>,
    entries: Vec<AtomicU16>,
    /// Counted up when the entries have changed.
    pub(super) generation: AtomicU64,
    pub(super) queues: Vec<QueueShare>,
    pub(super) is_stopped: AtomicBool,
}

/// The clients of a bucket. Neighbours belong to different lanes, so that no line of a lock, nor the one that is fetched with
/// it, may be another's.
#[repr(align(128))]
struct PopulationBucket(Mutex<Vec<ExchangeClient>>);

/// What others see of a queue.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct QueueShare {
    pub(super) counters: Arc<ClientCounters>,
    /// Requests under way that this queue has made.
    pub(super) under_way: AtomicI64,
    /// Connections that it has begun to open and that are not.
    pub(super) half_open: AtomicI64,
    /// Clients that want to send, whose bucket came here from another queue.
    pub(super) came: Mutex<Vec<(Time, PopulationPlace)>>,
    pub(super) has_come: AtomicBool,
    /// What its lane works with.
    pub(super) side: Mutex<ClientSide>,
}

impl Population {
    pub(super) fn new(config: ClientsConfig, steering: &Steering) -> Population {
        let buckets = steering.buckets();
        let mut clients: Vec<Vec<ExchangeClient>> = (0..buckets).map(|_| Vec::new()).collect();
        let mut places = Vec::with_capacity(config.connections as usize);
        let mut covered = HashKind::default();
        for number in 0..config.connections {
            let (client, server) = (address_of(&config, number), config.server);
            let key = steering.orient(config.device, FlowKey::v4(client, server, 6, 0)).key;
            covered = steering.kind_of(&key);
            let hash = steering.hash(&key, covered);
            let bucket = steering.bucket_of_hash(hash);
            let index = clients[bucket].len() as u32;
            places.push(PopulationPlace { bucket: bucket as u16, index });
            clients[bucket].push(ExchangeClient::new(number, hash));
        }
        clients.iter_mut().for_each(Vec::shrink_to_fit);
        let queues = config.queues;
        let entries = (0..buckets).map(|bucket| AtomicU16::new((bucket % queues) as u16));
        let share = |queue| QueueShare {
            side: Mutex::new(ClientSide::new(&config, queue)),
            ..QueueShare::default()
        };
        Population {
            covered,
            buckets: clients.into_iter().map(|own| PopulationBucket(Mutex::new(own))).collect(),
            places,
            entries: entries.collect(),
            generation: AtomicU64::new(1),
            queues: (0..queues).map(share).collect(),
            is_stopped: AtomicBool::new(false),
            config,
        }
    }

    pub(super) fn bucket(&self, bucket: u16) -> MutexGuard<'_, Vec<ExchangeClient>> {
        // A client stays a client, whatever panicked.
        self.buckets[usize::from(bucket)].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client with these ends.
    pub(super) fn find(
        &self,
        client: (Ipv4Addr, u16),
        server: (Ipv4Addr, u16),
    ) -> Option<PopulationPlace> {
        let config = &self.config;
        let address = client.0.to_bits().checked_sub(config.first_address.to_bits())?;
        let port = u32::from(client.1.checked_sub(FIRST_PORT)?);
        let is_one = server == config.server && port < ClientsConfig::PORTS;
        let number = address.checked_mul(ClientsConfig::PORTS)?.checked_add(port)?;
        self.places.get(number as usize).filter(|_| is_one).copied()
    }

    /// The ends of a client.
    pub(super) fn ends(&self, number: u32) -> Ends {
        let ClientsConfig { macs, server, .. } = self.config;
        Ends { macs, client: address_of(&self.config, number), server }
    }

    /// The queue of a bucket now.
    pub(super) fn queue_of(&self, bucket: u16) -> usize {
        // Relaxed: a queue that sees a rewrite late is waited for by the rewrite.
        self.entries[usize::from(bucket)].load(Ordering::Relaxed).into()
    }

    pub(super) fn buckets(&self) -> usize {
        self.entries.len()
    }

    /// The clients of a queue as the table is now.
    pub(super) fn of_queue(&self, queue: usize) -> Vec<PopulationPlace> {
        let own = (0..self.buckets() as u16).filter(|bucket| self.queue_of(*bucket) == queue);
        own.flat_map(|bucket| {
            let count = self.bucket(bucket).len() as u32;
            (0..count).map(move |index| PopulationPlace { bucket, index })
        })
        .collect()
    }

    pub(super) fn entries(&self) -> Vec<QueueId> {
        self.entries.iter().map(|entry| QueueId(entry.load(Ordering::Relaxed))).collect()
    }

    /// Places buckets anew. No frame is made by the old entries when this returns.
    pub(super) fn rewrite(&self, entries: &[QueueId]) {
        for (entry, queue) in self.entries.iter().zip(entries) {
            entry.store(queue.0, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire of a queue that begins to make frames.
        self.generation.fetch_add(1, Ordering::Release);
        for queue in &self.queues {
            // Those that were under way are made.
            drop(queue.side());
        }
    }
}

impl QueueShare {
    pub(super) fn side(&self) -> MutexGuard<'_, ClientSide> {
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const FIRST_PORT: u16 = 1_024;

fn address_of(config: &ClientsConfig, number: u32) -> (Ipv4Addr, u16) {
    let (address, port) = (number / ClientsConfig::PORTS, number % ClientsConfig::PORTS);
    let address = Ipv4Addr::from_bits(config.first_address.to_bits() + address);
    (address, FIRST_PORT + port as u16)
}
