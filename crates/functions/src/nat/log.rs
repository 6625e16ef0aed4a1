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

    /// The end for one more shard; before the first packet.
    pub(super) fn open(&self) -> LogEnd {
        let (producer, consumer) = spsc::ring(RING);
        self.rings().push(consumer);
        LogEnd(producer)
    }

    /// Takes the events so far, in order for each shard. Returns how many there were.
    pub fn drain(&self, mut read: impl FnMut(MappingEvent)) -> usize {
        self.rings().iter_mut().map(|ring| ring.pop_each(RING, &mut read)).sum()
    }

    fn rings(&self) -> MutexGuard<'_, Vec<Consumer<MappingEvent>>> {
        // Held by the reader and, before the first packet, by threads that open ends.
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shard's end.
#[derive(Debug)]
pub(super) struct LogEnd(Producer<MappingEvent>);

impl LogEnd {
    /// Notes an event; `false` when the reader is too far behind, and the event is lost.
    pub(super) fn note(&mut self, event: MappingEvent) -> bool {
        self.0.push(event).is_ok()
    }
}
