//! The log of mappings: which host had which external endpoint, and when (RFC 6888, section 4). Events leave
//! the shards over rings, so that no packet waits for a disk.
#![expect(
    clippy::disallowed_types,
    reason = "held before the first packet, and by the reader: lanes have rings"
)]

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rheostat_base::Time;
use rheostat_base::sync::spsc::{self, Consumer, Producer};

/// Events that a shard may be ahead of the reader.
const RING: usize = 4_096;

/// Whether an endpoint was given out or taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MappingChange {
    /// Given out.
    Created,
    /// Taken back.
    Ended,
}

/// An external endpoint changes hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingEvent {
    /// When.
    pub time: Time,
    /// Which way.
    pub change: MappingChange,
    /// The IP protocol.
    pub protocol: u8,
    /// Whose it is.
    pub inner: (Ipv4Addr, u16),
    /// What stands for it.
    pub external: (Ipv4Addr, u16),
    /// The only endpoint it stands for it to, if there is only one.
    pub remote: Option<(Ipv4Addr, u16)>,
}

/// The reader's end of all shards' logs.
#[derive(Clone, Debug, Default)]
pub struct MappingLog {
    rings: Arc<Mutex<Vec<Consumer<MappingEvent>>>>,
}

impl MappingLog {
    /// A log of nothing yet.
    pub fn new() -> MappingLog {
        MappingLog::default()
    }

    /// The end for one more shard; before the first packet, or when a shard gets another log.
    pub(super) fn open(&self) -> LogEnd {
        let (producer, consumer) = spsc::ring(RING);
        self.rings().push(consumer);
        LogEnd { ring: producer, log: self.clone() }
    }

    /// Takes the events so far, in order for each shard. Returns how many there were.
    pub fn drain(&self, mut read: impl FnMut(MappingEvent)) -> usize {
        // A shard that opens an end meanwhile does not wait for what `read` writes.
        let mut rings = std::mem::take(&mut *self.rings());
        let events = rings.iter_mut().map(|ring| ring.pop_each(RING, &mut read)).sum();
        let mut opened = self.rings();
        rings.append(&mut opened);
        *opened = rings;
        events
    }

    fn rings(&self) -> MutexGuard<'_, Vec<Consumer<MappingEvent>>> {
        // Held for a moment by the reader, and by threads that open ends.
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shard's end.
#[derive(Debug)]
pub(super) struct LogEnd {
    ring: Producer<MappingEvent>,
    log: MappingLog,
}

impl LogEnd {
    /// Whether it is an end of this log.
    pub(super) fn is_of(&self, log: &MappingLog) -> bool {
        Arc::ptr_eq(&self.log.rings, &log.rings)
    }

    /// Notes an event; `false` when the reader is too far behind, and the event is lost.
    pub(super) fn note(&mut self, event: MappingEvent) -> bool {
        self.ring.push(event).is_ok()
    }
}
