//! Draws arrivals from a source, ahead of time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rheostat_base::Time;
use rheostat_packet::Mempool;
use rheostat_packet::mbuf::MAX_SEGMENTS;

use super::arrivals::{Chunk, Pulled};
use super::chunk_list::{ALL, Link};
use crate::backend::sim::SimConfig;
use crate::backend::sim::pacing::{Pacing, Schedule, Slot};
use crate::backend::sim::packet_hash::PacketHasher;
use crate::{Arrival, Source};

/// Most arrivals of a chunk.
const CHUNK: usize = 4_096;

/// A source, and what has been drawn of it.
pub(super) struct Drawer {
    source: Box<dyn Source>,
    schedule: Schedule,
    hasher: PacketHasher,
    /// The longest packet of the pool, and how much of it fits into one buffer.
    longest: usize,
    room: usize,
    /// Whether packets keep the stamps of a capture.
    keeps_stamps: bool,
    /// The arrival that was pulled last and belongs to no chunk yet; its bytes are in `bytes`.
    next: Option<(Slot, Arrival)>,
    bytes: Vec<u8>,
    /// When the last arrival was due.
    last_due: u64,
    /// Arrivals so far.
    drawn: u64,
    has_ended: bool,
    tail: Arc<Link>,
    held: Arc<AtomicUsize>,
}

impl Drawer {
    /// Nothing is drawn yet. The list of chunks starts with [`Drawer::tail`].
    pub(super) fn new(config: &SimConfig, source: Box<dyn Source>, pool: &Mempool) -> Drawer {
        // On a clock that starts with the source, whenever that is.
        let pacing = match config.pacing {
            Pacing::OpenLoop { .. } => Pacing::OpenLoop { origin: Some(Time::ZERO) },
            other => other,
        };
        let held = Arc::default();
        Drawer {
            source,
            schedule: Schedule::new(pacing, config.link_rate),
            hasher: PacketHasher::new(config),
            longest: pool.longest_packet(),
            room: pool.longest_packet() / MAX_SEGMENTS,
            keeps_stamps: matches!(pacing, Pacing::Replay { .. }),
            next: None,
            bytes: Vec::new(),
            last_due: 0,
            drawn: 0,
            has_ended: false,
            tail: Link::new(Chunk::default(), 0, &held),
            held,
        }
    }

    /// The last chunk.
    pub(super) fn tail(&self) -> &Arc<Link> {
        &self.tail
    }

    /// Arrivals drawn so far.
    pub(super) fn drawn(&self) -> u64 {
        self.drawn
    }

    /// Everything that is due before is drawn; in nanoseconds from the start of the source.
    pub(super) fn complete(&self) -> u64 {
        self.tail.complete()
    }

    /// When the last arrival so far is due.
    pub(super) fn last_due(&self) -> u64 {
        self.last_due
    }

    /// Whether there are no more.
    pub(super) fn has_ended(&self) -> bool {
        self.complete() == ALL
    }

    /// Bytes of the chunks that some queue still needs.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// How much of the source has been drawn, where the source knows.
    pub(super) fn progress(&self) -> Option<f64> {
        self.source.progress()
    }

    /// Draws what is due before `end`, at most `most` arrivals. Afterwards [`Drawer::complete`] is `end` or later,
    /// unless there were more.
    pub(super) fn draw(&mut self, end: u64, mut most: usize) {
        while self.complete() < end && most > 0 {
            let count = most.min(CHUNK);
            self.draw_chunk(end, count);
            most -= count;
        }
    }

    /// Nothing more is drawn.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        self.next = None;
        self.tail.set_complete(ALL);
    }

    fn draw_chunk(&mut self, end: u64, most: usize) {
        let mut chunk = Chunk::with_capacity(most.min(64));
        while chunk.records().len() < most {
            let Some((slot, arrival)) = self.pull() else { break };
            let due = slot.due.as_nanos().max(self.last_due);
            if due >= end {
                break;
            }
            self.next = None;
            self.last_due = due;
            self.push(&mut chunk, due, slot, arrival);
        }
        let complete = match self.pull() {
            Some((slot, _)) => slot.due.as_nanos().max(self.last_due),
            None => ALL,
        };
        if chunk.records().is_empty() {
            self.tail.set_complete(complete);
        } else {
            let link = Link::new(chunk, complete, &self.held);
            self.tail.append(link.clone());
            self.tail = link;
        }
    }

    /// The next arrival, which stays the next one.
    fn pull(&mut self) -> Option<(Slot, Arrival)> {
        if self.next.is_none() && !self.has_ended {
            self.next = self.source.next(&mut self.bytes).map(|arrival| {
                let slot = self.schedule.place(arrival.time, arrival.wire_len, Time::ZERO);
                (slot, arrival)
            });
            self.has_ended = self.next.is_none();
        }
        self.next
    }

    fn push(&mut self, chunk: &mut Chunk, due: u64, slot: Slot, arrival: Arrival) {
        let Arrival { wire_len, link, .. } = arrival;
        let bytes = &self.bytes[..];
        // What a device reads of a frame in several buffers is in the first.
        let first = &bytes[..bytes.len().min(self.room)];
        let whole = bytes.len().max(wire_len as usize);
        let hash = self.hasher.hash(first, whole, link);
        chunk.push(Pulled {
            due,
            timestamp: self.keeps_stamps.then_some(slot.timestamp),
            stamp: self.drawn as u32,
            bytes,
            wire_len,
            link,
            hash,
            bucket: self.hasher.steering.bucket_of_hash(hash.0) as u16,
            is_oversize: bytes.len() > self.longest,
        });
        self.drawn += 1;
    }
}
